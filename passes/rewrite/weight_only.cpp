// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/weight_only.h"

#include "lathe/ir/dialect.h"
#include "lathe/ir/ops.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/rewrite/asked_once.h"

using namespace mlir;

namespace lathe {

// What a value depends on.
enum class Fed { ByOthers, ByConstants, ByWeights };

static Fed fedBy(Value v, AskedOnce<Fed, Operation*>& asked) {
  Operation* d = v.getDefiningOp();
  if (!d || d->getNumRegions() || !isMemoryEffectFree(d)) return Fed::ByOthers;
  return asked.of(d, [&] {
    Fed fed = isa<WeightOp>(d) ? Fed::ByWeights : Fed::ByConstants;
    for (Value o : d->getOperands()) {
      const Fed its = fedBy(o, asked);
      if (its == Fed::ByOthers) return its;
      fed = std::max(fed, its);
    }
    return fed;
  });
}
static Fed fedBy(Value value) {
  AskedOnce<Fed, Operation*> asked;
  return fedBy(value, asked);
}

bool isWeightOnly(Value value) { return fedBy(value) != Fed::ByOthers; }
bool isLoadedWeight(Value value) { return fedBy(value) == Fed::ByWeights; }

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
