// SPDX-License-Identifier: Apache-2.0
#pragma once
// Spellings that several fusions share.
#include <optional>

#include "lathe/ir/types.h"
#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/match.h"

namespace lathe {

// --- ops with attributes that the replacement checks
/// A cast to any dtype, which the replacement makes again.
Tensor anyCast(DagPattern& p, const Tensor& x, LATHE_PATTERN_AT);
/// A cast that the replacement leaves out: from float to float (onlyRounds).
Tensor roundingCast(DagPattern& p, const Tensor& x, LATHE_PATTERN_AT);
Tensor anyAxes(DagPattern& p, const Tensor& reduce);
Tensor anySlice(DagPattern& p, const Tensor& x);
Tensor anyReshape(DagPattern& p, const Tensor& x);
Tensor anyConcat(DagPattern& p, const std::vector<Tensor>& inputs);

/// The mean over the last axis: reduce_mean, or reduce_sum divided by the size or multiplied by its
/// inverse.
struct AverageForm {
  Tensor mean, sum, count, inverse, value;
};
AverageForm averageForm(DagPattern& p, const Tensor& x);
/// False after Match::decline if it is not the mean over exactly the last axis.
bool isMeanOfLastAxis(Match& m, const AverageForm& form);

/// x / sqrt(v + epsilon) in every spelling. The root of the pattern, so it is one of two ops.
struct RootForm {
  Tensor epsilon, scaled;
};
enum class RootSpelling { Product, Quotient };
RootForm rootForm(DagPattern& p, const Tensor& x, const Tensor& v, RootSpelling spelling);
/// epsilon, or 0 where nothing is added.
double epsilonOf(Match& m, const RootForm& form);

// --- values
/// True if the value is the op's only one and nobody but one op reads it.
bool isUsedOnce(mlir::Value v);
/// What stands for one element per last dim of `like`, as a value of rank 1: a vector itself, or
/// [1, .., 1, d] reshaped. Null, without a reason, if it is neither.
mlir::Value perLastDim(Match& m, mlir::Value v, mlir::RankedTensorType like);
/// True if `v` has an element of its own for each element of the last axis of `like`. One column
/// stretches over the axis in an elementwise op; to a fused op the width itself may say something:
/// the table of a rotation says with it how much of the head turns.
bool spansLastAxis(mlir::Value v, mlir::RankedTensorType like);
/// True for the number of a matched slice's axes but `axis` (from the front) that are whole.
bool isWholeBut(SliceOp slice, int64_t axis);
/// A reshape to `dims`; the value itself if it has them.
mlir::Value reshaped(Match& m, mlir::Value v, llvm::ArrayRef<mlir::StringAttr> dims);
/// A positive constant that `op` (mul or div) scales its other operand with; the type is kept.
struct Scaling {
  mlir::Value x;
  double factor;
};
std::optional<Scaling> readScaling(mlir::Operation* op);

/// Reductions without their axis, reshaped to have it as 1, keep it.
void addKeepDimsPatterns(std::vector<std::shared_ptr<const DagPattern>>& library,
                         mlir::MLIRContext* context);

}  // namespace lathe
