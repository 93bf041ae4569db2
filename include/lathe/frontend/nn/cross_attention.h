// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of a decoder to what an encoder made, whose keys and values are computed once.
#include <string>

#include "lathe/frontend/nn/attention.h"
#include "lathe/frontend/nn/linear.h"

namespace lathe::nn {

/// Names of the modules below a CrossAttention.
struct CrossAttentionNames {
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "out_proj";
};

struct CrossAttentionOptions {
  int64_t dModel = 0;
  int64_t heads = 0;
  int64_t headDim = 0;  ///< 0: dModel / heads
  bool bias = true;     ///< of q, v and the output
  bool keyBias = true;
  LinearOptions linear = {};  ///< bias is taken from the two flags above
  AttentionOptions attention = {};
  CrossAttentionNames names = {};
};

/// Keys and values of a source, [batch, heads, source, headDim].
struct SourceKeys {
  Tensor k, v;
};

/// Vaswani et al., "Attention Is All You Need", 2017, section 3.2.3.
class CrossAttention : public Module {
 public:
  CrossAttention(Graph& graph, std::string path, CrossAttentionOptions options, LATHE_AT);
  /// encoded [batch, source, dModel].
  SourceKeys keysOf(const Tensor& encoded, LATHE_AT) const;
  /// x [batch, queries, dModel] -> the same shape. `mask`: bool (true = visible) or floats to add,
  /// broadcast to [batch, heads, queries, source].
  Tensor operator()(const Tensor& x, const SourceKeys& source, const Tensor& mask = {},
                    LATHE_AT) const;

 private:
  Tensor heads(const std::string& name, const Tensor& x, bool bias, std::source_location at) const;
  CrossAttentionOptions options_;
};

}  // namespace lathe::nn
