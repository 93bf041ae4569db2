// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention with its projections, where queries and keys may come from different tensors: the
// encoder's, the decoder's and DiT's. CausalSelfAttention is the one for language models.
#include <optional>
#include <string>

#include "lathe/frontend/nn/attention.h"
#include "lathe/frontend/nn/linear.h"

namespace lathe::nn {

/// Names of the modules below a MultiHeadAttention.
struct MultiHeadAttentionNames {
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "out_proj";
  std::string qkv = "qkv";                     ///< where one weight makes all three
  std::string relativeKeys = "relative_keys";  ///< of a RelativePositionKeys
};

struct MultiHeadAttentionOptions {
  int64_t dModel = 0;
  int64_t heads = 0;  ///< divides dModel
  /// One weight [3 dModel, dModel]: its rows are those of q, then k, then v. Only for attention of
  /// one tensor to itself.
  bool fusedProjection = false;
  bool bias = true;
  std::optional<bool> qkvBias = {};  ///< of q, k and v; `bias` unless given
  std::optional<bool> keyBias = {};  ///< of k; `qkvBias` unless given. Not with fusedProjection
  /// If positive, Shaw's vectors of clipped distances are added to the keys.
  int64_t relativeDistance = 0;
  LinearOptions linear = {};  ///< bias is taken from the flag above; weightDType is of all weights
  AttentionOptions attention = {};
  MultiHeadAttentionNames names = {};

  static MultiHeadAttentionOptions dit();  ///< `qkv` and `proj`, q scaled
};

/// [batch, queries, dModel] from queries, keys and values of that width.
class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(Graph& graph, std::string path, MultiHeadAttentionOptions options, LATHE_AT);
  /// Of x to itself. `mask`: bool (true = visible) or floats to add, broadcast to [batch, heads,
  /// queries, keys]; it takes the place of the options' mask.
  Tensor operator()(const Tensor& x, const Tensor& mask = {}, LATHE_AT) const;
  /// query [batch, s, dModel], key and value [batch, t, dModel].
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const Tensor& mask = {}, LATHE_AT) const;
  const MultiHeadAttentionOptions& options() const { return options_; }

 private:
  Linear linear(const std::string& name, int64_t out) const;
  void expectTokens(const Tensor& x, const char* what, std::source_location at) const;
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                std::source_location at) const;
  MultiHeadAttentionOptions options_;
};

}  // namespace lathe::nn
