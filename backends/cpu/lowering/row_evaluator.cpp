// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/row_evaluator.h"

#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cpu {

using loops::bytesOf;
using loops::LoopBuilder;

RowEvaluator::RowEvaluator(LoopBuilder& builder, func::FuncOp region, LLVM::LLVMFuncOp kernel,
                           const Tier& tier, bool flat)
    : Evaluator(builder, region, flat), kernel_(kernel), tier_(tier), lanes_(tier.lanes) {
  // Doubles fill a register twice as fast, and calls are made lane by lane.
  bool wide = false, calls = false;
  region.walk([&](Operation* op) {
    for (Type type : op->getResultTypes())
      wide |= cast<RankedTensorType>(type).getElementType().isF64();
    calls |= isa<ModOp>(op) ||
             (op->hasTrait<fact::IsTranscendental>() && !isa<ExpOp, TanhOp, SigmoidOp, ErfOp>(op));
  });
  if (wide) lanes_ /= 2;
  if (calls) lanes_ = 8;
  plan();
}

int64_t RowEvaluator::widthFor(std::optional<int64_t> length, ArrayRef<int64_t> cuts) const {
  if (!length) return lanes_;
  int64_t shortest = *length, last = 0;
  for (int64_t cut : cuts) {
    shortest = std::min(shortest, cut - last);
    last = cut;
  }
  if (!cuts.empty()) shortest = std::min(shortest, *length - last);
  auto n = uint64_t(std::clamp<int64_t>(shortest, 1, lanes_));
  if (tier_.avx512) return std::min<int64_t>(lanes_, int64_t(llvm::bit_ceil(n)));
  // Without masks a vector that divides the length saves the loop over single elements.
  int64_t divisor = shortest & -shortest;
  if (divisor >= 8) return std::min(divisor, lanes_);
  return int64_t(llvm::bit_floor(n));
}

ArrayRef<int64_t> RowEvaluator::cutsOf(Value tensor) const {
  if (auto known = cuts_.find(tensor); known != cuts_.end()) return *known->second;
  auto found = std::make_unique<SmallVector<int64_t>>(findCuts(tensor));
  return *(cuts_[tensor] = std::move(found));
}

SmallVector<int64_t> RowEvaluator::findCuts(Value tensor) const {
  auto shape = dims(tensor);
  if (flat_ || shape.empty() || !shape.back().asConstant()) return {};
  Operation* op = tensor.getDefiningOp();
  if (!op) return {};
  int64_t last = int64_t(shape.size()) - 1, length = *shape.back().asConstant();
  std::set<int64_t> cuts;
  auto take = [&](Value v, int64_t start) {
    for (int64_t cut : cutsOf(v)) cuts.insert(start + cut);
  };
  if (auto concat = dyn_cast<ConcatOp>(op); concat && int64_t(concat.getAxis()) == last) {
    int64_t start = 0;
    for (Value v : concat.getInputs()) {
      cuts.insert(start);
      take(v, start);
      start += *dims(v).back().asConstant();
    }
  } else if (auto pad = dyn_cast<PadOp>(op)) {
    int64_t low = pad.getLow().back();
    cuts.insert({low, length - pad.getHigh().back()});
    take(pad.getX(), low);
  } else if (isMovement(op) && !isa<ConcatOp, BroadcastOp, IotaOp>(op)) {
    return {};
  } else {
    for (Value v : op->getOperands())
      if (auto inner = dims(v); !inner.empty() && inner.back() == shape.back()) take(v, 0);
  }
  cuts.erase(0);
  cuts.erase(length);
  // Short pieces are better selected lane by lane.
  int64_t start = 0;
  for (int64_t cut : cuts) {
    if (cut - start < 8) return {};
    start = cut;
  }
  if (!cuts.empty() && length - start < 8) return {};
  return {cuts.begin(), cuts.end()};
}

ArrayRef<int64_t> RowEvaluator::cutsAlong(Value tensor, int64_t axis) const {
  const bool masked = tier_.avx512 && axis + 1 == int64_t(dims(tensor).size());
  return masked ? cutsOf(tensor) : ArrayRef<int64_t>();
}

int64_t RowEvaluator::laneWidth(Value tensor, int64_t axis) {
  return widthFor(dims(tensor)[axis].asConstant(), cutsAlong(tensor, axis));
}

Accumulators RowEvaluator::overLanes(Value tensor, int64_t axis, Accumulators acc, LaneBody body) {
  Value length = m.scalar(size(dims(tensor)[axis]));
  return overLanes(k.i64(0), length, cutsAlong(tensor, axis), laneWidth(tensor, axis),
                   std::move(acc), body);
}

Accumulators RowEvaluator::overLanes(Value lo, Value hi, ArrayRef<int64_t> cuts, int64_t width,
                                     Accumulators acc, LaneBody body) {
  auto number = [](Value v) { return LoopBuilder::constOf(v); };
  auto lane = [&](Value first, int64_t w, Value start, Value end) {
    auto from = number(start);
    const int64_t align = std::gcd(from.value_or(1), w);
    const int64_t last = number(end).value_or(Coord::kUnbounded) - 1;
    Coord c = m.ramp(m.of(first, align, from.value_or(0), last), w);
    return m.clip(c, from.value_or(0), last);
  };
  auto segment = [&](Value start, Value end) {
    Value length = k.sub(end, start);
    Value whole = width == 1 ? k.i64(0) : k.sub(length, k.rem(length, k.i64(width)));
    Value middle = k.add(start, whole), rest = k.sub(end, middle);
    auto full = number(whole), left = number(rest);
    if (full && *full == width)
      acc.vectors = body(lane(start, width, start, middle), width, {}, acc.vectors);
    else if (!full || *full > 0)
      acc.vectors = k.loop(start, middle, width, acc.vectors, [&](Value i, ValueRange a) {
        return body(lane(i, width, start, middle), width, {}, a);
      });
    if (left && *left == 0) return;
    if (width == 1 || !tier_.avx512) {
      if (left && *left == 1)
        acc.scalars = body(lane(middle, 1, middle, end), 1, {}, acc.scalars);
      else
        acc.scalars = k.loop(middle, end, 1, acc.scalars, [&](Value i, ValueRange a) {
          return body(lane(i, 1, middle, end), 1, {}, a);
        });
      return;
    }
    Value mask = tailMask(rest, width);
    auto tail = [&](ValueRange a) {
      return body(lane(middle, width, middle, end), width, mask, a);
    };
    if (left) {
      acc.vectors = tail(acc.vectors);
      return;
    }
    Values before = acc.vectors;
    Value some = k.make<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, k.i64(0));
    acc.vectors = k.branch(some, [&] { return tail(before); }, [&] { return before; });
  };
  Value start = lo;
  for (int64_t cut : cuts) {
    segment(start, k.i64(cut));
    start = k.i64(cut);
  }
  segment(start, hi);
  return acc;
}

Value RowEvaluator::tailMask(Value count, int64_t width) {
  std::vector<int64_t> ramp = *k.ramp(width);
  return k.shared(k.levelOf(count), loops::keyOf("tail", count, width), [&]() -> Value {
    if (auto fixed = LoopBuilder::constOf(count)) {
      std::vector<int64_t> bits(width);
      for (int64_t i = 0; i < width; ++i) bits[i] = i < *fixed;
      return k.constants(k.b.getI1Type(), bits);
    }
    Type i32 = k.b.getI32Type();
    Value n = k.make<arith::TruncIOp>(i32, count);
    return k.make<arith::CmpIOp>(arith::CmpIPredicate::slt, k.constants(i32, ramp),
                                 k.splat(n, width));
  });
}

// Entry `number` of an array that the kernel is given.
static Value entryOf(LoopBuilder& k, Value array, Type type, size_t number) {
  Value slot =
      k.make<LLVM::GEPOp>(array.getType(), type, array, ArrayRef<LLVM::GEPArg>{int32_t(number)});
  return k.make<LLVM::LoadOp>(type, slot, 8);
}

Value RowEvaluator::makePointer(unsigned number) {
  return entryOf(k, kernel_.getArgument(0), pointerType(), number);
}

Value RowEvaluator::makeSize(const DimExpr& dim) {
  sizes_.push_back(dim.text());
  return entryOf(k, kernel_.getArgument(1), k.b.getI64Type(), sizes_.size() - 1);
}

Value RowEvaluator::makeTable(ConstantOp op) {
  auto value = cast<DenseElementsAttr>(op.getValue());
  const int64_t count = value.getNumElements();
  Type stored = storedType(value.getElementType());
  if (stored.isInteger())
    value = value.mapValues(
        stored, [&](const APInt& word) { return word.zext(stored.getIntOrFloatBitWidth()); });
  value = value.reshape(RankedTensorType::get({count}, stored));
  auto module = kernel_->getParentOfType<ModuleOp>();
  std::string name;
  for (int i = 0; name.empty() || module.lookupSymbol(name); ++i)
    name = kernel_.getName().str() + "_constant" + std::to_string(i);
  auto array = LLVM::LLVMArrayType::get(stored, unsigned(count));
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(module.getBody());
    k.make<LLVM::GlobalOp>(array, true, LLVM::Linkage::Internal, name, value, 64);
  }
  return k.make<LLVM::AddressOfOp>(pointerType(), name);
}

void RowEvaluator::report(GatherOp, Value bad, Value index) {
  auto vector = isa<VectorType>(bad.getType());
  k.when(vector ? anyLane(bad) : bad, [&] {
    auto number = [&](int64_t n) { return k.integer(index.getType(), n); };
    // The word of runtime/status_word.h.
    Value turned = k.make<arith::XOrIOp>(index, number(int64_t(1) << 62));
    turned = k.make<arith::MaxUIOp>(turned, number(1));
    Value negative = k.make<arith::CmpIOp>(arith::CmpIPredicate::slt, index, number(0));
    Value word = k.make<arith::SelectOp>(negative, index, turned);
    if (vector) {
      word = k.make<arith::SelectOp>(bad, word, k.integer(word.getType(), 0));
      word = k.make<LLVM::vector_reduce_umax>(k.b.getI64Type(), word);
    }
    k.make<LLVM::StoreOp>(word, kernel_.getArgument(5), 8, false, false, false,
                          LLVM::AtomicOrdering::monotonic);
  });
}

Value RowEvaluator::loadSpan(const loops::Source& source, Type stored, const Coord& at,
                             const Index& index) {
  auto [least, most] = std::minmax_element(at.lanes->begin(), at.lanes->end());
  if (*most - *least >= 2 * index.width) return {};
  const int64_t first = *least, span = *most - first + 1;
  std::vector<int64_t> offsets = *at.lanes;
  for (int64_t& o : offsets) o -= first;
  bool plain = span == index.width && k.pattern(offsets) == k.ramp(index.width);
  // At most two loads of `part` elements that end exactly at the last one, then a permutation.
  int64_t part = plain ? span : int64_t(llvm::bit_floor(uint64_t(span)));
  auto type = VectorType::get({part}, stored);
  unsigned align = bytesOf(stored);
  auto loadPart = [&](int64_t start) -> Value {
    const Coord from = m.sum(at.base(), first + start, 1);
    Value where = address(source.pointer, stored, m.scalar(from));
    if (!index.mask) return k.make<LLVM::LoadOp>(type, where, align);
    Value mask = index.mask;
    if (!plain) {
      // An element is touched if an active lane wants it.
      Value none = tailMask(k.i64(0), index.width);
      SmallVector<int32_t> owner(part, int32_t(index.width));
      for (int64_t i = index.width; i-- > 0;)
        if (int64_t e = offsets[i] - start; e >= 0 && e < part) owner[e] = int32_t(i);
      mask = k.shuffle(mask, none, owner);
      for (int64_t lane = 0; lane < index.width; ++lane) {
        int64_t e = offsets[lane] - start;
        if (e < 0 || e >= part || owner[e] == lane) continue;
        SmallVector<int32_t> other(part, int32_t(index.width));
        other[e] = int32_t(lane);
        mask = k.make<arith::OrIOp>(mask, k.shuffle(index.mask, none, other));
      }
    }
    return k.make<LLVM::MaskedLoadOp>(type, where, mask, k.none(type), align);
  };
  Value low = loadPart(0);
  if (plain) return low;
  Value high = part == span ? low : loadPart(span - part);
  SmallVector<int32_t> lanes;
  for (int64_t o : offsets) lanes.push_back(int32_t(o < part ? o : part + o - (span - part)));
  return k.shuffle(low, high, lanes);
}

// Results that cost more than reading them back from the first-level cache.
bool RowEvaluator::isWorthKeeping(Value v) const {
  Operation* op = v.getDefiningOp();
  return op && tensorType(v).getElementType().isFloat() &&
         (op->hasTrait<fact::IsTranscendental>() || isa<SqrtOp, RsqrtOp, DivOp, GatherOp>(op));
}

// A scratch row belongs to the row being computed and is addressed by the last coordinate.
loops::Key RowEvaluator::rowKey(Value tensor) const {
  return loops::keyOf("kept row", tensor, ArrayRef<Coord>(row));
}

void RowEvaluator::keep(Value tensor, Value value, const Index& index) {
  if (!pass_ || flat_ || !inOwnRow(index) || !(dims(tensor).back() == pass_->length)) return;
  if (!index.coords.back().sameAs(pass_->lane)) return;
  if (k.top() != pass_->level || k.find(rowKey(tensor)) || !pass_->done.insert(tensor).second)
    return;
  Type type = getElementTypeOrSelf(value);
  unsigned bytes = bytesOf(type);
  if (!slots_.count(tensor)) {
    slots_[tensor] = {scratchBytes, type};
    scratchBytes = scratchBytes + dims(tensor).back() * DimExpr(bytes) + DimExpr(64);
  }
  Value start =
      address(kernel_.getArgument(4), k.b.getI8Type(), m.scalar(size(slots_[tensor].first)));
  Value where = address(start, type, m.scalar(pass_->lane.base()));
  if (index.mask && !index.uniform())
    k.make<LLVM::MaskedStoreOp>(value, where, index.mask, bytes);
  else
    k.make<LLVM::StoreOp>(value, where, bytes);
  ++pass_->stores[tensor];
}

Value RowEvaluator::kept(Value tensor, const Index& index) {
  auto slot = slots_.find(tensor);
  if (slot == slots_.end() || !inOwnRow(index) || !k.find(rowKey(tensor))) return {};
  auto [offset, type] = slot->second;
  Value start = address(kernel_.getArgument(4), k.b.getI8Type(), m.scalar(size(offset)));
  return load({start, type}, index.coords.back(), index);
}

}  // namespace lathe::cpu
