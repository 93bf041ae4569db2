// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of which each rank has a share, also where the ranks need not divide their number.
#include <optional>
#include <string>

#include "ir/op_builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/shard/cut.h"

namespace lathe {

/// Declares the sizes of the shares of rows whose number is known at run time alone.
class PaddedRows {
 public:
  PaddedRows(mlir::ModuleOp module, int64_t ranks) : module_(module), ranks_(ranks) {}

  /// Along which axis of a sum of this type each rank keeps its rows. Nothing where there are never
  /// as many rows as ranks, of which `why` is told.
  std::optional<Cut> cutOf(mlir::RankedTensorType type, std::string* why);

 private:
  /// The largest value of a size; nothing without ranges of its symbols.
  std::optional<int64_t> mostOf(const DimExpr& size);
  /// The size of a rank's part of an axis.
  mlir::StringAttr partOf(mlir::StringAttr dim);

  mlir::ModuleOp module_;
  int64_t ranks_;
  llvm::DenseMap<mlir::StringAttr, mlir::StringAttr> parts_;  // by the size of the axis
};

/// Of a cut that is padded: a value with zeros behind its rows, so that all parts are equal, and
/// one without what lies behind them. For ranks that are simulated in one graph.
mlir::Value withPadding(OpMaker& m, mlir::Value v, const Cut& cut);
mlir::Value withoutPadding(OpMaker& m, mlir::Value v, const Cut& cut);

}  // namespace lathe
