// SPDX-License-Identifier: Apache-2.0
#pragma once
// What BART and Marian share: layers with their norms behind the sums, and a bias of the logits.
#include "frontend/families/encoder_decoder_lm.h"
#include "lathe/frontend/nn/encoder_decoder.h"

namespace lathe {

struct BartSide {
  int64_t layers = 0, heads = 0, intermediateSize = 0;
};
struct BartConfig {
  int64_t vocabSize = 0;  ///< of the source, and of the target unless its own is said
  int64_t targetVocabSize = 0;
  int64_t hiddenSize = 0, maxPositions = 1024;
  BartSide encoder, decoder;
  bool scalesEmbedding = false;
  Activation activation = Activation::gelu;
};

/// The fields that both have.
BartConfig readBart(ConfigReader& config, const FamilyOptions& options);

class BartModel : public EncoderDecoderLm {
 public:
  BartModel(Graph& graph, const BartConfig& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {}
  /// All entry points.
  void record() const;

  Encoded encode(const Dim& batch, const Dim& source) const override;
  nn::SourceKeys sourceKeys(int64_t layer, const Tensor& encoded) const override;
  Tensor embed(const Tensor& ids, const Tensor& where) const override;
  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context,
               const nn::SourceKeys& source, const Tensor& visible) const override;
  Tensor logits(const Tensor& x) const override;

 protected:
  /// ids [batch, seq] at places [seq] or [batch, seq], of the side "model.encoder." or
  /// "model.decoder.".
  virtual Tensor embedSide(const std::string& side, const Tensor& ids,
                           const Tensor& where) const = 0;
  /// x [..., hidden] times the head's weight.
  virtual Tensor unembed(const Tensor& x) const = 0;

  nn::Embedding table(const std::string& path, int64_t rows) const;
  /// What comes out of a table, scaled where the config asks for it.
  Tensor scaled(const Tensor& x) const;
  nn::LayerNorm norm(const std::string& path) const;

  Graph& graph_;
  const BartConfig c_;
  const FamilyOptions options_;

 private:
  nn::PostNormOptions layerOptions(const BartSide& side) const;
  nn::CrossAttention cross(int64_t index) const;
};

}  // namespace lathe
