// SPDX-License-Identifier: Apache-2.0
#include "backends/common/loops/builder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::loops {

LoopBuilder::LoopBuilder(OpBuilder& builder, Location at, Block* entry, IndexStyle style)
    : ScalarBuilder(builder, at), style(style) {
  scopes_.push_back({entry});
  goTo(scopes_[0]);
}

size_t LoopBuilder::levelOf(Value value) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (scopes_[i].block == value.getParentBlock() || scopes_[i].inner == value) return i;
  llvm_unreachable("a value of a closed scope");
}

size_t LoopBuilder::barrier() const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (scopes_[i].barrier) return i;
  return 0;
}

void LoopBuilder::goTo(const Scope& scope) {
  if (scope.anchor)
    b.setInsertionPoint(scope.anchor);
  else
    b.setInsertionPointToEnd(scope.block);
}

Value LoopBuilder::at(size_t level, function_ref<Value()> make) {
  if (level == top()) return make();
  OpBuilder::InsertionGuard guard(b);
  // Scopes further in do not exist for what is emitted outside of them.
  std::vector<Scope> inner(std::make_move_iterator(scopes_.begin() + level + 1),
                           std::make_move_iterator(scopes_.end()));
  scopes_.resize(level + 1);
  goTo(scopes_[level]);
  Value value = make();
  for (Scope& s : inner) scopes_.push_back(std::move(s));
  return value;
}

Value LoopBuilder::find(const Key& key) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (auto it = scopes_[i].known.find(key); it != scopes_[i].known.end()) return it->second;
  return {};
}

Value LoopBuilder::shared(size_t level, Key key, function_ref<Value()> make) {
  if (Value known = find(key)) return known;
  return at(level, [&] {
    Value value = make();
    remember(key, value);
    return value;
  });
}

LoopBuilder::Values LoopBuilder::fill(Operation* op, Block* block, bool barrier,
                                      function_ref<Values()> body, Value inner) {
  OpBuilder::InsertionGuard guard(b);
  Operation* outer = scopes_.back().anchor;
  scopes_.back().anchor = op;
  scopes_.push_back({block, nullptr, barrier, inner});
  b.setInsertionPointToEnd(block);
  Values out = body();
  make<scf::YieldOp>(out);
  scopes_.pop_back();
  scopes_.back().anchor = outer;
  return out;
}

LoopBuilder::Values LoopBuilder::loop(Value lo, Value hi, int64_t step, ValueRange init,
                                      function_ref<Values(Value, ValueRange)> body,
                                      StringRef mark) {
  auto op = make<scf::ForOp>(lo, hi, integer(lo.getType(), step), init);
  if (!mark.empty()) op->setAttr(mark, b.getUnitAttr());
  // What a variable is called comes from what is done with it.
  for (BlockArgument argument : op.getBody()->getArguments()) argument.setLoc(b.getUnknownLoc());
  if (mark == "unroll")
    op.getInductionVar().setLoc(NameLoc::get(b.getStringAttr("%k"), b.getUnknownLoc()));
  if (!op.getBody()->empty()) op.getBody()->back().erase();
  fill(op, op.getBody(), false, [&] { return body(op.getInductionVar(), op.getRegionIterArgs()); });
  return Values(op.getResults());
}

LoopBuilder::Values LoopBuilder::branch(Value condition, function_ref<Values()> then,
                                        function_ref<Values()> otherwise) {
  // The types of the results are known only after an arm has been emitted.
  auto probe = make<scf::IfOp>(TypeRange(), condition, true);
  for (Region& region : probe->getRegions()) region.front().clear();
  Values out = fill(probe, &probe.getThenRegion().front(), true, then);
  fill(probe, &probe.getElseRegion().front(), true, otherwise);
  if (out.empty()) return {};
  auto op = make<scf::IfOp>(ValueRange(out).getTypes(), condition, true);
  op.getThenRegion().takeBody(probe.getThenRegion());
  op.getElseRegion().takeBody(probe.getElseRegion());
  probe.erase();
  return Values(op.getResults());
}

void LoopBuilder::when(Value condition, function_ref<void()> body) {
  auto then = [&] {
    body();
    return Values();
  };
  branch(condition, then, [] { return Values(); });
}

LoopBuilder::Values LoopBuilder::guard(Value condition, Value inner, ValueRange init,
                                       function_ref<Values(ValueRange)> body) {
  auto op = make<scf::IfOp>(init.getTypes(), condition, !init.empty());
  Block* then = &op.getThenRegion().front();
  then->clear();
  fill(op, then, false, [&] { return body(init); }, inner);
  if (!init.empty()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&op.getElseRegion().front());
    make<scf::YieldOp>(init);
  }
  return Values(op.getResults());
}

Value LoopBuilder::named(StringRef name, Value value) {
  Operation* op = value.getDefiningOp();
  if (op && !isa<arith::ConstantOp>(op))
    op->setLoc(NameLoc::get(b.getStringAttr("%" + name), op->getLoc()));
  return value;
}

std::optional<int64_t> LoopBuilder::constOf(Value value) {
  APInt constant;
  if (value.getType().isInteger() && matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Value LoopBuilder::constant(TypedAttr attr) {
  return shared(0, {attr.getAsOpaquePointer()}, [&] { return make<arith::ConstantOp>(attr); });
}
Value LoopBuilder::i64(int64_t value) { return constant(b.getI64IntegerAttr(value)); }
Value LoopBuilder::index(int64_t value) {
  const bool narrow = style == IndexStyle::narrow && value == int32_t(value);
  return narrow ? constant(b.getI32IntegerAttr(int32_t(value))) : i64(value);
}

Value LoopBuilder::constants(Type element, ArrayRef<int64_t> values) {
  SmallVector<APInt> words;
  for (int64_t v : values)
    words.push_back(APInt(64, uint64_t(v), true).trunc(element.getIntOrFloatBitWidth()));
  return constant(
      DenseElementsAttr::get(VectorType::get({int64_t(values.size())}, element), words));
}

Value LoopBuilder::unnamed(size_t level, Key key, function_ref<Value()> make) {
  // In a text an index stands where the work is.
  const bool narrow = style == IndexStyle::narrow;
  if (narrow) level = std::min(std::max(level, ground_), top());
  const Location outside = loc;
  if (narrow) loc = b.getUnknownLoc();
  Value made = shared(level, std::move(key), make);
  loc = outside;
  return made;
}

Value LoopBuilder::widened(Value x) {
  Type element = getElementTypeOrSelf(x);
  if (element.isInteger(64)) return x;
  if (auto number = constOf(x)) return i64(*number);
  return unnamed(levelOf(x), keyOf("widened", x), [&]() -> Value {
    return make<arith::ExtSIOp>(withElementOf(x.getType(), b.getI64Type()), x);
  });
}

Value LoopBuilder::narrowed(Value x, int64_t most) {
  if (style == IndexStyle::wide || most > INT32_MAX || !x.getType().isInteger(64)) return x;
  return unnamed(levelOf(x), keyOf("narrowed", x),
                 [&]() -> Value { return make<arith::TruncIOp>(b.getI32Type(), x); });
}

template <class Op>
Value LoopBuilder::binary(Value x, Value y) {
  if (x.getType() != y.getType()) x = widened(x), y = widened(y);
  return unnamed(std::max(levelOf(x), levelOf(y)), keyOf(Op::getOperationName(), x, y),
                 [&]() -> Value {
                   Op op = make<Op>(x, y);
                   if constexpr (requires { op.setOverflowFlags({}); })
                     if (style == IndexStyle::narrow)
                       op.setOverflowFlags(arith::IntegerOverflowFlags::nsw);
                   return op;
                 });
}

Value LoopBuilder::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  const Location outside = loc;
  if (style == IndexStyle::narrow) loc = b.getUnknownLoc();
  Value holds = make<arith::CmpIOp>(predicate, x, y);
  loc = outside;
  return holds;
}

Value LoopBuilder::add(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q) return index(*p + *q);
  if (p && *p == 0) return y;
  if (q && *q == 0) return x;
  return binary<arith::AddIOp>(x, y);
}
Value LoopBuilder::sub(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q) return index(*p - *q);
  if (q && *q == 0) return x;
  return binary<arith::SubIOp>(x, y);
}
Value LoopBuilder::mul(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q) return index(*p * *q);
  if ((p && *p == 0) || (q && *q == 1)) return x;
  if ((q && *q == 0) || (p && *p == 1)) return y;
  return binary<arith::MulIOp>(x, y);
}
Value LoopBuilder::atLeastOne(Value x) {
  return binary<arith::MaxSIOp>(x, integer(x.getType(), 1));
}

Value LoopBuilder::divided(Value x, Value y, bool remainder) {
  auto p = constOf(x), q = constOf(y);
  if (p && q && *q != 0) return index(remainder ? *p % *q : *p / *q);
  if (q && *q == 1) return remainder ? index(0) : x;
  if ((!q || *q == 0) && y.getType().isInteger()) y = atLeastOne(y);
  if (style == IndexStyle::narrow)
    return remainder ? binary<arith::RemSIOp>(x, y) : binary<arith::DivSIOp>(x, y);
  return remainder ? binary<arith::RemUIOp>(x, y) : binary<arith::DivUIOp>(x, y);
}
Value LoopBuilder::div(Value x, Value y) { return divided(x, y, false); }
Value LoopBuilder::rem(Value x, Value y) { return divided(x, y, true); }
Value LoopBuilder::signedDiv(Value x, Value y) { return binary<arith::DivSIOp>(x, y); }

Value LoopBuilder::splat(Value scalar, int64_t width) {
  auto type = VectorType::get({width}, scalar.getType());
  Attribute value;
  if (matchPattern(scalar, m_Constant(&value)))
    return constant(DenseElementsAttr::get(type, value));
  return shared(levelOf(scalar), keyOf("splat", scalar, width),
                [&]() -> Value { return make<vector::BroadcastOp>(type, scalar); });
}

Value LoopBuilder::shuffle(Value x, Value y, ArrayRef<int32_t> lanes) {
  SmallVector<int64_t> mask(lanes.begin(), lanes.end());
  const int64_t first = widthOf(x.getType()), second = widthOf(y.getType());
  if (first == second || style == IndexStyle::narrow) return make<vector::ShuffleOp>(x, y, mask);
  // Machines take elements of two vectors of one length.
  const int64_t longer = std::max(first, second);
  auto extended = [&](Value v, int64_t width) -> Value {
    if (width == longer) return v;
    SmallVector<int64_t> own(longer, 0);
    std::iota(own.begin(), own.begin() + width, 0);
    return make<vector::ShuffleOp>(v, v, own);
  };
  for (int64_t& lane : mask)
    if (lane >= first) lane += longer - first;
  return make<vector::ShuffleOp>(extended(x, first), extended(y, second), mask);
}
Value LoopBuilder::extract(Value vector, int64_t lane) {
  return make<vector::ExtractOp>(vector, lane);
}
Value LoopBuilder::extract(Value vector, Value lane) {
  if (auto number = constOf(lane)) return extract(vector, *number);
  Value at = make<arith::IndexCastOp>(b.getIndexType(), lane);
  return make<vector::ExtractOp>(vector, OpFoldResult(at));
}

Pattern LoopBuilder::pattern(std::vector<int64_t> offsets) {
  return &*patterns_.insert(std::move(offsets)).first;
}
Pattern LoopBuilder::ramp(int64_t width) {
  std::vector<int64_t> offsets(width);
  std::iota(offsets.begin(), offsets.end(), 0);
  return pattern(std::move(offsets));
}

}  // namespace lathe::loops
