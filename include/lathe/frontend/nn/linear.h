// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

struct LinearOptions {
  bool bias = true;  ///< adds `<path>.bias` [out]
  std::string weightName = "weight";
  /// `out_in`: weight [out, in], as PyTorch holds it; `in_out`: [in, out].
  WeightLayout layout = WeightLayout::out_in;
  /// What the checkpoint holds; the input's dtype unless given. Converted to the input's dtype.
  std::optional<DType> weightDType = {};
  bool useFused = false;  ///< records the op `linear` instead of transpose, matmul and add

  static LinearOptions llama() { return {.bias = false}; }
};

/// x W^T + b over the last axis: [..., in] -> [..., out], in x's dtype.
class Linear : public Module {
 public:
  Linear(Graph& graph, std::string path, int64_t in, int64_t out, LinearOptions options = {},
         LATHE_AT);
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  int64_t in_, out_;
  LinearOptions options_;
};

}  // namespace lathe::nn
