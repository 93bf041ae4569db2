// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/tensor.h"

#include "ir/composing.h"
#include "lathe/runtime/error.h"

namespace lathe {

Recorder::Recorder() : link_(std::make_shared<RecorderLink>(RecorderLink{this})) {}
Recorder::~Recorder() { link_->recorder = nullptr; }

Tensor::Tensor(Recorder* recorder, size_t id) : id_(id) {
  if (recorder) link_ = recorder->link();
}

Recorder* Tensor::recorder(std::source_location at) const {
  if (!link_) return nullptr;
  if (link_->recorder) return link_->recorder;
  throw Error(
      ErrorCode::InvalidArgument,
      "the graph of this tensor no longer exists: it was destroyed or overwritten; keep the "
      "Graph as long as its tensors (both can be moved)",
      at);
}

Recorder* Tensor::expectLive(const char* what, std::source_location at) const {
  Recorder* recorder = this->recorder(at);
  if (!recorder)
    throw Error(ErrorCode::InvalidArgument,
                std::string(what) + "() of an empty tensor handle; was it moved or never assigned?",
                at);
  recorder->expectValue(id_, at);
  return recorder;
}

DType Tensor::dtype(std::source_location at) const { return expectLive("dtype", at)->dtypeOf(id_); }
Dims Tensor::shape(std::source_location at) const { return expectLive("shape", at)->shapeOf(id_); }
int64_t Tensor::rank(std::source_location at) const {
  return int64_t(expectLive("rank", at)->shapeOf(id_).size());
}
Dim Tensor::dim(int64_t axis, std::source_location at) const {
  Dims dims = expectLive("dim", at)->shapeOf(id_);
  const int64_t rank = int64_t(dims.size());
  if (axis < -rank || axis >= rank)
    throw Error(ErrorCode::InvalidArgument,
                "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank), at);
  return dims[size_t(axis < 0 ? axis + rank : axis)];
}

Tensor Recorder::scalar(double value, size_t like, std::source_location at) {
  const DType dtype = dtypeOf(like);
  if (!holds(dtype, value))
    throw Error(ErrorCode::InvalidArgument,
                Composing::named("expected a number that " + std::string(nameOf(dtype)) +
                                 " holds, got " + numberText(value) +
                                 "; cast the tensor to a dtype that does, or the number"),
                at);
  Array scalar(dtype, {});
  scalar.set(0, value);
  return emit("lathe.constant", {}, {{"value", scalar}}, at);
}
int64_t Recorder::axisFromFront(size_t id, int64_t axis) const {
  return axis < 0 ? axis + int64_t(shapeOf(id).size()) : axis;
}

Scope::Scope(Recorder* recorder, std::string_view path, std::source_location at) {
  if (!recorder)
    throw Error(ErrorCode::InvalidArgument,
                "a scope needs a graph, got a null recorder; pass Graph::recorder()", at);
  recorder->pushScope(path, at);
  link_ = recorder->link();
}

}  // namespace lathe
