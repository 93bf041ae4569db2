// SPDX-License-Identifier: Apache-2.0
#include "ir/op_recording.h"

#include <cmath>

#include "lathe/runtime/error.h"

namespace lathe {

void OpRecording::expectThere(std::string_view name, const Tensor& x) const {
  if (!x.defined())
    throw Error(ErrorCode::InvalidArgument,
                std::string(op_) + ": expected a tensor, got an empty handle as '" +
                    std::string(name) + "'; was it moved or never assigned?",
                at_);
}

OpRecording& OpRecording::operand(std::string_view name, const Tensor& x) {
  expectThere(name, x);
  if (!recorder_) recorder_ = x.recorder(at_);
  return optional(x);
}

OpRecording& OpRecording::operands(std::string_view name, const std::vector<Tensor>& list) {
  if (list.empty())
    throw Error(ErrorCode::InvalidArgument,
                std::string(op_) + ": expected at least one tensor as '" + std::string(name) +
                    "', got none",
                at_);
  for (size_t i = 0; i < list.size(); ++i)
    operand(std::string(name) + "[" + std::to_string(i) + "]", list[i]);
  return *this;
}

OpRecording& OpRecording::optional(const Tensor& x) {
  operands_.push_back(x);
  return *this;
}

OpRecording& OpRecording::like(const Tensor& x) {
  expectThere("like", x);
  recorder_ = x.recorder(at_);
  recorder_->expectValue(x.id(), at_);
  return *this;
}

OpRecording& OpRecording::attribute(std::string_view name, AttrValue value) {
  if (auto* number = std::get_if<double>(&value); number && !std::isfinite(*number))
    throw Error(ErrorCode::InvalidArgument,
                std::string(op_) + ": expected a finite " + std::string(name) + ", got " +
                    numberText(*number),
                at_);
  attributes_.push_back({name, std::move(value)});
  return *this;
}

int64_t OpRecording::fromFront(int64_t axis) const {
  recorder_->expectValue(operands_[0].id(), at_);
  return recorder_->axisFromFront(operands_[0].id(), axis);
}

OpRecording& OpRecording::axis(std::string_view name, int64_t axis) {
  return attribute(name, AttrValue(fromFront(axis)));
}

OpRecording& OpRecording::axes(std::string_view name, Axes axes) {
  for (int64_t& axis : axes) axis = fromFront(axis);
  return attribute(name, AttrValue(std::move(axes)));
}

OpRecording& OpRecording::reducedAxes(std::string_view name, Axes axes) {
  if (axes.empty())
    throw Error(ErrorCode::InvalidArgument,
                std::string(op_) + ": no axes are given; name them, or all axes of x for a scalar",
                at_);
  return this->axes(name, std::move(axes));
}

Tensor OpRecording::record() { return recorder_->emit(op_, operands_, attributes_, at_); }

std::pair<Tensor, Tensor> OpRecording::recordPair() {
  Tensor first = record();
  return {first, Tensor(first.recorder(), first.id() + 1)};
}

}  // namespace lathe
