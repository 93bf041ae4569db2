// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/dag_placement.h"

#include "llvm/ADT/SetVector.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace lathe {

Placement placementOf(Operation* root, ArrayRef<Operation*> created,
                      ArrayRef<std::pair<Value, Value>> replaced) {
  Block* block = root->getBlock();
  Placement place{.before = root};
  llvm::SmallPtrSet<Value, 4> old;
  for (auto [matched, by] : replaced) {
    old.insert(matched);
    if (matched.getDefiningOp() == root) continue;
    for (Operation* user : matched.getUsers()) {
      Operation* at = block->findAncestorOpInBlock(*user);
      if (!at) {
        place.problem = "a user of a replaced value lies outside the block";
        return place;
      }
      if (at->isBeforeInBlock(place.before)) place.before = at;
    }
  }
  if (place.before == root) return place;
  // The new ops and everything they read that is defined too late.
  llvm::SetVector<Operation*> slice(created.begin(), created.end());
  for (size_t i = 0; i < slice.size(); ++i) {
    Operation* op = slice[i];
    if (op->getNumRegions() || !isMemoryEffectFree(op)) {
      place.problem =
          (op->getName().getStringRef() + " cannot move up to the value's first user").str();
      return place;
    }
    for (Value operand : op->getOperands()) {
      if (old.contains(operand)) {
        place.problem =
            "the replacement needs " +
            (i < created.size()
                 ? std::string("the value it replaces")
                 : (op->getName().getStringRef() + ", which reads the value that it replaces")
                       .str());
        return place;
      }
      Operation* def = operand.getDefiningOp();
      if (def && def->getBlock() == block && !def->isBeforeInBlock(place.before)) slice.insert(def);
    }
  }
  place.moved.assign(slice.begin(), slice.end());
  llvm::sort(place.moved, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  return place;
}

}  // namespace lathe
