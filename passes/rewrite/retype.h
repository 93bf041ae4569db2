// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same ops on other types: a function of smaller sizes, or of another dtype.
#include <functional>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lathe {

/// What changes; either may be empty.
struct Retyping {
  /// A size in a type, or in an attribute of an op (`shape`, `starts`, `sizes`).
  std::function<mlir::StringAttr(mlir::StringAttr dim)> dim;
  /// The element type of an argument, a weight or a constant. Casts keep their own.
  std::function<mlir::Type(mlir::Type)> element;
};

/// A copy of a function of lathe ops, where the builder stands. Every result type is inferred
/// again. Null, and nothing is left behind, where an op's constraints no longer hold or a table of
/// constants would need other values.
mlir::func::FuncOp retyped(mlir::OpBuilder& builder, mlir::func::FuncOp function,
                           const Retyping& retyping);

}  // namespace lathe
