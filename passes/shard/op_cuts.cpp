// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/op_cuts.h"

#include "ir/axis_groups.h"

using namespace mlir;

namespace lathe {
namespace {

int64_t productOf(RankedTensorType type, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end && product > 0; ++i)
    product *= type.isDynamicDim(i) ? 0 : type.getDimSize(i);
  return product;
}

// Where a cut of `from` lies in a tensor of other dims with the same elements in the same order.
// In memory a cut is: some groups, and in each of them equal runs, one for each part.
std::optional<Cut> reshaped(RankedTensorType from, RankedTensorType to, const Cut& cut) {
  for (const AxisGroup& group : axisGroups(from, to)) {
    if (cut.axis >= int64_t(group.fromEnd)) continue;
    if (cut.isPadded()) {  // the axis alone, whatever its place
      if (dimOf(from, int64_t(group.from)) != cut.whole || int64_t(group.from) != cut.axis ||
          dimOf(to, int64_t(group.to)) != cut.whole)
        return std::nullopt;
      Cut there = cut;
      there.axis = int64_t(group.to);
      return there;
    }
    const int64_t groups = productOf(from, int64_t(group.from), cut.axis) * cut.groups,
                  run = productOf(from, cut.axis, int64_t(group.fromEnd)) / cut.groups / cut.parts;
    for (auto axis = int64_t(group.to); axis < int64_t(group.toEnd); ++axis) {
      const int64_t before = productOf(to, int64_t(group.to), axis),
                    behind = productOf(to, axis + 1, int64_t(group.toEnd));
      if (to.isDynamicDim(axis) || before == 0 || behind == 0 || groups % before) continue;
      const Cut there{axis, cut.parts, groups / before};
      const int64_t size = to.getDimSize(axis), pieces = there.parts * there.groups;
      if (size % pieces == 0 && size / pieces * behind == run) return there;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::string doNotDivide(Operation* op, RankedTensorType type, int64_t axis, const Cut& cut) {
  return std::to_string(type.getDimSize(axis) / cut.groups) + " along axis " +
         std::to_string(axis) + " of " + shortType(type) + " in " +
         op->getName().getStringRef().str() + " do not divide by " + std::to_string(cut.parts) +
         " ranks";
}

// All axes of one factor are cut alike. An operand may have fewer elements along it than the
// results have, which share them, as query heads share a key head: then ranks share its pieces.
std::optional<OpCuts> along(Operation* op, const Factors& factors, int factor, const Cut& cut,
                            std::string* why) {
  OpCuts cuts;
  int64_t most = 0;  // elements along the factor
  for (auto [v, axes] : llvm::zip_equal(op->getResults(), factors.results))
    if (const int64_t axis = axisOf(axes, factor); axis >= 0)
      most = std::max(most, tensorType(v).getDimSize(axis));
  auto add = [&](ValueRange values, ArrayRef<Factors::Axes> all, SmallVector<Cut, 4>& to) {
    for (auto [v, axes] : llvm::zip_equal(values, all)) {
      const int64_t axis = axisOf(axes, factor);
      to.push_back({});
      if (axis < 0) continue;
      if (cut.isPadded()) {
        if (dimOf(tensorType(v), axis) != cut.whole) return false;
        to.back() = cut;
        to.back().axis = axis;
        continue;
      }
      const int64_t parts = partsOf(tensorType(v), axis, cut.parts, cut.groups);
      const bool isShared = parts > 0 && tensorType(v).getDimSize(axis) < most;
      if (parts != cut.parts && !isShared) {
        if (why && !tensorType(v).isDynamicDim(axis))
          *why = doNotDivide(op, tensorType(v), axis, cut);
        return false;
      }
      to.back() = {axis, parts, cut.groups};
    }
    return true;
  };
  if (!add(op->getResults(), factors.results, cuts.results) ||
      !add(op->getOperands(), factors.operands, cuts.operands))
    return std::nullopt;
  cuts.isSum = llvm::is_contained(factors.sums, factor);
  if (!cuts.isSum && llvm::any_of(cuts.results, [](const Cut& c) { return c.isWhole(); }))
    return std::nullopt;
  return cuts;
}

std::optional<Factors> factorsOf(Operation* op) {
  auto factored = dyn_cast<FactoredOp>(op);
  return factored ? factored.factors() : std::nullopt;
}

// A reshape goes between axes that are no one loop each, only parts of one.
std::optional<OpCuts> ofReshape(ReshapeOp op, const Cut& cut, bool fromResult) {
  auto x = tensorType(op.getX()), y = tensorType(op.getY());
  const std::optional<Cut> other = fromResult ? reshaped(y, x, cut) : reshaped(x, y, cut);
  if (!other) return std::nullopt;
  return fromResult ? OpCuts{{*other}, {cut}} : OpCuts{{cut}, {*other}};
}

}  // namespace

std::optional<OpCuts> cutsOfResult(Operation* op, unsigned index, const Cut& cut,
                                   std::string* why) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (auto cuts = reshape ? ofReshape(reshape, cut, true) : std::nullopt) return cuts;
  const std::optional<Factors> factors = factorsOf(op);
  if (!factors) return std::nullopt;
  const int factor = factors->results[index][size_t(cut.axis)];
  if (factor == Factors::kWhole) return std::nullopt;
  auto cuts = along(op, *factors, factor, cut, why);
  return reshape ? std::nullopt : cuts;  // of a reshape only what it says is wanted
}

std::optional<OpCuts> cutsOfOperand(Operation* op, unsigned index, const Cut& cut) {
  if (auto reshape = dyn_cast<ReshapeOp>(op)) return ofReshape(reshape, cut, false);
  const std::optional<Factors> factors = factorsOf(op);
  if (!factors) return std::nullopt;
  const int factor = factors->operands[index][size_t(cut.axis)];
  if (factor == Factors::kWhole) return std::nullopt;
  return along(op, *factors, factor, cut, nullptr);
}

std::optional<int64_t> startAlong(SliceOp slice, int64_t axis) {
  auto x = tensorType(slice.getX()), y = tensorType(slice.getY());
  const auto whole = dimsOf(x), sizes = dimsOf(y);
  for (int64_t i = 0; i < x.getRank(); ++i)
    if (slice.getStrides()[size_t(i)] != 1 || (i != axis && whole[size_t(i)] != sizes[size_t(i)]))
      return std::nullopt;
  if (y.isDynamicDim(axis)) return std::nullopt;
  return exprOf(slice.getStarts().getDims()[size_t(axis)]).asConstant();
}

}  // namespace lathe
