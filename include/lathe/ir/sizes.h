// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes of values where some symbols have numbers.
#include <map>
#include <string>

#include "lathe/runtime/dim_expr.h"
#include "mlir/IR/Value.h"

namespace lathe {

class Sizes {
 public:
  using Symbols = std::map<std::string, int64_t, std::less<>>;
  /// Keeps a reference to the numbers.
  explicit Sizes(const Symbols& symbols) : symbols_(symbols) {}

  DimExpr dim(mlir::Value tensor, int64_t axis) const;
  /// An axis counted from the last, which is 1.
  DimExpr dimFromLast(mlir::Value tensor, int64_t axis) const;
  DimExpr count(mlir::Value tensor) const;
  /// The count for a tensor of floats, else 0.
  DimExpr reals(mlir::Value tensor) const;
  DimExpr bytes(mlir::Value tensor) const;

 private:
  const Symbols& symbols_;
};

}  // namespace lathe
