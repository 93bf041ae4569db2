// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor.h"

#include "runtime/error.h"

namespace lathe {

DType Tensor::dtype() const {
  if (!recorder_) throw Error(ErrorCode::InvalidArgument, "dtype() of an empty tensor handle");
  return recorder_->dtypeOf(id_);
}
Dims Tensor::shape() const {
  if (!recorder_) throw Error(ErrorCode::InvalidArgument, "shape() of an empty tensor handle");
  return recorder_->shapeOf(id_);
}
int64_t Tensor::rank() const { return int64_t(shape().size()); }
Dim Tensor::dim(int64_t axis) const {
  Dims dims = shape();
  int64_t rank = int64_t(dims.size()), i = axis < 0 ? axis + rank : axis;
  if (i < 0 || i >= rank)
    throw Error(ErrorCode::InvalidArgument,
                "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  return dims[size_t(i)];
}

Tensor Recorder::scalar(double value, size_t like, std::source_location at) {
  Array scalar(dtypeOf(like), {});
  scalar.set(0, value);
  return emit("lathe.constant", {}, {{"value", scalar}}, at);
}
int64_t Recorder::axisFromFront(size_t id, int64_t axis) const {
  return axis < 0 ? axis + int64_t(shapeOf(id).size()) : axis;
}

}  // namespace lathe
