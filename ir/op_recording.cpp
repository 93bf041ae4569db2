// SPDX-License-Identifier: Apache-2.0
#include "ir/op_recording.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/composing.h"
#include "ir/operand_checks.h"
#include "lathe/runtime/error.h"

namespace lathe {

void OpRecording::fail(const std::string& text) const {
  throw Error(ErrorCode::InvalidArgument, Composing::named(std::string(op_) + ": " + text), at_);
}

void OpRecording::expectThere(std::string_view name, const Tensor& x) const {
  if (!x.defined())
    fail("expected a tensor, got an empty handle as '" + std::string(name) +
         "'; was it moved or never assigned?");
}

OpRecording& OpRecording::operand(std::string_view name, const Tensor& x) {
  expectThere(name, x);
  if (!recorder_) recorder_ = x.recorder(at_);
  return optional(x);
}

OpRecording& OpRecording::operands(std::string_view name, const std::vector<Tensor>& list) {
  if (list.empty()) fail("expected at least one tensor as '" + std::string(name) + "', got none");
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
    fail("expected a finite " + std::string(name) + ", got " + numberText(*number));
  attributes_.push_back({name, std::move(value)});
  return *this;
}

int64_t OpRecording::fromFront(int64_t axis) const {
  const Tensor& x = operands_[0];
  recorder_->expectValue(x.id(), at_);
  if (auto rank = recorder_->rankOf(x.id()); rank && (axis < -*rank || axis >= *rank))
    fail("axis " + std::to_string(axis) + " is outside rank " + std::to_string(*rank) + " of " +
         typeTextOf(x));
  return recorder_->axisFromFront(x.id(), axis);
}

OpRecording& OpRecording::axis(std::string_view name, int64_t axis) {
  return attribute(name, AttrValue(fromFront(axis)));
}

OpRecording& OpRecording::axes(std::string_view name, Axes axes) {
  for (int64_t& axis : axes) axis = fromFront(axis);
  return attribute(name, AttrValue(std::move(axes)));
}

OpRecording& OpRecording::reducedAxes(std::string_view name, Axes axes) {
  if (axes.empty()) fail("no axes are given; name them, or all axes of x for a scalar");
  for (int64_t& axis : axes) axis = fromFront(axis);
  // In a pattern, where the rank is unknown, axes from the back stay negative: they have no order.
  if (recorder_->rankOf(operands_[0].id())) std::ranges::sort(axes);
  if (auto twice = std::ranges::adjacent_find(axes); twice != axes.end())
    fail("axis " + std::to_string(*twice) + " is named twice; name each axis once");
  return attribute(name, AttrValue(std::move(axes)));
}

OpRecording& OpRecording::permutation(std::string_view name, Axes axes) {
  const bool isIdentity = axes == Axes{0, 1};
  const auto rank = axes.size() == 2 && !isIdentity ? recorder_->rankOf(operands_[0].id())
                                                    : std::optional<int64_t>();
  if (isIdentity || (rank && *rank > 2))
    fail("{" + std::to_string(axes[0]) + ", " + std::to_string(axes[1]) + "} " +
         (isIdentity ? "is the permutation that changes nothing"
                     : "names two of " + std::to_string(*rank) +
                           " axes, expected a permutation of all of them") +
         "; swapAxes(x, " + std::to_string(axes[0]) + ", " + std::to_string(axes[1]) +
         ") exchanges two axes");
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
  fail("the other sizes of [" + wanted + "] do not divide those of [" + shape +
       "], so -1 has no value; write the size instead of -1");
}

OpRecording& OpRecording::reshaped(std::string_view name, Dims dims) {
  const auto inferred = std::ranges::count(dims, Dim(-1));
  if (inferred > 1)
    fail("expected at most one size of -1, got " + std::to_string(inferred) +
         "; one is what the others leave");
  if (inferred) *std::ranges::find(dims, Dim(-1)) = remaining(dims);
  return attribute(name, AttrValue(std::move(dims)));
}

Tensor OpRecording::record() { return recorder_->emit(op_, operands_, attributes_, at_); }

std::pair<Tensor, Tensor> OpRecording::recordPair() {
  Tensor first = record();
  return {first, Tensor(first.recorder(), first.id() + 1)};
}

}  // namespace lathe
