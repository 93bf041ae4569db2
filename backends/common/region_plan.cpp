// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/region_plan.h"

#include <cmath>
#include <numeric>

#include "ir/op_builder.h"

using namespace mlir;

namespace lathe {
namespace {

// The norm's decomposition, but centered twice. A mean in f32 is off by its rounding, which the
// rows of a large mean cannot spare: the mean c of what the first centering leaves is taken off as
// well, and c^2 off the variance. Both sums come from one pass over the row.
Value centeredTwice(LayerNormOp norm, OpBuilder& b) {
  OpMaker m(b, norm.getLoc());
  auto type = tensorType(norm.getX());
  Type element = type.getElementType(), wide = computeType(element);
  auto mean = [&](Value v) {
    return m.make<ReduceMeanOp>(v, ArrayRef<int64_t>{type.getRank() - 1}, true);
  };
  Value x = m.cast(norm.getX(), wide);
  Value d = m.make<SubOp>(x, mean(x)), c = mean(d), squares = mean(m.make<MulOp>(d, d));
  // Equal values leave a difference of rounding errors, which may be negative; squares that
  // overflow stay infinite.
  Value rest = m.make<SubOp>(squares, m.make<MulOp>(c, c));
  Value finite = m.compare(Compare::lt, squares, m.scalar(wide, INFINITY));
  Value variance = m.make<SelectOp>(finite, m.make<MaxOp>(rest, m.scalar(wide, 0)), squares);
  Value shifted = m.make<AddOp>(variance, m.scalar(wide, norm.getEpsilon().convertToDouble()));
  Value y = m.make<MulOp>(m.make<SubOp>(d, c), m.make<RsqrtOp>(shifted));
  if (norm.getGain()) y = m.make<MulOp>(y, m.cast(norm.getGain(), wide));
  if (norm.getBias()) y = m.make<AddOp>(y, m.cast(norm.getBias(), wide));
  return m.cast(y, element);
}

FailureOr<SmallVector<Value>> elementaryForm(Operation* op) {
  OpBuilder b(op);
  if (auto norm = dyn_cast<LayerNormOp>(op)) return SmallVector<Value>{centeredTwice(norm, b)};
  auto values = cast<DecomposableOp>(op).decompose(b);
  if (auto softmax = dyn_cast<SoftmaxOp>(op); softmax && softmax.isPlain()) {
    Operation* made = (*values)[0].getDefiningOp();
    if (isa<CastOp>(made)) made = made->getOperand(0).getDefiningOp();
    cast<DivOp>(made)->setAttr(kBySum, b.getUnitAttr());
  }
  return values;
}

LogicalResult decomposeRowOps(func::FuncOp f) {
  SmallVector<Operation*> fused;
  do {
    fused.clear();
    for (Operation& op : f.getBody().front())
      if (isFusedRowOp(&op)) fused.push_back(&op);
    for (Operation* op : fused) {
      auto values = elementaryForm(op);
      if (failed(values)) return op->emitError("has no elementary form");
      op->replaceAllUsesWith(*values);
      op->erase();
    }
  } while (!fused.empty());
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(f.getBody().front())))
    if (isOpTriviallyDead(&op)) op.erase();
  return success();
}

// Every value has as many elements as the results or one, and none changes its place.
bool isFlat(ValueRange results, Block& block) {
  auto count = elementCountOf(tensorType(results[0]));
  if (*count == DimExpr(1) || *count == DimExpr(0)) return false;
  auto fits = [&](Value v) {
    auto n = elementCountOf(tensorType(v));
    return n && (*n == *count || *n == DimExpr(1));
  };
  for (Value v : results)
    if (!(*elementCountOf(tensorType(v)) == *count)) return false;
  for (Value v : block.getArguments())
    if (!fits(v)) return false;
  for (Operation& op : block.without_terminator()) {
    auto constant = dyn_cast<ConstantOp>(op);
    bool splat = constant && cast<DenseElementsAttr>(constant.getValue()).isSplat();
    if (!splat && !isElementwise(&op) && !isa<ReshapeOp, BroadcastOp>(op)) return false;
    if (!llvm::all_of(op.getResults(), fits)) return false;
  }
  return true;
}

// The value is made elementwise from a reduction of a last axis that leaves exactly its dims: a
// lane per element would read memory in strides.
bool reducesLastAxis(Value v, DenseSet<Value>& seen) {
  Operation* op = v.getDefiningOp();
  if (!op || !seen.insert(v).second) return false;
  if (isReduction(op)) {
    auto from = dimExprs(op->getOperand(0));
    return !from.empty() && !(from.back() == DimExpr(1)) &&
           llvm::is_contained(reducedAxes(op), int64_t(from.size()) - 1);
  }
  if (!isElementwise(op) && !isa<ReshapeOp>(op)) return false;
  auto shape = dimExprs(v);
  return llvm::any_of(op->getOperands(), [&](Value x) {
    auto inner = dimExprs(x);
    while (!inner.empty() && inner.back() == DimExpr(1)) inner.pop_back();
    auto outer = shape;
    while (!outer.empty() && outer.back() == DimExpr(1)) outer.pop_back();
    return inner == outer && reducesLastAxis(x, seen);
  });
}

}  // namespace

DimExpr productOf(ArrayRef<DimExpr> sizes) {
  DimExpr product = 1;
  for (const DimExpr& d : sizes) product = product * d;
  return product;
}

int64_t divisorOf(const DimExpr& size) {
  int64_t divisor = 0;
  for (auto& [symbols, factor] : size.terms()) divisor = std::gcd(divisor, factor);
  return divisor;
}

std::string whyNotInRows(Operation* op) {
  std::string name = op->getName().getStringRef().str();
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    if (!isa<DenseElementsAttr>(constant.getValue())) return name + " does not hold plain elements";
    return {};
  }
  if (!isElementwise(op) && !isMovement(op) && !isReduction(op) && !isFusedRowOp(op))
    return name + " is not computed row by row";
  auto named = [](Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    return type && elementCountOf(type);
  };
  if (!llvm::all_of(op->getOperands(), named) || !llvm::all_of(op->getResults(), named))
    return name + " has a dim without a name";
  return {};
}

FailureOr<OwningOpRef<func::FuncOp>> elementaryRegion(
    func::FuncOp region, function_ref<std::string(Operation*)> whyNot) {
  if (!llvm::hasSingleElement(region.getBody()))
    return region.emitError("a region is one block of ops");
  for (Operation& op : region.getBody().front().without_terminator())
    if (std::string why = whyNot(&op); !why.empty()) return op.emitError(why);
  for (Value v : region.getBody().getArguments())
    if (!elementCountOf(tensorType(v)))
      return region.emitError("an operand has a dim without a name");
  if (region.getBody().front().getTerminator()->getNumOperands() == 0)
    return region.emitError("a region has results");
  OwningOpRef<func::FuncOp> elementary = region.clone();
  if (failed(decomposeRowOps(*elementary))) return failure();
  return elementary;
}

bool isEmpty(Value tensor) {
  const auto count = elementCountOf(tensorType(tensor));
  return count && *count == DimExpr(0);
}

FailureOr<RowPlan> rowPlanOf(func::FuncOp f) {
  Block& block = f.getBody().front();
  ValueRange results = block.getTerminator()->getOperands();
  RowPlan plan;
  if (isFlat(results, block)) {
    plan.flat = true;
    return plan;
  }
  size_t rank = 0;
  for (Value v : results) rank = std::max(rank, dimExprs(v).size());
  bool equalRanks = llvm::all_of(results, [&](Value v) { return dimExprs(v).size() == rank; });
  plan.scalar =
      rank == 0 || (equalRanks && llvm::any_of(results, [&](Value v) {
                      DenseSet<Value> seen;
                      return !(dimExprs(v).back() == DimExpr(1)) && reducesLastAxis(v, seen);
                    }));
  for (Value v : results) {
    auto shape = dimExprs(v);
    if (shape.size() == rank && !plan.scalar) shape.pop_back();
    if (v == results[0] || plan.rowDims.empty()) plan.rowDims = shape;
    if (shape != plan.rowDims)
      return f.emitError("results of one region share their rows: ")
             << shortType(results[0].getType()) << " and " << shortType(v.getType()) << " do not";
  }
  return plan;
}

SmallVector<ReshapeRun> reshapeRuns(ArrayRef<DimExpr> from, ArrayRef<DimExpr> to) {
  SmallVector<ReshapeRun> runs;
  size_t i = from.size(), j = to.size();
  while (i > 0 || j > 0) {
    ReshapeRun run{i, i, j, j};
    DimExpr a = 1, b = 1;
    auto takeFrom = [&] { a = a * from[--i]; };
    auto takeTo = [&] { b = b * to[--j]; };
    if (i > 0) takeFrom();
    if (j > 0) takeTo();
    // Only an empty tensor can leave unequal rests, and nothing reads it.
    while (!(a == b) && (i > 0 || j > 0)) {
      if (i > 0 && (j == 0 || b.dividedBy(a))) {
        takeFrom();
      } else if (j > 0 && (i == 0 || a.dividedBy(b))) {
        takeTo();
      } else {
        if (i > 0) takeFrom();
        if (j > 0) takeTo();
      }
    }
    run.from = i;
    run.to = j;
    runs.push_back(run);
  }
  return runs;
}

}  // namespace lathe
