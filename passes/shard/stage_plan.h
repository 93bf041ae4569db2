// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the entry points of a module are cut into the stages of a pipeline.
//
// The ops of an entry point stand in an order in which each reads what earlier ones made; a stage
// has a run of them. A cut is good where little crosses it: in a transformer the hidden values of
// one layer, in front of the next. The entry point that reads most weights is cut first, as evenly
// in bytes of weights as cuts with little to cross allow; the others follow it, because a stage has
// one set of weights and states for all of them.
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace lathe {

struct StagePlan {
  /// By op: the stage that computes it. Weights and what each stage computes for itself are not
  /// there.
  llvm::DenseMap<mlir::Operation*, int64_t> stageOf;
  /// By name of a state: the stage that has it; of one that no op reads or writes, the first.
  llvm::StringMap<int64_t> states;

  /// The stage that computes a value; -1 for what every stage has or computes.
  int64_t of(mlir::Value v) const {
    mlir::Operation* op = v.getDefiningOp();
    auto it = op ? stageOf.find(op) : stageOf.end();
    return it == stageOf.end() ? -1 : it->second;
  }
};

/// Throws Error (InvalidArgument) for more stages than there are places to cut, and (Unsupported)
/// where two entry points go through weights and states in different orders.
StagePlan planStages(mlir::ModuleOp module, int64_t stages);

}  // namespace lathe
