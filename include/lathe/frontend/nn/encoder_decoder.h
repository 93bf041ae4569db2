// SPDX-License-Identifier: Apache-2.0
#pragma once
// The encoder-decoder transformer of Vaswani et al., "Attention Is All You Need", 2017: LayerNorm
// after every residual sum.
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/multi_head_attention.h"
#include "lathe/frontend/nn/norms.h"

namespace lathe::nn {

/// Bool [batch, 1, 1, seq]: true where the id is not `padding`, for queries of any number.
Tensor paddingMask(const Tensor& ids, int64_t padding, LATHE_AT);
/// Bool [batch, 1, seq, seq]: true where the key is not after the query and the *query* is not
/// `padding`: the queries that are padding see nothing.
Tensor targetMask(const Tensor& ids, int64_t padding, LATHE_AT);

/// Names of the modules below an EncoderLayer or a DecoderLayer.
struct PostNormNames {
  std::string selfAttention = "self_attn", crossAttention = "cross_attn";
  std::string feedForward = "feed_forward";
  /// The norms behind the parts, in the order in which they are applied.
  std::string norm1 = "norm1", norm2 = "norm2", norm3 = "norm3";
};

struct PostNormOptions {
  MultiHeadAttentionOptions attention = {};
  int64_t dHidden = 0;  ///< inner size of the feed-forward
  FeedForwardOptions feedForward = {};
  LayerNormOptions norm = {};
  PostNormNames names = {};
};

/// norm(x + attention(x)), then norm(x + feedForward(x)): [batch, seq, dModel] in and out.
class EncoderLayer : public Module {
 public:
  EncoderLayer(Graph& graph, std::string path, PostNormOptions options, LATHE_AT);
  /// `mask` as MultiHeadAttention takes it.
  Tensor operator()(const Tensor& x, const Tensor& mask = {}, LATHE_AT) const;

 private:
  MultiHeadAttention attention_;
  FeedForward feedForward_;
  LayerNorm norm1_, norm2_;
};

/// norm(x + attention(x)), norm(x + attention(x, encoded)), norm(x + feedForward(x)).
class DecoderLayer : public Module {
 public:
  DecoderLayer(Graph& graph, std::string path, PostNormOptions options, LATHE_AT);
  /// x [batch, t, dModel], encoded [batch, s, dModel]. Masks as MultiHeadAttention takes them, for
  /// [batch, heads, t, s] and [batch, heads, t, t].
  Tensor operator()(const Tensor& x, const Tensor& encoded, const Tensor& sourceMask,
                    const Tensor& targetMask, LATHE_AT) const;

 private:
  MultiHeadAttention selfAttention_, crossAttention_;
  FeedForward feedForward_;
  LayerNorm norm1_, norm2_, norm3_;
};

struct EncoderDecoderNames {
  std::string sourceEmbedding = "encoder_embedding", targetEmbedding = "decoder_embedding";
  std::string encoder = "encoder.layers", decoder = "decoder.layers";  ///< followed by the layer
  std::string head = "final_linear";
  std::string sourcePositions = "encoder_positions", targetPositions = "decoder_positions";
};

struct EncoderDecoderOptions {
  enum class Positions {
    Sine,    ///< computed, no weight
    Learnt,  ///< a table [maxPositions, dModel] for each side
    None,
  };
  int64_t sourceVocab = 0, targetVocab = 0;
  int64_t layers = 0;  ///< of the encoder, and of the decoder
  int64_t maxPositions = 512;
  Positions positions = Positions::Sine;
  /// Token embeddings are multiplied with it: sqrt(dModel) in the paper.
  double embeddingScale = 1;
  PostNormOptions layer = {};
  DType dtype = DType::F32;               ///< of activations
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; `dtype` unless given
  EncoderDecoderNames names = {};
};

/// Source ids and target ids to logits of the next target token.
class EncoderDecoder : public Module {
 public:
  EncoderDecoder(Graph& graph, std::string path, EncoderDecoderOptions options, LATHE_AT);

  /// source: integers [batch, s] -> [batch, s, dModel].
  Tensor encode(const Tensor& source, const Tensor& sourceMask = {}, LATHE_AT) const;
  /// target: integers [batch, t]; encoded [batch, s, dModel] -> logits [batch, t, targetVocab] in
  /// the model's dtype. Without a target mask every token sees all others: causalMask or targetMask
  /// make one.
  Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& sourceMask,
                const Tensor& targetMask, LATHE_AT) const;
  Tensor forward(const Tensor& source, const Tensor& target, const Tensor& sourceMask,
                 const Tensor& targetMask, LATHE_AT) const;

 private:
  Tensor embed(const Tensor& ids, int64_t vocab, const std::string& name,
               const std::string& positions, std::source_location at) const;
  EncoderDecoderOptions options_;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
};

}  // namespace lathe::nn
