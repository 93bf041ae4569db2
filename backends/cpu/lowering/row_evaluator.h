// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the common evaluator leaves to a row kernel of a CPU: its frame of pointers and sizes, lanes
// with masks or single elements at the end, and rows of scratch between two passes.
#include <memory>

#include "backends/common/loops/evaluator.h"
#include "backends/cpu/lowering/tier.h"

namespace lathe::cpu {

using loops::Accumulators;
using loops::Coord;
using loops::Index;

class RowEvaluator : public loops::Evaluator {
 public:
  RowEvaluator(loops::LoopBuilder& builder, mlir::func::FuncOp region,
               mlir::LLVM::LLVMFuncOp kernel, const Tier& tier, bool flat);

  /// Runs `body` over [lo, hi) in vectors, the rest masked or one by one. `cuts` are positions at
  /// which a new vector starts.
  Accumulators overLanes(mlir::Value lo, mlir::Value hi, llvm::ArrayRef<int64_t> cuts,
                         int64_t width, Accumulators accumulators, LaneBody body);
  int64_t widthFor(std::optional<int64_t> length, llvm::ArrayRef<int64_t> cuts) const;
  /// Where a vector should start anew along the last axis, because another piece begins.
  llvm::ArrayRef<int64_t> cutsOf(mlir::Value tensor) const;

  const std::vector<std::string>& sizes() const { return sizes_; }
  DimExpr scratchBytes = 0;

 private:
  mlir::Value makePointer(unsigned number) override;
  mlir::Value makeSize(const DimExpr& dim) override;
  mlir::Value makeTable(ConstantOp op) override;
  void report(GatherOp op, mlir::Value bad, mlir::Value index) override;
  mlir::Value loadSpan(const loops::Source& source, mlir::Type stored, const Coord& at,
                       const Index& index) override;
  bool isWorthKeeping(mlir::Value v) const override;
  void keep(mlir::Value tensor, mlir::Value value, const Index& index) override;
  mlir::Value kept(mlir::Value tensor, const Index& index) override;
  void keptInRow(mlir::Value tensor) override { k.remember(rowKey(tensor), k.i64(0)); }
  bool splitsNan() const override { return true; }
  int64_t laneWidth(mlir::Value tensor, int64_t axis) override;
  Accumulators overLanes(mlir::Value tensor, int64_t axis, Accumulators acc,
                         LaneBody body) override;
  llvm::SmallVector<int64_t> findCuts(mlir::Value tensor) const;
  llvm::ArrayRef<int64_t> cutsAlong(mlir::Value tensor, int64_t axis) const;
  mlir::Value tailMask(mlir::Value count, int64_t width);
  loops::Key rowKey(mlir::Value tensor) const;

  mlir::LLVM::LLVMFuncOp kernel_;
  const Tier& tier_;
  int64_t lanes_;
  std::vector<std::string> sizes_;
  llvm::DenseMap<mlir::Value, std::pair<DimExpr, mlir::Type>> slots_;
  mutable llvm::DenseMap<mlir::Value, std::unique_ptr<llvm::SmallVector<int64_t>>> cuts_;
};

}  // namespace lathe::cpu
