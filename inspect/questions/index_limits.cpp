// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/index_limits.h"

#include <algorithm>
#include <optional>

#include "lathe/ir/types.h"
#include "lathe/passes/match.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr int64_t kUnlimited = 7;

class Limits {
 public:
  explicit Limits(const Symbols& sizes) : sizes_(sizes) {}

  // The largest value of `v` that every user allows; nothing where none cares.
  std::optional<int64_t> of(Value v) {
    if (auto known = known_.find(v); known != known_.end()) return known->second;
    known_[v] = std::nullopt;  // values have no cycles, the map only saves work
    std::optional<int64_t> limit;
    for (OpOperand& use : v.getUses())
      if (auto l = at(use)) limit = limit ? std::min(*limit, *l) : *l;
    return known_[v] = limit;
  }

 private:
  int64_t size(Value v, int64_t axis) const {
    auto dim = dimExprOf(tensorType(v), axis);
    return dim ? dim->evaluate(sizes_).value_or(1) : 1;
  }

  std::optional<int64_t> at(OpOperand& use) {
    Operation* op = use.getOwner();
    Value v = use.get();
    if (auto gather = dyn_cast<GatherOp>(op); gather && use.get() == gather.getIndices())
      return size(gather.getX(), int64_t(gather.getAxis())) - 1;
    if (auto embedding = dyn_cast<EmbeddingOp>(op); embedding && v == embedding.getIds())
      return size(embedding.getTable(), 0) - 1;
    if (auto grouped = dyn_cast<GroupedLinearOp>(op); grouped && v == grouped.getIndices())
      return size(grouped.getW(), 0) - 1;
    if (auto update = dyn_cast<UpdateOp>(op); update && v == update.getPositions())
      return size(update.getX(), int64_t(update.getAxis())) -
             size(update.getValue(), int64_t(update.getAxis()));
    if (auto append = dyn_cast<RopeAppendOp>(op); append && v == append.getPositions())
      return size(append.getCache(), int64_t(append.getAxis())) -
             size(append.getX(), int64_t(append.getAxis()));
    if (auto update = dyn_cast<PagedUpdateOp>(op)) {
      const auto axis = int64_t(update.getAxis());
      if (v == update.getTable()) return size(update.getX(), 0) - 1;
      if (v == update.getPositions())
        return size(update.getTable(), 1) * size(update.getX(), axis) -
               size(update.getValue(), axis);
    }
    if (auto attention = dyn_cast<PagedAttentionOp>(op); attention && v == attention.getTable())
      return size(attention.getK(), 0) - 1;
    if (isMovement(op) || isa<CastOp>(op)) return of(op->getResult(0));
    if (isa<AddOp>(op)) {
      auto limit = of(op->getResult(0));
      if (!limit) return std::nullopt;
      auto other = largestOf(op->getOperand(1 - use.getOperandNumber()));
      return other ? *limit - *other : 0;
    }
    if (isa<CompareOp, SelectOp>(op) && use.getOperandNumber() == 0) return std::nullopt;
    // Arithmetic of another kind on its way to an index: nothing is known but that 0 is usual.
    if (op->getNumResults() == 1 && of(op->getResult(0))) return 0;
    return std::nullopt;
  }

  // The largest value that a ramp or a constant holds; nothing for other values.
  std::optional<int64_t> largestOf(Value v) {
    if (auto constant = splatValue(v)) return int64_t(*constant);
    Operation* def = v.getDefiningOp();
    if (auto iota = dyn_cast_or_null<IotaOp>(def)) return size(v, int64_t(iota.getAxis())) - 1;
    if (def && passesElements(def)) return largestOf(def->getOperand(0));
    return std::nullopt;
  }

  const Symbols& sizes_;
  llvm::DenseMap<Value, std::optional<int64_t>> known_;
};

}  // namespace

int64_t largestIndex(Value value, const Symbols& sizes) {
  return std::max<int64_t>(0, Limits(sizes).of(value).value_or(kUnlimited));
}

}  // namespace lathe
