// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/weight_only.h"

#include "lathe/ir/dialect.h"
#include "lathe/ir/ops.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace lathe {

// `seen` are the ops behind the value.
static bool isFedByWeights(Value v, llvm::SmallPtrSetImpl<Operation*>& seen) {
  Operation* d = v.getDefiningOp();
  if (!d || d->getNumRegions() || !isMemoryEffectFree(d)) return false;
  if (!seen.insert(d).second) return true;
  return llvm::all_of(d->getOperands(), [&](Value o) { return isFedByWeights(o, seen); });
}

bool isWeightOnly(Value value) {
  llvm::SmallPtrSet<Operation*, 8> seen;
  return isFedByWeights(value, seen);
}

bool isLoadedWeight(Value value) {
  llvm::SmallPtrSet<Operation*, 8> seen;
  return isFedByWeights(value, seen) &&
         llvm::any_of(seen, [](Operation* op) { return isa<WeightOp>(op); });
}

void moveWeightBefore(Value value, Operation* op, RewriterBase& rewriter) {
  Operation* d = value.getDefiningOp();
  if (d->isBeforeInBlock(op)) return;
  for (Value o : d->getOperands()) moveWeightBefore(o, op, rewriter);
  // Taken out and put in: after a move within a block MLIR numbers all its ops anew at the next
  // question about their order, which for every layer of a model is quadratic in the layers.
  const OpBuilder::InsertPoint before(d->getBlock(), std::next(d->getIterator()));
  d->remove();
  op->getBlock()->getOperations().insert(op->getIterator(), d);
  if (auto* listener = rewriter.getListener()) listener->notifyOperationInserted(d, before);
}

}  // namespace lathe
