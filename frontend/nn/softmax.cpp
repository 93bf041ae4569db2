// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/softmax.h"

#include "ir/composing.h"
#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

Tensor softmax(const Tensor& x, int64_t axis, std::source_location at) {
  const Composing composing("softmax");
  expectFloats(x, "softmax", at);
  Tensor wide = castTo(x, computeDType(x.dtype()), at);
  Tensor top = reduceMax(wide, {axis}, true, at);
  Tensor e = exp(sub(wide, top, at), at);
  Tensor sum = reduceSum(e, {axis}, true, at);
  return castTo(div(e, sum, at), x.dtype(), at);
}

}  // namespace lathe::nn
