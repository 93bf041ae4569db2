// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same ops on other types: a function of smaller sizes, or of another dtype.
#include <functional>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lathe {

/// What changes. Either may be empty.
struct Retyping {
  /// The type of an argument, a weight or a constant.
  std::function<mlir::RankedTensorType(mlir::RankedTensorType)> type;
  /// A size in an attribute of an op (`shape`, `starts`, `sizes`).
  std::function<int64_t(int64_t)> size;
};

/// A copy of a function of lathe ops, where the builder stands. Every result type is inferred
/// again. Null, and nothing is left behind, where an op's constraints no longer hold or a table of
/// constants would need other values.
mlir::func::FuncOp retyped(mlir::OpBuilder& builder, mlir::func::FuncOp function,
                           const Retyping& retyping);

}  // namespace lathe
