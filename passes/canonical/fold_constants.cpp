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
    SmallVector<double> numbers;
    for (Value v : op->getOperands()) {
      auto constant = v.getDefiningOp<ConstantOp>();
      auto c = constant && tensorType(v).getRank() == 0 ? constantOf(v) : std::nullopt;
      if (!c) return failure();
      numbers.push_back(*c);
    }
    std::optional<double> value;
    if (auto cast = dyn_cast<CastOp>(op)) {
      value = castValue(cast, numbers[0]);
    } else if (isFloat(op->getOperand(0))) {
      value = computed(op, numbers);
    } else if (isa<AddOp, SubOp, MulOp, NegOp>(op)) {
      value = computed(op, numbers);
      // Where integers wrap, nothing is folded.
      if (value && std::abs(*value) >= 0x1p31) value.reset();
    }
    if (!value) return failure();
    // The float64 oracle does not round: what 16 bits lose would be lost there, too.
    Type to = type.getElementType();
    if ((to.isBF16() || to.isF16()) && !isRepresentable(to, *value)) return failure();
    OpMaker m(rewriter, op->getLoc());
    rewriter.replaceOp(op, m.scalar(to, roundedTo(to, *value)));
    return success();
  }

  static std::optional<double> castValue(CastOp op, double number) {
    Type to = op.getDtype();
    if (isa<FloatType>(to)) return number;
    // Out of range is undefined, i1 means "not zero", u8 has no signless attribute.
    bool fits = std::isfinite(number) && std::abs(number) < 100;
    if (!fits || to.isInteger(1) || to.isUnsignedInteger()) return std::nullopt;
    return std::trunc(number);
  }
};

}  // namespace

void addConstantFolding(RewritePatternSet& patterns) {
  patterns.add<FoldScalars>(patterns.getContext());
}

}  // namespace lathe
