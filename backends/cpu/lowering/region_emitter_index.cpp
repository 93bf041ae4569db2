// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/region_emitter_index.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

int64_t saturate(__int128 v) {
  return int64_t(std::clamp<__int128>(v, -Coord::kUnbounded, Coord::kUnbounded));
}

}  // namespace

Coord IndexMath::constant(int64_t value) { return {k.i64(value), nullptr, {}, value, value}; }

Coord IndexMath::tidy(Coord c) {
  if (!c.lanes) return c;
  int64_t first = c.lanes->front();
  if (llvm::all_of(*c.lanes, [&](int64_t o) { return o == first; })) {
    c.base = k.add(c.base, k.i64(first));
    c.lanes = nullptr;
  }
  return c;
}

Value IndexMath::vector(const Coord& c, int64_t width) {
  if (c.vec) return c.vec;
  Value base = k.splat(c.base, width);
  if (!c.lanes) return base;
  return vectorOp(base, k.constants(k.b.getI64Type(), *c.lanes), "add");
}
Value IndexMath::values(const Coord& c, int64_t width) {
  return c.uniform() ? c.base : vector(c, width);
}

Value IndexMath::vectorOp(Value x, Value y, StringRef op) {
  size_t level = std::max(k.levelOf(x), k.levelOf(y));
  KernelBuilder::Key key{op.data(), x.getAsOpaquePointer(), y.getAsOpaquePointer()};
  return k.shared(level, key, [&]() -> Value {
    if (op == "add") return k.make<arith::AddIOp>(x, y);
    if (op == "sub") return k.make<arith::SubIOp>(x, y);
    if (op == "mul") return k.make<arith::MulIOp>(x, y);
    if (op == "div") return k.make<arith::DivUIOp>(x, y);
    return k.make<arith::RemUIOp>(x, y);
  });
}

Coord IndexMath::plus(Coord c, Value offset, int64_t width) {
  auto o = KernelBuilder::constOf(offset);
  if (c.vec)
    c.vec = vectorOp(c.vec, k.splat(offset, width), "add");
  else
    c.base = k.add(c.base, offset);
  c.lo = o ? saturate(__int128(c.lo) + *o) : -Coord::kUnbounded;
  c.hi = o ? saturate(__int128(c.hi) + *o) : Coord::kUnbounded;
  return c;
}

Coord IndexMath::times(Coord c, Value factor, int64_t width) {
  auto f = KernelBuilder::constOf(factor);
  if (f && *f == 1) return c;
  if (c.lanes && !f) c = {{}, nullptr, vector(c, width), c.lo, c.hi};
  if (c.vec) {
    c.vec = vectorOp(c.vec, k.splat(factor, width), "mul");
  } else {
    c.base = k.mul(c.base, factor);
    if (c.lanes) {
      std::vector<int64_t> offsets = *c.lanes;
      for (int64_t& o : offsets) o *= *f;
      c.lanes = k.pattern(std::move(offsets));
    }
  }
  c.lo = f ? saturate(__int128(c.lo) * *f) : -Coord::kUnbounded;
  c.hi = f ? saturate(__int128(c.hi) * *f) : Coord::kUnbounded;
  return tidy(c);
}

Coord IndexMath::sum(const Coord& x, const Coord& y, int64_t width) {
  Coord r;
  r.lo = saturate(__int128(x.lo) + y.lo);
  r.hi = saturate(__int128(x.hi) + y.hi);
  if (x.vec || y.vec) {
    r.vec = vectorOp(vector(x, width), vector(y, width), "add");
    return r;
  }
  r.base = k.add(x.base, y.base);
  if (x.lanes && y.lanes) {
    std::vector<int64_t> offsets = *x.lanes;
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += (*y.lanes)[i];
    r.lanes = k.pattern(std::move(offsets));
  } else {
    r.lanes = x.lanes ? x.lanes : y.lanes;
  }
  return tidy(r);
}

bool IndexMath::insideOne(const Coord& c, int64_t step) const {
  if (c.uniform()) return true;
  if (c.vec) return false;
  auto [least, most] = std::minmax_element(c.lanes->begin(), c.lanes->end());
  // The base is a multiple of `align`, which divides `step` or is divided by it.
  int64_t align = std::gcd(k.alignOf(c.base), step);
  return *least >= 0 && *most < align;
}

std::pair<Coord, Coord> IndexMath::divide(const Coord& c, Value divisor, int64_t width) {
  auto d = KernelBuilder::constOf(divisor);
  if (d && *d == 1) return {c, constant(0)};
  if (d && c.lo >= 0 && c.hi < *d) return {constant(0), c};
  Coord q, r;
  q.lo = d && *d > 0 && c.lo >= 0 ? c.lo / *d : 0;
  q.hi = d && *d > 0 && c.hi < Coord::kUnbounded ? c.hi / *d : Coord::kUnbounded;
  r.hi = d ? *d - 1 : Coord::kUnbounded;
  if (c.uniform() || (d && *d > 0 && insideOne(c, *d))) {
    q.base = k.div(c.base, divisor);
    r.base = k.rem(c.base, divisor);
    r.lanes = c.lanes;
    if (auto n = KernelBuilder::constOf(q.base)) q.lo = q.hi = *n;
    return {q, r};
  }
  if (d && *d > 0 && c.lanes) {
    std::vector<int64_t> quotient = *c.lanes, remainder = *c.lanes;
    Value base = c.base;
    if (auto fixed = KernelBuilder::constOf(base)) {
      for (size_t i = 0; i < quotient.size(); ++i)
        quotient[i] = remainder[i] = quotient[i] + *fixed;
      base = k.i64(0);
    }
    bool natural = llvm::all_of(quotient, [](int64_t o) { return o >= 0; });
    if (natural && k.alignOf(base) % *d == 0) {
      for (size_t i = 0; i < quotient.size(); ++i) {
        quotient[i] /= *d;
        remainder[i] %= *d;
      }
      q.base = k.div(base, divisor);
      q.lanes = k.pattern(std::move(quotient));
      r.base = k.i64(0);
      r.lanes = k.pattern(std::move(remainder));
      return {tidy(q), tidy(r)};
    }
  }
  // A dim of 0 is computed with only where nothing is read.
  Value x = vector(c, width), y = k.splat(d && *d != 0 ? divisor : k.atLeastOne(divisor), width);
  q.vec = vectorOp(x, y, "div");
  r.vec = vectorOp(x, y, "rem");
  return {q, r};
}

Coord IndexMath::mirror(const Coord& c, Value top, int64_t width) {
  auto t = KernelBuilder::constOf(top);
  Coord r;
  if (t) r.lo = saturate(__int128(*t) - c.hi), r.hi = saturate(__int128(*t) - c.lo);
  if (c.vec) {
    r.vec = vectorOp(k.splat(top, width), c.vec, "sub");
    return r;
  }
  r.base = k.sub(top, c.base);
  if (c.lanes) {
    std::vector<int64_t> offsets = *c.lanes;
    for (int64_t& o : offsets) o = -o;
    r.lanes = k.pattern(std::move(offsets));
  }
  return r;
}

Index IndexMath::pick(const Index& index, ArrayRef<int32_t> lanes) {
  Index out;
  out.width = int64_t(lanes.size());
  for (Coord c : index.coords) {
    if (c.vec && lanes.size() == 1)
      c = {k.make<LLVM::ExtractElementOp>(c.vec, k.integer(k.b.getI32Type(), lanes[0])),
           nullptr,
           {},
           c.lo,
           c.hi};
    else if (c.vec)
      c.vec = k.shuffle(c.vec, c.vec, lanes);
    if (c.lanes) {
      std::vector<int64_t> offsets;
      for (int32_t lane : lanes) offsets.push_back((*c.lanes)[lane]);
      c.lanes = k.pattern(std::move(offsets));
    }
    out.coords.push_back(tidy(c));
  }
  if (index.mask && !out.uniform()) out.mask = k.shuffle(index.mask, index.mask, lanes);
  return out;
}

Coord IndexMath::clip(Coord c, int64_t lo, int64_t hi) const {
  c.lo = std::max(c.lo, lo);
  c.hi = std::min(c.hi, hi);
  return c;
}

}  // namespace lathe::cpu
