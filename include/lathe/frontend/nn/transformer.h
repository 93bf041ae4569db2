// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pre-norm transformer: blocks, and the language model made of them.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/mlp.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/frontend/nn/self_attention.h"

namespace lathe::nn {

/// Names of the modules below a TransformerBlock.
struct BlockNames {
  std::string attentionNorm = "input_layernorm", attention = "self_attn";
  std::string mlpNorm = "post_attention_layernorm", mlp = "mlp";
};

/// RMSNorm or LayerNorm, and a gated MLP or a plain one: `.norm = nn::LayerNormOptions{}`.
using NormChoice = std::variant<NormOptions, LayerNormOptions>;
using MlpChoice = std::variant<SwiGLUOptions, FeedForwardOptions>;

struct BlockOptions {
  SelfAttentionOptions attention = {};
  int64_t dHidden = 0;  ///< inner size of the MLP; 0: 4 dModel for a FeedForward
  MlpChoice mlp = SwiGLUOptions::llama();
  NormChoice norm = NormOptions::llama();
  BlockNames names = {};
};

/// x + attention(norm(x)), then x + mlp(norm(x)): [batch, seq, dModel] in and out.
class TransformerBlock : public Module {
 public:
  TransformerBlock(Graph& graph, std::string path, BlockOptions options, LATHE_AT);
  /// tokenPositions: integers [seq] or [batch, seq], for RoPE; 0, 1, 2, ... unless given.
  Tensor operator()(const Tensor& x, const Tensor& tokenPositions = {}, LATHE_AT) const;
  Tensor operator()(const Tensor& x, const LayerContext& context, LATHE_AT) const;
  const CausalSelfAttention& attention() const { return attention_; }

 private:
  Tensor addMlp(const Tensor& x, std::source_location at) const;
  std::variant<RMSNorm, LayerNorm> attentionNorm_, mlpNorm_;
  CausalSelfAttention attention_;
  std::variant<SwiGLU, FeedForward> mlp_;
};

/// How a family of models spells and names things: everything but sizes.
struct ModelStyle {
  SelfAttentionOptions attention = SelfAttentionOptions::llama();
  RopeOptions rope = RopeOptions::llama();
  MlpChoice mlp = SwiGLUOptions::llama();
  NormChoice norm = NormOptions::llama();
  LinearOptions head = LinearOptions::llama();
  EmbeddingOptions embedding = EmbeddingOptions::llama();
  BlockNames block = {};
  std::string embeddingName = "model.embed_tokens", positionsName = "model.embed_positions";
  std::string layersName = "model.layers", normName = "model.norm", headName = "lm_head";
  bool probabilities = false;  ///< results are softmax(logits)

  static ModelStyle llama() { return {}; }
  /// LayerNorm before each part, one weight for q, k and v, GELU; with learnt positions and a tied
  /// head it is GPT-2. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
  static ModelStyle gpt();
};

struct TransformerLMOptions {
  enum class Positions {
    Rotary,
    Learnt,  ///< a table [maxPositions, dModel] is added to the token embeddings
    None,    ///< only the causal mask tells tokens apart
  };
  /// dHidden: inner size of the MLPs; 0: 4 dModel for a FeedForward.
  int64_t vocabSize = 0, dModel = 0, dHidden = 0, layers = 0, heads = 0;
  int64_t kvHeads = 0;  ///< 0: heads
  int64_t headDim = 0;  ///< 0: dModel / heads
  int64_t maxPositions = 2048;
  Positions positions = Positions::Rotary;
  double ropeTheta = 10000;
  RopeScalingOptions ropeScaling = {};
  std::optional<double> normEps = {};  ///< the style's unless given
  bool tiedHead = false;               ///< the head is the token embedding, transposed
  bool qkvBias = false, outputBias = false, mlpBias = false;
  DType dtype = DType::F32;               ///< of activations and caches
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; `dtype` unless given
  bool useFused = false;                  ///< records fused ops wherever there is one
  ModelStyle style = {};
};

/// Token ids to scores of the next token. Logits are f32, and probabilities in styles that say so.
class TransformerLM : public Module {
 public:
  TransformerLM(Graph& graph, std::string path, TransformerLMOptions options, LATHE_AT);

  /// ids: integers [batch, seq]; tokenPositions: integers [seq] or [batch, seq], 0, 1, 2, ...
  /// unless given. Returns [batch, seq, vocabSize].
  Tensor forward(const Tensor& ids, const Tensor& tokenPositions = {}, LATHE_AT) const;

  /// Declares the states `k_cache.<layer>` and `v_cache.<layer>`, [batch, kvHeads, capacity,
  /// headDim], which `step` needs. Once per graph.
  void declareCache(const Dim& batch, const Dim& capacity, LATHE_AT) const;
  /// ids: integers [batch, seq], tokens that follow what the cache holds; positions: integers
  /// [batch], where the first of them goes. Returns the last token's logits [batch, vocabSize].
  Tensor step(const Tensor& ids, const Tensor& positions, LATHE_AT) const;
  /// As `step`, with the logits of every token: [batch, seq, vocabSize].
  Tensor stepAll(const Tensor& ids, const Tensor& positions, LATHE_AT) const;

  const TransformerLMOptions& options() const { return options_; }

 private:
  Tensor embed(const Tensor& ids, const Tensor& where, std::source_location at) const;
  RopeAngles angles(const Tensor& where, std::source_location at) const;
  Tensor cached(const Tensor& ids, const Tensor& positions, std::source_location at) const;
  Tensor logits(const Tensor& x, std::source_location at) const;
  KvCache cacheOf(size_t layer) const;

  TransformerLMOptions options_;
  Embedding tokens_;
  std::vector<TransformerBlock> blocks_;
};

}  // namespace lathe::nn
