// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the generated builder functions (ir/recorded_ops.cpp) do with their parameters.
#include <utility>

#include "lathe/ir/recorded_ops.h"

namespace lathe {

/// One op on its way to the recorder: operands first, then attributes. Errors carry the caller's
/// line.
class OpRecording {
 public:
  OpRecording(std::string_view op, std::source_location at) : op_(op), at_(at) {}

  /// Throws Error (InvalidArgument) for an empty handle.
  OpRecording& operand(std::string_view name, const Tensor& x);
  OpRecording& operands(std::string_view name, const std::vector<Tensor>& list);
  OpRecording& optional(const Tensor& x);
  /// Only names the graph: the op has no operands.
  OpRecording& like(const Tensor& x);

  /// Throws Error (InvalidArgument) for a double that is not finite.
  OpRecording& attribute(std::string_view name, AttrValue value);
  /// Axes that may count from the back, of the first operand.
  OpRecording& axis(std::string_view name, int64_t axis);
  OpRecording& axes(std::string_view name, Axes axes);
  /// In any order. Throws Error (InvalidArgument) for none: PyTorch reduces all axes then, which
  /// nobody means.
  OpRecording& reducedAxes(std::string_view name, Axes axes);
  /// Throws Error (InvalidArgument) for {0, 1} and for two of more axes: they are meant as
  /// PyTorch's transpose(0, 1), which swapAxes is.
  OpRecording& permutation(std::string_view name, Axes axes);
  /// The dims of the first operand's elements under another shape; one of them may be -1: what the
  /// others leave.
  OpRecording& reshaped(std::string_view name, Dims dims);

  Tensor record();
  std::pair<Tensor, Tensor> recordPair();

 private:
  [[noreturn]] void fail(const std::string& text) const;
  void expectThere(std::string_view name, const Tensor& x) const;
  int64_t fromFront(int64_t axis) const;
  Dim remaining(const Dims& dims) const;

  std::string_view op_;
  std::source_location at_;
  Recorder* recorder_ = nullptr;
  std::vector<Tensor> operands_;
  std::vector<NamedAttr> attributes_;
};

}  // namespace lathe
