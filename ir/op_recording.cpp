// SPDX-License-Identifier: Apache-2.0
#include "ir/op_recording.h"

#include <algorithm>
#include <cmath>
#include <optional>

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

OpRecording& OpRecording::permutation(std::string_view name, Axes axes) {
  const bool isIdentity = axes == Axes{0, 1};
  const auto rank = axes.size() == 2 && !isIdentity ? recorder_->rankOf(operands_[0].id())
                                                    : std::optional<int64_t>();
  if (isIdentity || (rank && *rank > 2))
    throw Error(ErrorCode::InvalidArgument,
                std::string(op_) + ": {" + std::to_string(axes[0]) + ", " +
                    std::to_string(axes[1]) + "} " +
                    (isIdentity ? "is the permutation that changes nothing"
                                : "names two of " + std::to_string(*rank) +
                                      " axes, expected a permutation of all of them") +
                    "; swapAxes(x, " + std::to_string(axes[0]) + ", " + std::to_string(axes[1]) +
                    ") exchanges two axes",
                at_);
  return this->axes(name, std::move(axes));
}

// What `dims` leave of the first operand's elements. Equal sizes go out of both first, so that
// sums of symbols never have to be divided.
Dim OpRecording::remaining(const Dims& dims) const {
  const Tensor& x = operands_[0];
  Dims factors = x.shape(at_);
  Dim rest(1), given(1);
  for (const Dim& d : dims) {
    if (d == Dim(-1)) continue;
    if (auto same = std::ranges::find(factors, d); same != factors.end())
      factors.erase(same);
    else
      given = given * d;
  }
  for (const Dim& d : factors) rest = rest * d;
  if (auto quotient = given == Dim(0) ? std::nullopt : rest.dividedBy(given)) return *quotient;
  std::string shape, wanted;
  for (const Dim& d : x.shape(at_)) shape += (shape.empty() ? "" : ", ") + d.text();
  for (const Dim& d : dims) wanted += (wanted.empty() ? "" : ", ") + d.text();
  throw Error(ErrorCode::InvalidArgument,
              std::string(op_) + ": the other sizes of [" + wanted + "] do not divide those of [" +
                  shape + "], so -1 has no value; write the size instead of -1",
              at_);
}

OpRecording& OpRecording::reshaped(std::string_view name, Dims dims) {
  const auto inferred = std::ranges::count(dims, Dim(-1));
  if (inferred > 1)
    throw Error(ErrorCode::InvalidArgument,
                std::string(op_) + ": expected at most one size of -1, got " +
                    std::to_string(inferred) + "; one is what the others leave",
                at_);
  if (inferred) *std::ranges::find(dims, Dim(-1)) = remaining(dims);
  return attribute(name, AttrValue(std::move(dims)));
}

Tensor OpRecording::record() { return recorder_->emit(op_, operands_, attributes_, at_); }

std::pair<Tensor, Tensor> OpRecording::recordPair() {
  Tensor first = record();
  return {first, Tensor(first.recorder(), first.id() + 1)};
}

}  // namespace lathe
