// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/index_checks.h"

#include "lathe/passes/region_ops.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// The attribute of numberChecks.
constexpr const char* kCheck = "check";

bool checksIndex(Operation& op) { return isa<GatherOp, EmbeddingOp, UpdateOp>(op); }

int numberOf(Operation* op) {
  if (auto noted = notedCheck(op)) return int(*noted);
  int number = 0;
  for (Operation& other : *op->getBlock()) {
    if (&other == op) break;
    number += checksIndex(other);
  }
  return number;
}

}  // namespace

ArrayAttr originsOfChecks(RegionOp region) {
  Builder b(region.getContext());
  SmallVector<Attribute> origins;
  for (Operation& op : region.getBody().front())
    if (checksIndex(op)) {
      // The line of the cache write itself is the first; a table lies deepest.
      const Location loc = isa<UpdateOp>(op) ? firstOrigin(op.getLoc()) : op.getLoc();
      origins.push_back(b.getStringAttr(originText(loc)));
    }
  return b.getArrayAttr(origins);
}

void numberChecks(func::FuncOp region) {
  Builder b(region.getContext());
  int64_t number = 0;
  for (Operation& op : region.getBody().front())
    if (checksIndex(op)) op.setAttr(kCheck, b.getI64IntegerAttr(number++));
}

std::optional<int64_t> notedCheck(Operation* op) {
  if (auto noted = op->getAttrOfType<IntegerAttr>(kCheck)) return noted.getInt();
  return std::nullopt;
}

IndexCheck checkOf(UpdateOp update) {
  const size_t axis = size_t(update.getAxis());
  return {numberOf(update), dimExprs(update.getX())[axis], dimExprs(update.getValue())[axis]};
}

std::vector<IndexCheck> checksOfGathers(func::FuncOp region) {
  std::vector<IndexCheck> checks;
  for (Operation& op : region.getBody().front()) {
    if (auto gather = dyn_cast<GatherOp>(op))
      checks.push_back({numberOf(gather), dimExprs(gather.getX())[size_t(gather.getAxis())], 0});
    else if (auto embedding = dyn_cast<EmbeddingOp>(op))
      checks.push_back({numberOf(embedding), dimExprs(embedding.getTable())[0], 0});
  }
  return checks;
}

}  // namespace lathe::cuda
