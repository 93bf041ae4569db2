// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/ops.h"

#include "ir/composing.h"
#include "lathe/runtime/error.h"

namespace lathe {

Tensor scalarLike(const Tensor& like, double value, std::source_location at) {
  if (!like.defined())
    throw Error(ErrorCode::InvalidArgument,
                "scalarLike: expected a tensor, got an empty handle; was it moved or never "
                "assigned?",
                at);
  Recorder& recorder = *like.recorder(at);
  recorder.expectValue(like.id(), at);
  return recorder.scalar(value, like.id(), at);
}

Tensor swapAxes(const Tensor& x, int64_t a, int64_t b, std::source_location at) {
  const Composing composing("swapAxes");
  int64_t rank = x.rank(at);
  Axes permutation;
  for (int64_t i = 0; i < rank; ++i) permutation.push_back(i);
  if (a < -rank || b < -rank || a >= rank || b >= rank)
    throw Error(ErrorCode::InvalidArgument,
                "swapAxes: axes " + std::to_string(a) + " and " + std::to_string(b) +
                    " are not both inside rank " + std::to_string(rank),
                at);
  std::swap(permutation[size_t(a < 0 ? a + rank : a)], permutation[size_t(b < 0 ? b + rank : b)]);
  return transpose(x, permutation, at);
}

Tensor sliceAxis(const Tensor& x, int64_t axis, const Dim& start, const Dim& size, int64_t stride,
                 std::source_location at) {
  const Composing composing("sliceAxis");
  Dims sizes = x.shape(at), starts(sizes.size(), Dim(0));
  Axes strides(sizes.size(), 1);
  const int64_t i = x.recorder(at)->axisFromFront(x.id(), axis);
  if (i < 0 || i >= int64_t(sizes.size()))
    throw Error(ErrorCode::InvalidArgument,
                "sliceAxis: axis " + std::to_string(axis) + " is outside rank " +
                    std::to_string(sizes.size()),
                at);
  starts[size_t(i)] = start;
  sizes[size_t(i)] = size;
  strides[size_t(i)] = stride;
  return slice(x, starts, sizes, strides, at);
}

}  // namespace lathe
