// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPT-2's form of a language model: LayerNorm before each part, one weight for q, k and v, GELU,
// learnt positions. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/frontend/nn/self_attention.h"

namespace lathe::nn {

/// Names of the modules below a GptBlock.
struct GptBlockNames {
  std::string attentionNorm = "ln_1", attention = "attn", mlpNorm = "ln_2", mlp = "mlp";
};

struct GptBlockOptions {
  SelfAttentionOptions attention = SelfAttentionOptions::gpt();
  int64_t dHidden = 0;  ///< inner size of the MLP; 0: 4 dModel
  FeedForwardOptions mlp = FeedForwardOptions::gpt();
  LayerNormOptions norm = {};
  GptBlockNames names = {};
};

/// x + attention(norm(x)), then x + mlp(norm(x)): [batch, seq, dModel] in and out.
class GptBlock : public Module {
 public:
  GptBlock(Graph& graph, std::string path, GptBlockOptions options, LATHE_AT);
  Tensor operator()(const Tensor& x, const LayerContext& context = {}, LATHE_AT) const;

 private:
  LayerNorm norm1_, norm2_;
  CausalSelfAttention attention_;
  FeedForward mlp_;
};

/// Names of the modules below a Gpt.
struct GptNames {
  std::string tokens = "wte", positions = "wpe", layers = "h", norm = "ln_f", head = "lm_head";
};

struct GptOptions {
  int64_t vocabSize = 0, dModel = 0, layers = 0, heads = 0;
  int64_t dHidden = 0;  ///< inner size of the MLPs; 0: 4 dModel
  int64_t maxPositions = 1024;
  bool tiedHead = true;                   ///< the head is the token embedding, transposed
  DType dtype = DType::F32;               ///< of activations and caches
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; `dtype` unless given
  /// How the blocks spell and name things; sizes and weight dtypes are those above.
  GptBlockOptions block = {};
  GptNames names = {};
};

/// Token ids to f32 logits of the next token.
class Gpt : public Module {
 public:
  Gpt(Graph& graph, std::string path, GptOptions options, LATHE_AT);
  /// ids: integers [batch, seq] -> [batch, seq, vocabSize].
  Tensor forward(const Tensor& ids, LATHE_AT) const;

  /// Declares the states `k_cache.<layer>` and `v_cache.<layer>`, [batch, heads, capacity,
  /// dModel / heads], which `step` needs. Once per graph.
  void declareCache(const Dim& batch, const Dim& capacity, LATHE_AT) const;
  /// ids: integers [batch, seq], tokens that follow what the cache holds; positions: integers
  /// [batch], where the first of them goes. Returns the last token's logits [batch, vocabSize].
  Tensor step(const Tensor& ids, const Tensor& positions, LATHE_AT) const;

 private:
  Tensor embed(const Tensor& ids, const Tensor& where, std::source_location at) const;
  Tensor logits(const Tensor& x, std::source_location at) const;
  KvCache cacheOf(size_t layer) const;
  GptOptions options_;
  Embedding tokens_;
  std::vector<GptBlock> blocks_;
};

}  // namespace lathe::nn
