// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the encoder families share: BERT's layers, and the pooling of a text into one vector.
#include <string>

#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/encoder_decoder.h"

namespace lathe {

struct EncoderConfig : DecoderConfig {
  int64_t tokenTypes = 2;
  int64_t padId = 0;
};

/// What BERT and RoBERTa take for fields that config.json does not have.
inline EncoderConfig bertDefaults() {
  EncoderConfig c;
  c.normEps = 1e-12;
  return c;
}
inline EncoderConfig robertaDefaults() {
  EncoderConfig c = bertDefaults();
  c.padId = 1;
  return c;
}

/// The fields of BERT's config.json. `tokenTypes`, `normEps`, `padId` count where they are missing.
EncoderConfig readEncoder(ConfigReader& config, const FamilyOptions& options,
                          const EncoderConfig& defaults);

/// Token ids, their types and their places to hidden values: LayerNorm behind every residual sum.
class BertEncoder {
 public:
  /// `root`: what stands in front of the names, "bert." or nothing.
  BertEncoder(Graph& graph, std::string root, const EncoderConfig& config,
              const FamilyOptions& options);
  /// ids, types and places: integers [batch, seq] (places may be [seq]); mask: integers [batch,
  /// seq], 0 where a token is padding. Returns [batch, seq, hidden].
  Tensor operator()(const Tensor& ids, const Tensor& types, const Tensor& places,
                    const Tensor& mask) const;
  /// Whether the checkpoint has the pooler's weights: models that only embed texts may lack them.
  bool hasPooler() const;
  /// tanh(W x + b) of the first token: [batch, hidden].
  Tensor pooled(const Tensor& x) const;

  nn::Linear linear(const std::string& path, int64_t in, int64_t out) const;
  nn::LayerNorm norm(const std::string& path) const;
  nn::Embedding table(const std::string& path, int64_t rows) const;

 private:
  nn::EncoderLayer layer(int64_t index) const;
  Graph& graph_;
  const std::string root_;
  const EncoderConfig config_;
  const FamilyOptions options_;
};

/// One vector for each text. x [batch, seq, hidden], mask integers [batch, seq], 0 where a token is
/// padding -> f32 [batch, hidden].
Tensor pooledText(const Tensor& x, const Tensor& mask, const TextPooling& pooling);

}  // namespace lathe
