// SPDX-License-Identifier: Apache-2.0
#pragma once
// How one reduction accumulates in a loop: what its op says (ReductionOp), lane by lane.
#include "backends/common/loops/evaluator.h"

namespace lathe::loops {

class Reduction {
 public:
  using Values = LoopBuilder::Values;

  Reduction(Evaluator& e, mlir::Operation* op)
      : location(e.locationOf(op)), k(e.k), m(e.m), op(llvm::cast<ReductionOp>(op)) {
    compute = computedType(tensorType(op->getOperand(0)).getElementType());
    const auto combiner = this->op.combiner();
    isArg = combiner == "ArgMax" || combiner == "ArgMin";
    split = e.splitsNan() && llvm::isa<mlir::FloatType>(compute) &&
            (combiner == "Max" || combiner == "Min");
    least = combiner == "Min";
  }

  mlir::Location location;

  bool wantsPosition() const { return isArg; }
  size_t count() const { return isArg || split ? 2 : 1; }

  Values start(int64_t width) const {
    mlir::Type type = compute;
    if (width > 1) type = mlir::VectorType::get({width}, compute);
    Values acc = op.start(k, type);
    if (split) acc.push_back(acc[0]);
    return acc;
  }

  /// The accumulators of the operand's value alone; lanes outside of the mask count as nothing.
  Values lift(mlir::Value x, const Coord& position, mlir::Value mask, int64_t width) const {
    mlir::Value at;
    if (isArg) {
      at = k.widened(m.values(position, width));
      if (width > 1 && position.uniform()) at = k.splat(at, width);
    }
    Values acc = split ? Values{x, x} : op.lift(k, x, at);
    if (!mask) return acc;
    Values none = start(width);
    for (auto [value, nothing] : llvm::zip(acc, none))
      value = k.make<mlir::arith::SelectOp>(mask, value, nothing);
    return acc;
  }

  Values combine(mlir::ValueRange a, mlir::ValueRange b) const {
    if (!split) return op.combine(k, a, b);
    mlir::Value better = k.compare(least ? Compare::lt : Compare::gt, a[0], b[0]);
    // The best loses a NaN (one vmaxps); the second accumulator keeps the last one seen.
    return {k.make<mlir::arith::SelectOp>(better, a[0], b[0]),
            k.make<mlir::arith::SelectOp>(k.isNan(b[1]), b[1], a[1])};
  }

  /// All lanes into one, halving.
  Values fold(Values acc, int64_t width) const {
    for (; width > 1; width /= 2) {
      llvm::SmallVector<int32_t> low, high;
      for (int32_t i = 0; i < width / 2; ++i)
        low.push_back(i), high.push_back(int32_t(width / 2) + i);
      Values a, b;
      for (mlir::Value v : acc)
        a.push_back(k.shuffle(v, v, low)), b.push_back(k.shuffle(v, v, high));
      acc = combine(a, b);
    }
    for (mlir::Value& v : acc)
      if (llvm::isa<mlir::VectorType>(v.getType())) v = k.extract(v, 0);
    return acc;
  }

  mlir::Value finish(Values acc, mlir::Value elements) const {
    if (split) acc = {k.make<mlir::arith::SelectOp>(k.isNan(acc[1]), acc[1], acc[0])};
    return op.finish(k, acc, elements);
  }

 private:
  LoopBuilder& k;
  IndexMath& m;
  mutable ReductionOp op;
  mlir::Type compute;
  bool isArg, split, least;
};

}  // namespace lathe::loops
