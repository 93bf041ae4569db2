// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a graph decides by floats: which element is the largest, whether one number is below
// another, which whole number is next. Where two candidates lie closer than rounding, a right
// result may follow from either.
#include <cstdint>
#include <vector>

#include "lathe/runtime/array.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"

namespace lathe {

/// The ops of a module's functions that decide by floats, in order.
std::vector<mlir::Operation*> choosingOps(mlir::ModuleOp module);

/// What such an op met in a run.
struct OpChoice {
  std::vector<Array> operands;
  std::vector<Array> computed;  ///< results that follow from the operands
  std::vector<Array> taken;     ///< results that the run went on with
};

/// Another way to choose: some elements of the results and the values that they would have.
struct OtherElement {
  unsigned result;
  int64_t element;
  double value;
};
using OtherChoice = std::vector<OtherElement>;

/// The other ways to choose that rounding may take. An element `x` of operand `i` may be off by
/// `allowed[i] * (|x| + m)` with `m` the median of magnitudes, as the contract of docs/questions.md
/// has it. Candidates may change places if what they may be off covers the gap between them.
class OtherChoices {
 public:
  /// All of them must outlive this.
  OtherChoices(mlir::Operation* op, const OpChoice& choice, const std::vector<double>& allowed);
  /// Parts of the results that are chosen independently: an element, or a row of top_k.
  int64_t rows() const;
  /// Each alone, beside what was taken in this row.
  std::vector<OtherChoice> of(int64_t row) const;

 private:
  double at(size_t operand, int64_t i) const { return choice_.operands[operand].at(i); }
  double slack(size_t operand, double value) const;
  bool near(double a, double b) const;  // of the first operand
  std::vector<OtherChoice> ofBest(int64_t row) const;
  std::vector<OtherChoice> ofLargest(int64_t row) const;
  std::vector<OtherChoice> ofComparison(int64_t row) const;
  std::vector<OtherChoice> ofStep(int64_t row) const;

  mlir::Operation* op_;
  const OpChoice& choice_;
  const std::vector<double>& allowed_;
  std::vector<double> medians_;
};

}  // namespace lathe
