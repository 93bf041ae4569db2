// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/region_emitter_builder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::cpu {

KernelBuilder::KernelBuilder(OpBuilder& builder, Location at, const Tier& tier, Block* entry)
    : ScalarBuilder(builder, at), tier(tier) {
  scopes_.push_back({entry});
  goTo(scopes_[0]);
}

size_t KernelBuilder::levelOf(Value value) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (scopes_[i].block == value.getParentBlock()) return i;
  llvm_unreachable("a value of a closed scope");
}

size_t KernelBuilder::barrier() const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (scopes_[i].barrier) return i;
  return 0;
}

void KernelBuilder::goTo(const Scope& scope) {
  if (scope.anchor)
    b.setInsertionPoint(scope.anchor);
  else
    b.setInsertionPointToEnd(scope.block);
}

Value KernelBuilder::at(size_t level, function_ref<Value()> make) {
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

Value KernelBuilder::find(const Key& key) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (auto it = scopes_[i].known.find(key); it != scopes_[i].known.end()) return it->second;
  return {};
}

Value KernelBuilder::shared(size_t level, Key key, function_ref<Value()> make) {
  if (Value known = find(key)) return known;
  return at(level, [&] {
    Value value = make();
    remember(key, value);
    return value;
  });
}

KernelBuilder::Values KernelBuilder::fill(Operation* op, Block* block, bool barrier,
                                          function_ref<Values()> body) {
  OpBuilder::InsertionGuard guard(b);
  Operation* outer = scopes_.back().anchor;
  scopes_.back().anchor = op;
  scopes_.push_back({block, nullptr, barrier});
  b.setInsertionPointToEnd(block);
  Values out = body();
  make<scf::YieldOp>(out);
  scopes_.pop_back();
  scopes_.back().anchor = outer;
  return out;
}

KernelBuilder::Values KernelBuilder::loop(Value lo, Value hi, int64_t step, ValueRange init,
                                          function_ref<Values(Value, ValueRange)> body) {
  auto op = make<scf::ForOp>(lo, hi, i64(step), init);
  if (!op.getBody()->empty()) op.getBody()->back().erase();
  aligns_[op.getInductionVar()] = std::gcd(alignOf(lo), step);
  fill(op, op.getBody(), false, [&] { return body(op.getInductionVar(), op.getRegionIterArgs()); });
  return Values(op.getResults());
}

KernelBuilder::Values KernelBuilder::branch(Value condition, function_ref<Values()> then,
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

std::optional<int64_t> KernelBuilder::constOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) return constant.getSExtValue();
  return std::nullopt;
}

int64_t KernelBuilder::alignOf(Value value) const {
  if (auto c = constOf(value)) return std::abs(*c);
  auto it = aligns_.find(value);
  return it == aligns_.end() ? 1 : it->second;
}

Value KernelBuilder::constant(TypedAttr attr) {
  return shared(0, {attr.getAsOpaquePointer()}, [&] { return make<arith::ConstantOp>(attr); });
}
Value KernelBuilder::i64(int64_t value) { return constant(b.getI64IntegerAttr(value)); }

Value KernelBuilder::constants(Type element, ArrayRef<int64_t> values) {
  SmallVector<APInt> words;
  for (int64_t v : values)
    words.push_back(APInt(64, uint64_t(v), true).trunc(element.getIntOrFloatBitWidth()));
  return constant(
      DenseElementsAttr::get(VectorType::get({int64_t(values.size())}, element), words));
}

Value KernelBuilder::add(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q) return i64(*p + *q);
  if (p && *p == 0) return y;
  if (q && *q == 0) return x;
  return binary<arith::AddIOp>(x, y, std::gcd(alignOf(x), alignOf(y)));
}
Value KernelBuilder::sub(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q) return i64(*p - *q);
  if (q && *q == 0) return x;
  return binary<arith::SubIOp>(x, y, std::gcd(alignOf(x), alignOf(y)));
}
Value KernelBuilder::mul(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q) return i64(*p * *q);
  if ((p && *p == 0) || (q && *q == 1)) return x;
  if ((q && *q == 0) || (p && *p == 1)) return y;
  return binary<arith::MulIOp>(x, y, alignOf(x) * alignOf(y));
}
Value KernelBuilder::div(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q && *q != 0) return i64(*p / *q);
  if (q && *q == 1) return x;
  if (q && *q != 0) {
    int64_t align = alignOf(x);
    return binary<arith::DivUIOp>(x, y, align && align % *q == 0 ? align / *q : 1);
  }
  return binary<arith::DivUIOp>(x, atLeastOne(y), 1);
}
Value KernelBuilder::rem(Value x, Value y) {
  auto p = constOf(x), q = constOf(y);
  if (p && q && *q != 0) return i64(*p % *q);
  if (q && *q == 1) return i64(0);
  if (q && *q != 0) return binary<arith::RemUIOp>(x, y, std::gcd(alignOf(x), *q));
  return binary<arith::RemUIOp>(x, atLeastOne(y), 1);
}

Value KernelBuilder::splat(Value scalar, int64_t width) {
  auto type = VectorType::get({width}, scalar.getType());
  Attribute value;
  if (matchPattern(scalar, m_Constant(&value)))
    return constant(DenseElementsAttr::get(type, value));
  static const char kind = 0;
  return shared(levelOf(scalar),
                {&kind, scalar.getAsOpaquePointer(), reinterpret_cast<const void*>(width)}, [&] {
                  Value v = make<LLVM::PoisonOp>(type);
                  v = make<LLVM::InsertElementOp>(v, scalar,
                                                  make<arith::ConstantOp>(b.getI32IntegerAttr(0)));
                  SmallVector<int32_t> zeros(width, 0);
                  return make<LLVM::ShuffleVectorOp>(v, v, zeros);
                });
}

Value KernelBuilder::shuffle(Value x, Value y, ArrayRef<int32_t> lanes) {
  return make<LLVM::ShuffleVectorOp>(x, y, lanes);
}

Pattern KernelBuilder::pattern(std::vector<int64_t> offsets) {
  return &*patterns_.insert(std::move(offsets)).first;
}
Pattern KernelBuilder::ramp(int64_t width) {
  std::vector<int64_t> offsets(width);
  std::iota(offsets.begin(), offsets.end(), 0);
  return pattern(std::move(offsets));
}

}  // namespace lathe::cpu
