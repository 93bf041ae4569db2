// SPDX-License-Identifier: Apache-2.0
#include "passes/choose_weight_layout.h"

#include "ir/types.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace lathe {

// True if the value depends on weights and constants alone.
static bool isWeightOnly(Value v, llvm::SmallPtrSetImpl<Operation*>& seen) {
  Operation* d = v.getDefiningOp();
  if (!d || d->getNumRegions() || !isMemoryEffectFree(d)) return false;
  if (!seen.insert(d).second) return true;
  return llvm::all_of(d->getOperands(), [&](Value o) { return isWeightOnly(o, seen); });
}

void chooseWeightLayout(ModuleOp module, const std::function<bool(LinearOp)>& wants) {
  module.walk([&](LinearOp op) {
    llvm::SmallPtrSet<Operation*, 8> seen;
    if (op.getLayout() == WeightLayout::packed || !isWeightOnly(op.getW(), seen) || !wants(op))
      return;
    OpBuilder b(op);
    Value packed = PackOp::create(b, op.getLoc(), op.getW(), op.getLayout());
    op.getWMutable().assign(packed);
    op.setLayout(WeightLayout::packed);
  });
}

}  // namespace lathe
