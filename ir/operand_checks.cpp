// SPDX-License-Identifier: Apache-2.0
#include "ir/operand_checks.h"

#include "ir/composing.h"

namespace lathe {

std::string typeTextOf(const Tensor& x) {
  std::string text = std::string(nameOf(x.dtype())) + "[";
  const Dims shape = x.shape();
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].text();
  return text + "]";
}

void failIn(std::string_view function, const std::string& text, std::source_location at,
            ErrorCode code) {
  // The caller knows the function that he called, not those that it calls.
  if (const char* called = Composing::function()) function = called;
  throw Error(code, std::string(function) + ": " + text, at);
}

void expectTensor(std::string_view function, const Tensor& x, std::source_location at) {
  if (Recorder* recorder = x.recorder(at)) return recorder->expectValue(x.id(), at);
  failIn(function, "expected a tensor, got an empty handle; was it moved or never assigned?", at);
}

int64_t axisIn(std::string_view function, const Tensor& x, int64_t axis, std::source_location at) {
  expectTensor(function, x, at);
  const int64_t rank = x.rank(at);
  if (axis < -rank || axis >= rank)
    failIn(function,
           "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank) + " of " +
               typeTextOf(x),
           at);
  return axis < 0 ? axis + rank : axis;
}

int64_t fixedSize(std::string_view function, const Tensor& x, int64_t axis, const char* why,
                  std::source_location at) {
  if (auto size = x.dim(axis, at).asConstant()) return *size;
  failIn(function,
         "expected an axis " + std::to_string(axis) + " whose size is a number, got " +
             typeTextOf(x) + "; " + why,
         at);
}

void expectReals(std::string_view function, const Tensor& x, std::source_location at) {
  expectTensor(function, x, at);
  if (!isFloat(x.dtype(at)))
    failIn(function, "expected floats, got " + typeTextOf(x) + "; cast them first", at);
}

void expectWholeNumbers(std::string_view function, const Tensor& x, std::source_location at) {
  expectTensor(function, x, at);
  if (isFloat(x.dtype(at)) || x.dtype() == DType::Bool)
    failIn(function, "expected integers, got " + typeTextOf(x) + "; cast them first", at);
}

void expectMask(std::string_view function, const Tensor& mask, std::source_location at) {
  expectTensor(function, mask, at);
  if (mask.dtype(at) != DType::Bool)
    failIn(function,
           "expected a bool mask, got " + typeTextOf(mask) +
               "; `mask != 0` makes one of ones and zeros",
           at);
}

}  // namespace lathe
