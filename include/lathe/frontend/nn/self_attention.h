// SPDX-License-Identifier: Apache-2.0
#pragma once
// Causal self-attention with its projections, rotary positions and key/value cache.
#include <optional>
#include <string>

#include "lathe/frontend/nn/attention.h"
#include "lathe/frontend/nn/linear.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/frontend/nn/rope.h"

namespace lathe::nn {

/// Names of the modules below a CausalSelfAttention.
struct SelfAttentionNames {
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj";
  std::string qkv = "qkv";  ///< where one weight makes all three
  std::string qNorm = "q_norm", kNorm = "k_norm";
};

struct SelfAttentionOptions {
  enum class Projections {
    Separate,  ///< q, k and v of their own
    Fused,     ///< one weight; its rows are those of q, then k, then v
    /// The fused result [batch, seq, 3 d] is read as [3, batch, seq, headDim, heads], which mixes
    /// tokens and heads.
    FusedOddView,
    /// One weight; its rows are the queries of the first key/value head, its k and its v, then
    /// those of the second.
    FusedByHead,
  };
  /// A norm of queries and of keys in front of their rotation.
  enum class QkNorm {
    None,
    Head,        ///< of each head: gains [headDim]
    Projection,  ///< of all heads together: gains [heads * headDim] and [kvHeads * headDim]
  };
  int64_t dModel = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;  ///< divides heads; 0: heads
  int64_t headDim = 0;  ///< 0: dModel / heads
  Projections projections = Projections::Separate;
  QkNorm qkNorm = QkNorm::None;
  NormOptions norm = NormOptions::llama();  ///< of `qkNorm`
  bool qkvBias = false, outputBias = false;
  std::optional<bool> keyBias = {};      ///< of k, where it differs from q and v
  bool applyOutput = true;               ///< without it the merged heads are the result
  std::optional<RopeOptions> rope = {};  ///< headDim is filled in
  LinearOptions linear = {};             ///< bias is taken from the two flags above
  AttentionOptions attention = AttentionOptions::llama();
  SelfAttentionNames names = {};

  static SelfAttentionOptions llama() { return {}; }
  static SelfAttentionOptions gpt();  ///< one weight `c_attn`, `c_proj`, biases
};

/// Names of the two states that hold past keys and values: [batch, kvHeads, capacity, headDim], or
/// [blocks, kvHeads, tokens of a block, headDim] where a table says which blocks a sequence has.
struct KvCache {
  std::string keys, values;
  bool defined() const { return !keys.empty(); }
};

/// What a layer needs beside its input.
struct LayerContext {
  RopeAngles angles = {};  ///< at the tokens' positions; empty without RoPE
  KvCache cache = {};      ///< empty: tokens see each other only
  /// With a cache: integers [batch], the position of the first token.
  Tensor positions = {};
  /// Of a cache in blocks: integers [batch, entries], the blocks of each sequence in order. Two
  /// sequences may have the same first blocks, which none of them writes to.
  Tensor table = {};
  /// Floats that are added to the scaled scores, broadcast to [batch, heads, queries, keys], where
  /// positions act that way; empty without. With a cache its capacity is the number of keys, in
  /// blocks the tokens of a row of the table.
  Tensor bias = {};
};

/// Queries [batch, heads, seq, headDim], keys and values [batch, kvHeads, seq, headDim].
struct AttentionHeads {
  Tensor q, k, v;
};

/// x [batch, seq, dModel] -> [batch, seq, dModel]; token i sees tokens 0..i and, with a cache, what
/// earlier calls stored. Positions past the capacity of the cache or the rotation table are errors
/// when the program runs.
class CausalSelfAttention : public Module {
 public:
  CausalSelfAttention(Graph& graph, std::string path, SelfAttentionOptions options, LATHE_AT);
  /// tokenPositions: integers [seq] or [batch, seq], for RoPE; 0, 1, 2, ... unless given.
  Tensor operator()(const Tensor& x, const Tensor& tokenPositions = {}, LATHE_AT) const;
  /// Appends to the cache at positions [batch] and attends to all of it.
  Tensor operator()(const Tensor& x, const Tensor& positions, const KvCache& cache, LATHE_AT) const;
  /// The form for models, which share the angles between layers.
  Tensor operator()(const Tensor& x, const LayerContext& context, LATHE_AT) const;

  /// The two halves of the form above, for models that do something to the heads in between:
  /// projections and their norms; then rotations, the cache, attention and the output projection.
  AttentionHeads project(const Tensor& x, LATHE_AT) const;
  Tensor attend(const AttentionHeads& heads, const LayerContext& context, LATHE_AT) const;

  /// Cosines and sines for x's tokens; empty without RoPE.
  RopeAngles angles(const Tensor& tokenPositions, LATHE_AT) const;
  const SelfAttentionOptions& options() const { return options_; }

 private:
  Linear linear(const std::string& name, int64_t in, int64_t out, bool bias) const;
  AttentionHeads separate(const Tensor& x, std::source_location at) const;
  AttentionHeads oddView(const Tensor& mixed) const;
  AttentionHeads byHead(const Tensor& mixed, std::source_location at) const;
  RMSNorm norm(const std::string& name, int64_t size) const;
  SelfAttentionOptions options_;
};

/// integers i64 [batch, seq]: positions[b] + 0, 1, 2, ...
Tensor tokenPositions(const Tensor& positions, const Dim& seq, LATHE_AT);

}  // namespace lathe::nn
