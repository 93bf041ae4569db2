// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/linear.h"

#include "lathe/runtime/error.h"

namespace lathe::nn {

Linear::Linear(Graph& graph, std::string path, int64_t in, int64_t out, LinearOptions options,
               std::source_location at)
    : Module(graph, std::move(path), at), in_(in), out_(out), options_(std::move(options)) {
  expectPositive(in_, "Linear '" + this->path() + "', input size", at);
  expectPositive(out_, "Linear '" + this->path() + "', output size", at);
  if (options_.layout != WeightLayout::out_in && options_.layout != WeightLayout::in_out)
    throw Error(ErrorCode::InvalidArgument,
                "Linear '" + this->path() + "': expected the layout out_in or in_out, got " +
                    Keyword(options_.layout).value,
                at);
}

Tensor Linear::operator()(const Tensor& x, std::source_location at) const {
  expectFeatures(x, in_, "Linear '" + path() + "'", at);
  const Scope scope = opened(x, at);
  const bool outIn = options_.layout == WeightLayout::out_in;
  Tensor w = weight(options_.weightName, x.dtype(), outIn ? Shape{out_, in_} : Shape{in_, out_},
                    options_.weightDType);
  Tensor bias;
  if (options_.bias) bias = weight("bias", x.dtype(), {out_}, options_.weightDType);
  if (options_.useFused)
    return fused::linear(x, w, {.bias = bias, .residual = {}, .layout = options_.layout});

  // A vector times a matrix: matmul wants two axes.
  Tensor rows = x.rank() == 1 ? reshape(x, {1, in_}) : x;
  Tensor y = matmul(rows, outIn ? transpose(w, {1, 0}) : w);
  if (x.rank() == 1) y = reshape(y, {out_});
  return options_.bias ? y + bias : y;
}

}  // namespace lathe::nn
