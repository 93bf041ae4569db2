// SPDX-License-Identifier: Apache-2.0
// Arithmetic on scalar constants. Only scalars: a stretched constant or an index ramp would become
// a table in memory.
#include <cmath>

#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

using Numbers = ArrayRef<double>;

// As the interpreter computes: in double, rounded once by the caller.
std::optional<double> computed(Operation* op, Numbers x) {
  if (isa<NegOp>(op)) return -x[0];
  if (isa<AbsOp>(op)) return std::abs(x[0]);
  if (isa<SqrtOp>(op)) return std::sqrt(x[0]);
  if (isa<RsqrtOp>(op)) return 1 / std::sqrt(x[0]);
  if (isa<ReciprocalOp>(op)) return 1 / x[0];
  if (isa<AddOp>(op)) return x[0] + x[1];
  if (isa<SubOp>(op)) return x[0] - x[1];
  if (isa<MulOp>(op)) return x[0] * x[1];
  if (isa<DivOp>(op)) return x[0] / x[1];
  if (isa<PowOp>(op)) return std::pow(x[0], x[1]);
  return std::nullopt;
}

struct FoldScalars final : RewritePattern {
  explicit FoldScalars(MLIRContext* context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {
    setDebugName("fold-scalars");
  }
  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    if (op->getNumResults() != 1 || op->getNumOperands() == 0 || isa<ConstantOp>(op))
      return failure();
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || type.getRank() != 0) return failure();
    SmallVector<TypedAttr> elements;
    for (Value v : op->getOperands()) {
      auto constant = v.getDefiningOp<ConstantOp>();
      TypedAttr element = constant && tensorType(v).getRank() == 0 ? splatElement(v) : TypedAttr();
      if (!element) return failure();
      elements.push_back(element);
    }
    Type to = type.getElementType();
    TypedAttr folded;
    if (auto cast = dyn_cast<CastOp>(op))
      folded = castElement(cast, elements[0]);
    else if (isa<FloatType>(elements[0].getType()))
      folded = foldFloats(op, to);
    else
      folded = foldIntegers(op, elements);
    if (!folded) return failure();
    OpMaker m(rewriter, op->getLoc());
    rewriter.replaceOp(op, scalarOf(m, folded));
    return success();
  }

  // The float64 oracle does not round: what 16 bits lose would be lost there, too.
  static TypedAttr floatElement(Type to, double number) {
    if ((to.isBF16() || to.isF16()) && !isRepresentable(to, number)) return {};
    return FloatAttr::get(to, roundedTo(to, number));
  }
  static TypedAttr foldFloats(Operation* op, Type to) {
    if (!isa<FloatType>(to)) return {};
    SmallVector<double> numbers;
    for (Value v : op->getOperands()) numbers.push_back(*constantOf(v));
    auto value = computed(op, numbers);
    return value ? floatElement(to, *value) : TypedAttr();
  }
  // In the operands' own width, where arithmetic wraps.
  static TypedAttr foldIntegers(Operation* op, ArrayRef<TypedAttr> elements) {
    SmallVector<APInt> x;
    for (TypedAttr e : elements) x.push_back(cast<IntegerAttr>(e).getValue());
    Type type = elements[0].getType();
    if (isa<NegOp>(op)) return IntegerAttr::get(type, -x[0]);
    if (isa<AddOp>(op)) return IntegerAttr::get(type, x[0] + x[1]);
    if (isa<SubOp>(op)) return IntegerAttr::get(type, x[0] - x[1]);
    if (isa<MulOp>(op)) return IntegerAttr::get(type, x[0] * x[1]);
    return {};
  }
  // From an integer only what the float type holds, to an integer only what it holds; i1 means "not
  // zero".
  static TypedAttr castElement(CastOp op, TypedAttr element) {
    Type to = op.getDtype();
    auto number = constantOf(op.getX());
    if (!number || to.isInteger(1)) return {};
    if (!isa<FloatType>(to))
      return std::isfinite(*number) ? asElement(to, std::trunc(*number)) : TypedAttr();
    if (isa<IntegerType>(element.getType()) && !isRepresentable(to, *number)) return {};
    return floatElement(to, *number);
  }
};

}  // namespace

void addConstantFolding(RewritePatternSet& patterns) {
  patterns.add<FoldScalars>(patterns.getContext());
}

}  // namespace lathe
