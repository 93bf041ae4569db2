// SPDX-License-Identifier: Apache-2.0
#include "backends/common/loops/index.h"

using namespace mlir;

namespace lathe::loops {
namespace {

constexpr int64_t kUnbounded = Coord::kUnbounded;

int64_t saturate(__int128 v) { return int64_t(std::clamp<__int128>(v, -kUnbounded, kUnbounded)); }

}  // namespace

Coord Coord::base() const {
  Coord base;
  base.terms = terms;
  base.constant = constant;
  // Some lane may have the offset 0, but none must: its bounds say nothing of the base.
  base.lo = lanes ? -kUnbounded : lo;
  base.hi = lanes ? kUnbounded : hi;
  return base;
}

void append(Key& key, const Coord& c) {
  append(key, int64_t(c.terms.size()));
  for (auto [value, factor] : c.terms) append(key, value), append(key, factor);
  append(key, c.constant);
  append(key, static_cast<const void*>(c.lanes));
  append(key, c.vec);
}
void append(Key& key, ArrayRef<Coord> coords) {
  for (const Coord& c : coords) append(key, c);
}

Coord IndexMath::of(Value value, int64_t align, int64_t lo, int64_t hi) {
  if (auto number = LoopBuilder::constOf(value)) return Coord(*number);
  auto [it, isNew] = facts_.try_emplace(value, Facts{align, lo, hi, facts_.size()});
  Coord c;
  c.terms = {{value, 1}};
  c.lo = it->second.lo;
  c.hi = it->second.hi;
  return c;
}

Coord IndexMath::of(Pattern lanes) {
  Coord c;
  c.lanes = lanes;
  c.lo = -kUnbounded;
  c.hi = kUnbounded;
  return tidy(c);
}

Coord IndexMath::ramp(const Coord& first, int64_t width) {
  Coord c = first;
  if (width == 1) return c;
  c.lanes = k.ramp(width);
  c.hi = saturate(__int128(c.hi) + width - 1);
  return c;
}

Coord IndexMath::bounded(Coord c) const {
  if (c.vec) return c;
  __int128 lo = c.constant, hi = c.constant;
  for (auto [value, factor] : c.terms) {
    const Facts& f = facts_.at(value);
    lo += __int128(factor) * (factor < 0 ? f.hi : f.lo);
    hi += __int128(factor) * (factor < 0 ? f.lo : f.hi);
  }
  if (c.lanes) {
    auto [least, most] = std::minmax_element(c.lanes->begin(), c.lanes->end());
    lo += *least;
    hi += *most;
  }
  return clip(std::move(c), saturate(lo), saturate(hi));
}

// The offset that all lanes share belongs to the constant.
Coord IndexMath::tidy(Coord c) {
  if (c.lanes && llvm::all_equal(*c.lanes)) {
    c.constant += c.lanes->front();
    c.lanes = nullptr;
  }
  return bounded(std::move(c));
}

Coord IndexMath::sum(const Coord& x, const Coord& y, int64_t width) {
  Coord r;
  r.lo = saturate(__int128(x.lo) + y.lo);
  r.hi = saturate(__int128(x.hi) + y.hi);
  if (x.vec || y.vec) {
    auto same = [](const Coord& c) { return c.number() == 0; };
    r.vec = same(x) ? y.vec : same(y) ? x.vec : k.add(vector(x, width), vector(y, width));
    return r;
  }
  r.constant = x.constant + y.constant;
  auto before = [&](const Coord::Term& a, const Coord::Term& b) {
    return facts_.at(a.first).number < facts_.at(b.first).number;
  };
  size_t i = 0, n = 0;
  while (i < x.terms.size() || n < y.terms.size()) {
    if (n == y.terms.size() || (i < x.terms.size() && before(x.terms[i], y.terms[n]))) {
      r.terms.push_back(x.terms[i++]);
    } else if (i == x.terms.size() || before(y.terms[n], x.terms[i])) {
      r.terms.push_back(y.terms[n++]);
    } else {
      if (int64_t factor = x.terms[i].second + y.terms[n].second)
        r.terms.push_back({x.terms[i].first, factor});
      ++i, ++n;
    }
  }
  if (x.lanes && y.lanes) {
    std::vector<int64_t> offsets = *x.lanes;
    for (size_t lane = 0; lane < offsets.size(); ++lane) offsets[lane] += (*y.lanes)[lane];
    r.lanes = k.pattern(std::move(offsets));
  } else {
    r.lanes = x.lanes ? x.lanes : y.lanes;
  }
  return tidy(r);
}

Coord IndexMath::times(const Coord& c, int64_t factor, int64_t width) {
  if (factor == 1) return c;
  if (factor == 0) return 0;
  Coord r = c;
  r.lo = saturate(__int128(factor < 0 ? c.hi : c.lo) * factor);
  r.hi = saturate(__int128(factor < 0 ? c.lo : c.hi) * factor);
  if (c.vec) {
    Type element = cast<VectorType>(c.vec.getType()).getElementType();
    r.vec = k.mul(c.vec, k.splat(k.integer(element, factor), width));
    return r;
  }
  r.constant *= factor;
  for (auto& [value, f] : r.terms) f *= factor;
  if (c.lanes) {
    std::vector<int64_t> offsets = *c.lanes;
    for (int64_t& o : offsets) o *= factor;
    r.lanes = k.pattern(std::move(offsets));
  }
  return r;
}

Coord IndexMath::times(const Coord& c, const Coord& factor, int64_t width) {
  if (auto number = factor.number()) return times(c, *number, width);
  if (auto number = c.number()) return times(factor, *number, width);
  if (c.vec || c.lanes) {
    Coord r;
    r.vec = k.mul(k.widened(vector(c, width)), k.splat(k.widened(scalar(factor)), width));
    r.lo = -kUnbounded;
    r.hi = kUnbounded;
    return r;
  }
  const bool natural = c.lo >= 0 && factor.lo >= 0;
  return of(k.mul(scalar(c), scalar(factor)), alignOf(c) * alignOf(factor),
            natural ? 0 : -kUnbounded);
}

Coord IndexMath::join(const Coord& c, const Coord& size, const Coord& inner, int64_t width) {
  if (c.uniform() && c.terms.size() == 1 && c.terms[0].second == 1 && c.constant == 0 &&
      !inner.vec) {
    auto it = divisions_.find(c.terms[0].first);
    if (it != divisions_.end() && it->second.divisor.sameAs(size)) {
      // (x / n) * n + x % n
      Coord rest = minus(inner, it->second.remainder, width);
      if (rest.terms.empty() && rest.lo >= 0) {
        Coord x = sum(it->second.x, rest, width);
        return clip(x, saturate(__int128(c.lo) * std::max<int64_t>(size.lo, 0)), kUnbounded);
      }
    }
  }
  return sum(times(c, size, width), inner, width);
}

int64_t IndexMath::alignOf(const Coord& c) const {
  if (c.vec) return 1;
  int64_t align = std::abs(c.constant);
  for (auto [value, factor] : c.terms)
    align = std::gcd(align, saturate(__int128(facts_.at(value).align) * std::abs(factor)));
  return align;
}

size_t IndexMath::levelOf(const Coord& c) const {
  size_t level = c.vec ? k.levelOf(c.vec) : 0;
  for (auto& term : c.terms) level = std::max(level, k.levelOf(term.first));
  return level;
}

bool IndexMath::insideOne(const Coord& c, int64_t step) const {
  if (c.uniform()) return true;
  if (c.vec) return false;
  auto [least, most] = std::minmax_element(c.lanes->begin(), c.lanes->end());
  // What they have in common is a multiple of `align`, which divides `step` or is divided by it.
  int64_t align = std::gcd(alignOf(c), step);
  return *least >= 0 && *most < align;
}

std::pair<Coord, Coord> IndexMath::divide(const Coord& c, const Coord& divisor, int64_t width) {
  auto d = divisor.number();
  if (d && *d == 1) return {c, 0};
  if (d && c.lo >= 0 && c.hi < *d) return {0, c};
  const bool natural = d && *d > 0 && c.lo >= 0;
  Coord quotient, rest = c;
  if (natural && !c.vec) {
    // Terms that are multiples of the divisor leave no remainder.
    rest = Coord();
    rest.lanes = c.lanes;
    for (auto [value, factor] : c.terms)
      (factor % *d == 0 ? quotient : rest)
          .terms.push_back({value, factor % *d == 0 ? factor / *d : factor});
    quotient.constant = c.constant >= 0 ? c.constant / *d : 0;
    rest.constant = c.constant - quotient.constant * *d;
    quotient.lo = rest.lo = -kUnbounded;
    quotient.hi = rest.hi = kUnbounded;
    quotient = bounded(quotient);
    rest = bounded(rest);
    if (rest.lo >= 0 && rest.hi < *d) return {clip(quotient, 0, c.hi / *d), rest};
    if (rest.lo < 0) {
      quotient = 0;
      rest = c;
    }
  }
  Coord q, r;
  auto finished = [&]() -> std::pair<Coord, Coord> {
    if (natural) q = clip(q, 0, c.hi / *d);
    if (d) r = clip(r, 0, *d - 1);
    return {q, r};
  };
  if (rest.uniform() || (natural && insideOne(rest, *d))) {
    const Coord x = rest.base();
    Value dividend = scalar(x), by = scalar(divisor);
    const int64_t align = alignOf(x);
    const bool even = natural && align % *d == 0;
    const int64_t most = natural && rest.hi < kUnbounded ? rest.hi / *d : kUnbounded;
    Coord whole = of(k.narrowed(k.div(dividend, by), most), even ? align / *d : 1, 0, most);
    Coord left = 0;
    if (!even && d)
      left = of(k.narrowed(k.rem(dividend, by), *d - 1), std::gcd(align, *d), 0, *d - 1);
    else if (!even)
      left = of(k.rem(dividend, by));
    if (!whole.terms.empty() && quotient.number() == 0)
      divisions_.try_emplace(whole.terms[0].first, Division{x, divisor, left});
    q = sum(quotient, whole, width);
    r = rest.lanes ? sum(left, of(rest.lanes), width) : left;
    return finished();
  }
  if (natural && rest.lanes) {
    std::vector<int64_t> above = *rest.lanes;
    for (int64_t& o : above) o += rest.constant;
    Coord x = rest.base();
    x.constant = 0;
    if (llvm::all_of(above, [](int64_t o) { return o >= 0; }) && alignOf(x) % *d == 0) {
      std::vector<int64_t> below = above;
      for (int64_t& o : above) o /= *d;
      for (int64_t& o : below) o %= *d;
      Coord whole = 0;
      if (!x.terms.empty()) {
        // Where a chunk begins in front of a border, or counts from the end, its lanes' offsets
        // outweigh what they have in common, which is negative.
        const bool negative = bounded(x).lo < 0;
        Value share = scalar(x), by = scalar(divisor);
        whole = of(negative ? k.signedDiv(share, by) : k.div(share, by), alignOf(x) / *d,
                   negative ? -kUnbounded : 0, kUnbounded);
      }
      q = sum(sum(quotient, whole, width), of(k.pattern(std::move(above))), width);
      r = of(k.pattern(std::move(below)));
      return finished();
    }
  }
  // A dim of 0 is computed with only where nothing is read.
  Value x = vector(rest, width), by = scalar(divisor);
  if (!d || *d == 0) by = k.atLeastOne(by);
  if (by.getType() != getElementTypeOrSelf(x)) x = k.widened(x), by = k.widened(by);
  by = k.splat(by, width);
  q.vec = k.div(x, by);
  r.vec = k.rem(x, by);
  q.hi = r.hi = kUnbounded;
  if (!(quotient.number() == 0)) q = sum(quotient, q, width);
  return finished();
}

Index IndexMath::pick(const Index& index, ArrayRef<int32_t> lanes) {
  Index out;
  out.width = int64_t(lanes.size());
  for (Coord c : index.coords) {
    if (c.vec && lanes.size() == 1) {
      c = clip(of(k.extract(c.vec, lanes[0]), 1, -kUnbounded), c.lo, c.hi);
    } else if (c.vec) {
      c.vec = k.shuffle(c.vec, c.vec, lanes);
    }
    if (c.lanes) {
      std::vector<int64_t> offsets;
      for (int32_t lane : lanes) offsets.push_back((*c.lanes)[lane]);
      c.lanes = k.pattern(std::move(offsets));
    }
    out.coords.push_back(c.vec ? c : tidy(c));
  }
  if (index.mask && !out.uniform()) out.mask = k.shuffle(index.mask, index.mask, lanes);
  return out;
}

Coord IndexMath::clip(Coord c, int64_t lo, int64_t hi) const {
  c.lo = std::max(c.lo, lo);
  c.hi = std::min(c.hi, hi);
  return c;
}

bool IndexMath::isWide(const Coord& c) const {
  if (k.style == IndexStyle::wide) return true;
  __int128 most = std::abs(c.constant);
  for (auto [value, factor] : c.terms) {
    if (!value.getType().isInteger(32)) return true;
    const Facts& f = facts_.at(value);
    most += std::max<__int128>(std::abs(f.lo), std::abs(f.hi)) * std::abs(factor);
  }
  if (c.lanes)
    for (int64_t o : *c.lanes) most = std::max<__int128>(most, most + std::abs(o));
  return most >= (int64_t(1) << 31);
}

Value IndexMath::scalar(const Coord& c) {
  const bool wide = isWide(c);
  // What is known further out is added there.
  auto terms = c.terms;
  auto place = [&](const Coord::Term& t) {
    return std::pair(k.levelOf(t.first), facts_.at(t.first).number);
  };
  llvm::sort(terms,
             [&](const Coord::Term& x, const Coord::Term& y) { return place(x) < place(y); });
  auto typed = [&](Value v) { return wide ? k.widened(v) : v; };
  Value total;
  for (auto [value, factor] : terms) {
    Value term = typed(value);
    if (total && factor == -1) {
      total = k.sub(total, term);
      continue;
    }
    term = k.mul(term, wide ? k.i64(factor) : k.index(factor));
    total = total ? k.add(total, term) : term;
  }
  if (!total) return wide ? k.i64(c.constant) : k.index(c.constant);
  if (c.constant < 0) return k.sub(total, wide ? k.i64(-c.constant) : k.index(-c.constant));
  return k.add(total, wide ? k.i64(c.constant) : k.index(c.constant));
}

Value IndexMath::vector(const Coord& c, int64_t width) {
  if (c.vec) return c.vec;
  Value base = scalar(c);
  if (isWide(c)) base = k.widened(base);
  Value all = k.splat(base, width);
  return c.lanes ? k.add(all, k.constants(base.getType(), *c.lanes)) : all;
}

Value IndexMath::compare(arith::CmpIPredicate predicate, const Coord& x, const Coord& y,
                         int64_t width) {
  const bool uniform = x.uniform() && y.uniform();
  Value a = uniform ? scalar(x) : vector(x, width), b = uniform ? scalar(y) : vector(y, width);
  if (a.getType() != b.getType()) a = k.widened(a), b = k.widened(b);
  return k.compare(predicate, a, b);
}

}  // namespace lathe::loops
