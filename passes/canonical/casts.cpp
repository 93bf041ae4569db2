// SPDX-License-Identifier: Apache-2.0
// One place for casts. All rewrites are exact.
//
//   cast(cast(x, wide), t)      cast(x, t)                if `wide` holds every x
//   cast(transpose(x), t)       transpose(cast(x, t))     likewise broadcast, and a narrowing cast
//                                                         of a reshape
//   reshape(cast(x, wide))      cast(reshape(x), wide)    a widening cast stands at its reader,
//                                                         which takes it in
//   cast(slice(x), t)           slice(cast(x, t))         if slices that are cast cover x
//
// A cast of what a concat joined stays where it is: the parts may be rotated halves, which are
// recognized together with the reshape behind them.
#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

// Bits that decide about exactness: of the significand, and of the largest magnitude.
struct Width {
  unsigned digits, range;
  bool isFloat, isSigned;
};
Width widthOf(Type t) {
  if (auto f = dyn_cast<FloatType>(t))
    return {APFloat::semanticsPrecision(f.getFloatSemantics()),
            unsigned(APFloat::semanticsMaxExponent(f.getFloatSemantics())), true, true};
  unsigned bits = t.getIntOrFloatBitWidth();
  bool isSigned = bits > 1 && !t.isUnsignedInteger();
  unsigned digits = bits - (isSigned ? 1 : 0);
  return {digits, digits, false, isSigned};
}
// Every value of `from` is one of `to`.
bool holds(Type to, Type from) {
  if (from == to) return true;
  if (to.isInteger(1)) return false;
  Width f = widthOf(from), t = widthOf(to);
  if (f.isFloat && !t.isFloat) return false;
  return f.digits <= t.digits && f.range <= t.range && (t.isSigned || !f.isSigned);
}

// Elements of 4 bits become bytes and come from them: no other cast takes or gives them.
bool hasCast(Type from, Type to) {
  auto bits = [](Type t) { return t.getIntOrFloatBitWidth(); };
  if (bits(from) != 4 && bits(to) != 4) return true;
  return bits(from) + bits(to) == 12 && !isa<FloatType>(from) && !isa<FloatType>(to);
}

Value castOfCast(CastOp op, OpMaker& m) {
  auto inner = op.getX().getDefiningOp<CastOp>();
  if (!inner) return {};
  Type from = elementOf(inner.getX()), wide = inner.getDtype(), to = op.getDtype();
  if (!holds(wide, from) || !hasCast(from, to)) return {};
  // What an integer type cannot hold is wrapped from integers and undefined from floats.
  bool same = isa<FloatType>(wide) == isa<FloatType>(from) || isa<FloatType>(to) ||
              to.isInteger(1) || holds(to, from);
  return same ? m.cast(inner.getX(), to) : Value();
}

// The value in front of a chain of ops that only re-arrange.
Value arranged(Value v) {
  while (Operation* op = v.getDefiningOp()) {
    if (!isa<TransposeOp, ReshapeOp, BroadcastOp>(op)) break;
    v = op->getOperand(0);
  }
  return v;
}

bool isLayout(Operation* op) { return isa_and_nonnull<TransposeOp, ReshapeOp, BroadcastOp>(op); }
bool widens(CastOp op) {
  return isFloat(op) && isFloat(op.getX()) && holds(op.getDtype(), elementOf(op.getX()));
}

// Grouped heads: what is repeated is cast first.
bool repeats(Value v) { return llvm::any_of(v.getUsers(), llvm::IsaPred<BroadcastOp>); }

// A chain of reshapes alone does not hold a widening cast up.
bool onlyReshapes(Value v) {
  while (auto op = v.getDefiningOp<ReshapeOp>()) v = op.getX();
  return !isLayout(v.getDefiningOp());
}

Value sinkWidening(ReshapeOp op, OpMaker& m) {
  auto cast = op.getX().getDefiningOp<CastOp>();
  if (!cast || !cast->hasOneUse() || !widens(cast) || isLayout(cast.getX().getDefiningOp()) ||
      repeats(op.getY()) || llvm::any_of(op->getUsers(), llvm::IsaPred<ReshapeOp>))
    return {};
  return m.cast(m.make<ReshapeOp>(cast.getX(), op.getShape()), cast.getDtype());
}

Value hoistCast(CastOp op, OpMaker& m) {
  Operation* layout = op.getX().getDefiningOp();
  if (!isLayout(layout) || !layout->hasOneUse() || arranged(op.getX()).getDefiningOp<ConcatOp>() ||
      (widens(op) && onlyReshapes(op.getX()) && !repeats(op.getY())))
    return {};
  if (auto reshape = dyn_cast<ReshapeOp>(layout); reshape && movesToReduction(reshape)) return {};
  Value x = m.cast(layout->getOperand(0), op.getDtype());
  if (auto t = dyn_cast<TransposeOp>(layout)) return m.make<TransposeOp>(x, t.getPermutation());
  if (auto r = dyn_cast<ReshapeOp>(layout)) return m.make<ReshapeOp>(x, r.getShape());
  return m.make<BroadcastOp>(x, cast<BroadcastOp>(layout).getShape());
}

// All users of x are slices whose only user casts to one type, and they read at least as much as x
// holds: a last token, say, is cut before it is cast.
bool slicesAreCast(Value x, Type to) {
  DimExpr read(0);
  for (Operation* user : x.getUsers()) {
    auto part = dyn_cast<SliceOp>(user);
    auto cast = part && part->hasOneUse() ? dyn_cast<CastOp>(*part->user_begin()) : CastOp();
    auto count = cast && cast.getDtype() == to ? elementCountOf(tensorType(part)) : std::nullopt;
    if (!count) return false;
    read = read + *count;
  }
  auto all = elementCountOf(tensorType(x));
  return all && (read - *all).provablyNonNegative();
}

Value hoistOverSlice(CastOp op, OpMaker& m) {
  auto part = op.getX().getDefiningOp<SliceOp>();
  if (!part || !part->hasOneUse() || part.getX().getDefiningOp<ConcatOp>()) return {};
  // The first of the slices converts for all.
  for (Operation* user : part.getX().getUsers())
    if (auto known = dyn_cast<CastOp>(user); known && known.getDtype() == op.getDtype() &&
                                             known->getBlock() == op->getBlock() &&
                                             known->isBeforeInBlock(op))
      return m.make<SliceOp>(known.getY(), part.getStarts(), part.getSizes(), part.getStrides());
  if (!slicesAreCast(part.getX(), op.getDtype())) return {};
  Value whole;
  {
    OpBuilder::InsertionGuard guard(m.b);
    m.b.setInsertionPointAfterValue(part.getX());
    whole = m.cast(part.getX(), op.getDtype());
  }
  return m.make<SliceOp>(whole, part.getStarts(), part.getSizes(), part.getStrides());
}

}  // namespace

void addCastPatterns(RewritePatternSet& patterns) {
  addRewrite<CastOp>(patterns, "cast-of-cast", castOfCast);
  addRewrite<CastOp>(patterns, "hoist-cast", hoistCast);
  addRewrite<CastOp>(patterns, "hoist-cast-over-slice", hoistOverSlice);
  addRewrite<ReshapeOp>(patterns, "sink-widening-cast", sinkWidening);
}

}  // namespace lathe
