// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel of a region stores: values that a row has one of, and along the columns of a row
// the others.
#include "backends/common/loops/evaluator.h"
#include "lathe/backends/region_plan.h"

namespace lathe::loops {

class RowResults {
 public:
  /// Results whose rows are equally long: one loop stores them.
  struct Columns {
    DimExpr length;
    llvm::SmallVector<unsigned> results;
  };

  RowResults(mlir::func::FuncOp region, const RowPlan& plan);

  bool isRowScalar(mlir::Value v) const {
    return plan_.scalar || (!plan_.flat && dimExprs(v).size() == plan_.rowDims.size());
  }
  DimExpr columns(mlir::Value v) const { return isRowScalar(v) ? DimExpr(1) : dimExprs(v).back(); }
  /// Of the whole result; elements where it is one row.
  DimExpr rows() const;
  llvm::SmallVector<unsigned> all() const {
    return llvm::to_vector(llvm::seq<unsigned>(0, unsigned(values.size())));
  }

  /// Computes a row: `loop` stores what has columns. The values that the row has one of are left to
  /// the caller, with the numbers of their results.
  llvm::SmallVector<std::pair<unsigned, mlir::Value>> storeColumns(
      Evaluator& e, llvm::function_ref<void(const Columns&)> loop);
  /// (operand, result) pairs that may be one buffer, once the kernel has been made; `rowScalars`:
  /// also of results that a row has one value of.
  std::vector<std::pair<unsigned, unsigned>> inPlace(const Evaluator& e, bool rowScalars) const;

  llvm::SmallVector<mlir::Value> values;  ///< of the region
  int loops = 0;                          ///< over elements or columns that store

 private:
  mlir::func::FuncOp region_;
  const RowPlan& plan_;
};

}  // namespace lathe::loops
