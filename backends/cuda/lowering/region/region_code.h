// SPDX-License-Identifier: Apache-2.0
#pragma once
// The code of one kernel or device function of a region, from its evaluator to its text.
#include "backends/cuda/lowering/region/thread_evaluator.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

class RegionCode {
 public:
  /// `names` are those of the operands, then of the results; `words` are names that the frame uses.
  RegionCode(mlir::func::FuncOp region, bool flat, const std::vector<std::string>& names,
             llvm::ArrayRef<const char*> words = {});

  /// "const int row = blockIdx.x;" at the beginning, as an integer in [0, hi] of this alignment.
  Coord variable(const std::string& name, const std::string& expression, bool wide,
                 int64_t hi = Coord::kUnbounded, int64_t align = 1);
  /// A parameter that the frame declares.
  mlir::Value parameter(mlir::Type type, const std::string& name) {
    return frame_.variable(type, name);
  }
  /// The text of a size: a number or its parameter.
  std::string sizeText(const DimExpr& size);
  /// `body` is the threads' work where the condition holds, else `otherwise`: nothing of either is
  /// put in front of the question.
  void work(
      const Coord& x, mlir::arith::CmpIPredicate predicate, const Coord& y,
      llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise = [] {});
  /// Ends the code: its statements, indented once. Empty if it failed; the evaluator says why.
  std::string text();

 private:
  static mlir::func::FuncOp functionIn(mlir::ModuleOp module, mlir::Location at);

  mlir::func::FuncOp region_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  mlir::OpBuilder builder_;
  Names names_;
  Frame frame_;
  std::string head_;

 public:
  loops::LoopBuilder k;
  ThreadEvaluator e;
};

/// All of the region's results are rounded to 16 bits: exponentials may be approximate.
bool roundsMuch(mlir::func::FuncOp region);

}  // namespace lathe::cuda
