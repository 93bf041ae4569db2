// SPDX-License-Identifier: Apache-2.0
#include "passes/observe.h"

#include "lathe/ir/types.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace {

// All that `roots` are computed from in their block, in its order.
SmallVector<Operation*> producersOf(Block& block, ValueRange roots) {
  SetVector<Operation*> found;
  SmallVector<Value> work(roots);
  while (!work.empty())
    if (Operation* def = work.pop_back_val().getDefiningOp(); def && found.insert(def))
      work.append(def->operand_begin(), def->operand_end());
  SmallVector<Operation*> ordered;
  for (Operation& op : block)
    if (found.contains(&op)) ordered.push_back(&op);
  return ordered;
}

void isolate(func::FuncOp f) {
  Block& block = f.getBody().front();
  Operation* end = block.getTerminator();
  SmallVector<unsigned> indices;
  SmallVector<Value> roots;
  for (unsigned i = 0; i < f.getNumResults(); ++i) {
    auto how = f.getResultAttrOfType<StringAttr>(i, kObserved);
    if (!how || how.getValue() != kObservedAgain || !end->getOperand(i).getDefiningOp()) continue;
    indices.push_back(i);
    roots.push_back(end->getOperand(i));
  }
  if (roots.empty()) return;
  SmallVector<Operation*> ops = producersOf(block, roots);
  SetVector<Value> arguments;
  SmallVector<Location> locations;
  for (Operation* op : ops) {
    locations.push_back(op->getLoc());
    for (Value v : op->getOperands())
      if (isa<BlockArgument>(v)) arguments.insert(v);
  }
  OpBuilder b(end);
  Location at = FusedLoc::get(f.getContext(), locations);
  SmallVector<Type> types;
  for (Value v : roots) types.push_back(v.getType());
  auto region = RegionOp::create(b, at, types, arguments.getArrayRef());
  region->setAttr(kObserved, b.getUnitAttr());
  Block* body = b.createBlock(&region.getBody());
  IRMapping map;
  for (Value v : arguments) map.map(v, body->addArgument(v.getType(), v.getLoc()));
  for (Operation* op : ops) b.clone(*op, map);
  SmallVector<Value> results;
  for (Value v : roots) results.push_back(map.lookup(v));
  YieldOp::create(b, at, results);
  for (auto [i, result] : llvm::zip(indices, region.getOutputs())) end->setOperand(i, result);
  // What nothing else needs is computed in the region alone.
  for (Operation* op : llvm::reverse(ops))
    if (isOpTriviallyDead(op)) op->erase();
}

void inlineBack(RegionOp region) {
  OpBuilder b(region);
  IRMapping map;
  Block& body = region.getBody().front();
  map.map(body.getArguments(), region.getInputs());
  for (Operation& op : body.without_terminator()) b.clone(op, map);
  for (auto [result, v] : llvm::zip(region.getOutputs(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(map.lookup(v));
  region.erase();
}

}  // namespace

std::string ObservedResult::name() const {
  auto name =
      const_cast<func::FuncOp&>(function).getResultAttrOfType<StringAttr>(index, "lathe.name");
  return name ? name.str() : "result" + std::to_string(index);
}

std::vector<ObservedResult> observedResults(ModuleOp module) {
  std::vector<ObservedResult> found;
  for (auto f : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < f.getNumResults(); ++i)
      if (f.getResultAttr(i, kObserved)) found.push_back({f, i});
  return found;
}

void isolateObserved(ModuleOp module) {
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal()) isolate(f);
}

void inlineObserved(ModuleOp module) {
  SmallVector<RegionOp> regions;
  module.walk([&](RegionOp op) {
    if (op->hasAttr(kObserved)) regions.push_back(op);
  });
  for (RegionOp region : regions) inlineBack(region);
}

}  // namespace lathe
