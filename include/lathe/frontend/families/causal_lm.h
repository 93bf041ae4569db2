// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the decoder-only families share: entry points over a key/value cache, and the parts that
// most of them have under the same names.
#include <string>
#include <vector>

#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/linear.h"
#include "lathe/frontend/nn/mlp.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/frontend/nn/self_attention.h"

namespace lathe {

/// A language model layer by layer. Modules and tensors are of one graph.
class CausalLm {
 public:
  virtual ~CausalLm() = default;
  /// ids: integers [batch, seq]; where: their positions, integers [seq] or [batch, seq]. Returns
  /// [batch, seq, hidden].
  virtual Tensor embed(const Tensor& ids, const Tensor& where) const = 0;
  /// The rotations that layers share; empty without rotary positions.
  virtual std::vector<nn::RopeAngles> angles(const Tensor& where) const = 0;
  /// Which of them a layer takes.
  virtual size_t anglesOf(int64_t /*layer*/) const { return 0; }
  /// What every layer adds to its scores where there are so many keys, which floats must broadcast
  /// to [batch, heads, queries, keys]; empty unless positions act that way.
  virtual Tensor bias(const Dim& /*keys*/) const { return {}; }
  virtual Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const = 0;
  /// The path of a layer's modules: what it records between them has it too.
  virtual std::string layerPath(int64_t index) const {
    return "model.layers." + std::to_string(index);
  }
  /// x [..., hidden] -> f32 [..., vocabulary], the last norm included.
  virtual Tensor logits(const Tensor& x) const = 0;
};

/// Records entry points that share weights and caches. Symbols: `batch` (1 to maxBatch),
/// `seq` (1 to maxSeq), `cache` (1 to cacheCapacity).
///   forward: input_ids i64 [batch, seq] -> logits f32 [batch, seq, vocab]
///   prefill: input_ids i64 [batch, seq], positions i64 [batch] -> logits f32 [batch, vocab] of the
///            last token
///   decode:  input_ids i64 [batch, 1], positions i64 [batch] -> logits f32 [batch, vocab]
///   verify:  with FamilyOptions::verify; as prefill, with logits f32 [batch, seq, vocab] of all
///   greedy:  with FamilyOptions::greedy; decode that chooses the next token (families/greedy.h)
/// `positions` says where in the cache the first id goes; states k_cache.<layer> and
/// v_cache.<layer> are [batch, kvHeads, cache, headDim], of windowed layers too.
///
/// With FamilyOptions::cacheBlock they are [blocks, kvHeads, cacheBlock, headDim], prefill, decode
/// and verify have the input block_table i64 [batch, entries] too, the blocks of each text in their
/// order, and the symbols `entries` and `blocks` stand in for `cache`; there is no greedy.
/// Throws Error(InvalidArgument) for options beyond the model's positions (longestSequence).
void recordCausalLm(Graph& graph, const CausalLm& model, const DecoderConfig& sizes,
                    const FamilyOptions& options);

/// A decoder whose parts have the names that most checkpoints give them: `model.embed_tokens`,
/// `model.layers.<i>`, `model.norm`, `lm_head`. A family says what a layer is.
class DecoderLm : public CausalLm {
 public:
  DecoderLm(Graph& graph, const DecoderConfig& config, const FamilyOptions& options);

  Tensor embed(const Tensor& ids, const Tensor& where) const override;
  std::vector<nn::RopeAngles> angles(const Tensor& where) const override;
  Tensor logits(const Tensor& x) const override;

 protected:
  /// Options with the config's sizes, rotation and dtypes: a family adds what is its own.
  nn::SelfAttentionOptions attentionOptions() const;
  nn::SwiGLUOptions mlpOptions() const;
  nn::CausalSelfAttention attention(const std::string& path,
                                    const nn::SelfAttentionOptions& options) const;
  nn::RMSNorm norm(const std::string& path) const;
  nn::LayerNorm layerNorm(const std::string& path) const;
  nn::SwiGLU mlp(const std::string& path) const;
  /// An MLP without a gate, whose two weights have these names.
  nn::FeedForward feedForward(const std::string& path, const std::string& in,
                              const std::string& out, bool bias = true) const;
  /// x [..., hidden], behind the last norm, to logits f32 [..., vocabulary]: the table of
  /// embeddings at `embeddings` where the head is tied, else the Linear `lm_head`.
  Tensor head(const Tensor& x, const std::string& embeddings = "model.embed_tokens",
              bool bias = false) const;
  nn::Linear linear(const std::string& path, int64_t in, int64_t out, bool bias) const;
  nn::Embedding table(const std::string& path, int64_t rows) const;

  Graph& graph_;
  const DecoderConfig config_;
  const FamilyOptions options_;
  nn::NormOptions norm_;  ///< of all norms; a family may change it in its constructor
};

/// The graph of a family whose model is `Model(graph, config, options)`.
template <class Model, class Config>
Graph recordFamily(std::string_view name, const Config& config, const FamilyOptions& options) {
  Graph graph(name);
  recordCausalLm(graph, Model(graph, config, options), config, options);
  return graph;
}

}  // namespace lathe
