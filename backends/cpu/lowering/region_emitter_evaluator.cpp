// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/region_emitter_evaluator.h"

#include "passes/region_ops.h"

using namespace mlir;

namespace lathe::cpu {

static const char valueKind = 0;
const void* const Evaluator::kValue = &valueKind;

Evaluator::Evaluator(KernelBuilder& builder, func::FuncOp region, LLVM::LLVMFuncOp kernel,
                     bool flat)
    : k(builder), m(builder), region_(region), kernel_(kernel), flat_(flat), lanes_(k.tier.lanes) {
  // Doubles fill a register twice as fast, and calls are made lane by lane.
  bool wide = false, calls = false;
  region.walk([&](Operation* op) {
    for (Type type : op->getResultTypes())
      wide |= cast<RankedTensorType>(type).getElementType().isF64();
    calls |= isa<SinOp, CosOp, LogOp, PowOp, ModOp>(op);
  });
  if (wide) lanes_ /= 2;
  if (calls) lanes_ = 8;
  findReductions();
}

SmallVector<DimExpr> Evaluator::dims(Value tensor) const {
  auto type = tensorType(tensor);
  if (flat_) {
    DimExpr count = *elementCountOf(type);
    if (count == DimExpr(1)) return {};
    return {count};
  }
  SmallVector<DimExpr> all;
  for (int64_t i = 0; i < type.getRank(); ++i) all.push_back(*dimExprOf(type, i));
  return all;
}

Type Evaluator::typeAt(Type element, const Index& index) {
  Type type = computedType(element);
  return index.uniform() ? type : VectorType::get({index.width}, type);
}

Value Evaluator::spread(Value value, const Index& index) {
  if (index.uniform() || isa<VectorType>(value.getType())) return value;
  return k.splat(value, index.width);
}

Index Evaluator::broadcastIndex(Value operand, const Index& index) {
  auto shape = dims(operand);
  size_t skip = index.coords.size() - shape.size();
  SmallVector<Coord, 4> coords(index.coords.begin() + skip, index.coords.end());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == DimExpr(1)) coords[i] = m.constant(0);
  return index.with(std::move(coords));
}

Value Evaluator::operand(Operation* op, unsigned number, const Index& index) {
  Value v = op->getOperand(number);
  return spread(eval(v, broadcastIndex(v, index)), index);
}

Value Evaluator::elementwise(Operation* op, const Index& index) {
  KernelBuilder::Values operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) operands.push_back(operand(op, i, index));
  return cast<ScalarOp>(op).emit(k, operands);
}

Value Evaluator::eval(Value tensor, const Index& index) {
  auto key = keyOf(tensor, index, kValue);
  size_t level = k.barrier();
  for (const Coord& c : index.coords) {
    if (c.base) level = std::max(level, k.levelOf(c.base));
    if (c.vec) level = std::max(level, k.levelOf(c.vec));
  }
  if (index.mask && !index.uniform()) level = std::max(level, k.levelOf(index.mask));
  Value value = k.shared(level, key, [&] { return spread(evalHere(tensor, index), index); });
  if (pass_ && kept_.contains(tensor)) keep(tensor, value, index);
  return value;
}

Value Evaluator::evalHere(Value tensor, const Index& outer) {
  if (Value kept = spilled(tensor, outer)) return kept;
  Index index = outer;
  auto shape = dims(tensor);
  for (size_t i = 0; i < shape.size(); ++i)
    index.coords[i] =
        m.clip(index.coords[i], 0, shape[i].asConstant().value_or(Coord::kUnbounded) - 1);
  if (auto argument = dyn_cast<BlockArgument>(tensor)) return this->argument(argument, index);
  Operation* op = tensor.getDefiningOp();
  Location outside = k.loc;
  k.loc = op->getLoc();
  Value value;
  if (auto literal = dyn_cast<ConstantOp>(op))
    value = constant(literal, index);
  else if (isMovement(op))
    value = this->shape(op, index);
  else
    value = isReduction(op) ? reduce(op, index) : elementwise(op, index);
  k.loc = outside;
  return value;
}

int64_t Evaluator::widthFor(std::optional<int64_t> length, ArrayRef<int64_t> cuts) const {
  if (!length) return lanes_;
  int64_t shortest = *length, last = 0;
  for (int64_t cut : cuts) {
    shortest = std::min(shortest, cut - last);
    last = cut;
  }
  if (!cuts.empty()) shortest = std::min(shortest, *length - last);
  auto n = uint64_t(std::clamp<int64_t>(shortest, 1, lanes_));
  if (k.tier.avx512) return std::min<int64_t>(lanes_, int64_t(llvm::bit_ceil(n)));
  // Without masks a vector that divides the length saves the loop over single elements.
  int64_t divisor = shortest & -shortest;
  if (divisor >= 8) return std::min(divisor, lanes_);
  return int64_t(llvm::bit_floor(n));
}

SmallVector<int64_t> Evaluator::cutsOf(Value tensor) const {
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

Accumulators Evaluator::overLanes(Value lo, Value hi, ArrayRef<int64_t> cuts, int64_t width,
                                  Accumulators acc, LaneBody body) {
  auto number = [](Value v) { return KernelBuilder::constOf(v); };
  auto lane = [&](Value base, int64_t w, Value start, Value end) {
    Coord c{base, w == 1 ? nullptr : k.ramp(w)};
    c.lo = number(start).value_or(0);
    c.hi = number(end).value_or(Coord::kUnbounded) - 1;
    return c;
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
    if (width == 1 || !k.tier.avx512) {
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
    KernelBuilder::Values before = acc.vectors;
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

}  // namespace lathe::cpu
