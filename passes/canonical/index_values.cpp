// SPDX-License-Identifier: Apache-2.0
#include "passes/canonical/index_values.h"

#include <cmath>
#include <map>
#include <set>

#include "llvm/ADT/TypeSwitch.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

// A chain of more ops is not followed: masks of libraries have a few dozen.
constexpr int kMostOps = 512;
// Numbers in sums of places and sizes, which are below 2^29 (canonical/ramps.cpp).
constexpr int64_t kLargest = int64_t(1) << 20;

using Place = SmallVector<DimExpr, 6>;

DimExpr monomial(const DimExpr::Monomial& symbols, int64_t factor) {
  DimExpr product(factor);
  for (const std::string& s : symbols) product = product * DimExpr::symbol(s);
  return product;
}

DimExpr substitute(const DimExpr& in, const std::string& symbol, const DimExpr& by) {
  DimExpr sum(0);
  for (auto& [symbols, factor] : in.terms()) {
    DimExpr term(factor);
    for (const std::string& s : symbols) term = term * (s == symbol ? by : DimExpr::symbol(s));
    sum = sum + term;
  }
  return sum;
}

bool mentions(const DimExpr& e, const std::string& symbol) {
  return llvm::is_contained(e.symbols(), symbol);
}

class Reader {
 public:
  // An axis of the result: where it has an element, no factor of its size is 0.
  std::string axis(const DimExpr& size) {
    if (size.terms().size() == 1)
      for (const std::string& symbol : size.symbols()) positive_.insert(symbol);
    return fresh(size);
  }
  // A symbol that no size has, for a place along an axis of `size`.
  std::string fresh(const DimExpr& size) {
    std::string name = "@" + std::to_string(places_.size());
    places_.push_back({name, size});
    return name;
  }

  std::optional<DimExpr> at(Value v, const Place& place) {
    if (++ops_ > kMostOps) return std::nullopt;
    auto integer = dyn_cast<IntegerType>(tensorType(v).getElementType());
    if (!integer || (integer.getWidth() != 1 && integer.getWidth() < 32)) return std::nullopt;
    std::optional<DimExpr> value = read(v, place);
    return value && fits(*value, integer.getWidth()) ? value : std::nullopt;
  }

 private:
  struct Bounded {
    std::string name;
    DimExpr size;
  };

  // No element leaves the type's range: in 64 bits four products of two sizes fit, in 32 bits three
  // sizes.
  static bool fits(const DimExpr& e, unsigned width) {
    const bool narrow = width < 64;
    if (e.terms().size() > (narrow ? 3u : 4u)) return false;
    return llvm::all_of(e.terms(), [&](auto& term) {
      const size_t degree = term.first.size();
      const int64_t most = degree == 0 ? kLargest : narrow || degree == 2 ? 1 : kLargest;
      return degree <= (narrow ? 1u : 2u) && std::abs(term.second) <= most;
    });
  }

  std::optional<DimExpr> read(Value v, const Place& place) {
    if (auto c = constantOf(v)) {
      if (elementOf(v).isInteger(1)) return DimExpr(*c != 0);
      return std::abs(*c) <= double(kLargest) ? std::optional(DimExpr(int64_t(*c))) : std::nullopt;
    }
    Operation* op = v.getDefiningOp();
    if (!op) return std::nullopt;
    return TypeSwitch<Operation*, std::optional<DimExpr>>(op)
        .Case([&](IotaOp o) { return place[size_t(o.getAxis())]; })
        .Case([&](BroadcastOp o) { return stretched(o.getX(), place); })
        .Case([&](TransposeOp o) {
          Place from(place.size());
          for (auto [i, p] : llvm::enumerate(o.getPermutation())) from[size_t(p)] = place[i];
          return at(o.getX(), from);
        })
        .Case([&](SliceOp o) {
          Place from = place;
          for (auto [i, p] : llvm::enumerate(from))
            p = p * DimExpr(o.getStrides()[i]) + exprOf(o.getStarts().getDims()[i]);
          return at(o.getX(), from);
        })
        .Case([&](ReshapeOp o) { return reshaped(o, place); })
        .Case([&](ConcatOp o) { return joined(o, place); })
        .Case([&](GatherOp o) { return gathered(o, place); })
        .Case([&](AddOp o) { return both(o, place, [](auto& a, auto& b) { return a + b; }); })
        .Case([&](SubOp o) { return both(o, place, [](auto& a, auto& b) { return a - b; }); })
        .Case([&](MulOp o) { return both(o, place, [](auto& a, auto& b) { return a * b; }); })
        .Case([&](NegOp o) -> std::optional<DimExpr> {
          auto x = at(o.getX(), place);
          return x ? std::optional(DimExpr(0) - *x) : std::nullopt;
        })
        .Case([&](CastOp o) { return cast(o, place); })
        .Case([&](CompareOp o) { return compared(o, place); })
        .Case([&](LogicalNotOp o) -> std::optional<DimExpr> {
          auto x = at(o.getX(), place);
          return x ? std::optional(DimExpr(1) - *x) : std::nullopt;
        })
        .Case([&](LogicalAndOp o) { return decided(o, place, 0); })
        .Case([&](LogicalOrOp o) { return decided(o, place, 1); })
        .Case([&](CumSumOp o) { return runningSum(o, place); })
        .Case([&](ReduceSumOp o) { return sum(o, place); })
        .Default([](Operation*) { return std::nullopt; });
  }

  // An operand that stretches to the place's axes, aligned at the last.
  std::optional<DimExpr> stretched(Value x, const Place& place) {
    auto dims = dimsOf(tensorType(x));
    Place from(place.end() - ptrdiff_t(dims.size()), place.end());
    for (auto [d, p] : llvm::zip(dims, from))
      if (isOne(d)) p = DimExpr(0);
    return at(x, from);
  }

  template <class Op, class Fn>
  std::optional<DimExpr> both(Op op, const Place& place, Fn fn) {
    auto a = stretched(op.getA(), place);
    if (!a) return std::nullopt;
    auto b = stretched(op.getB(), place);
    return b ? std::optional(fn(*a, *b)) : std::nullopt;
  }

  // `decides` of one side is that of both; else both are known numbers.
  template <class Op>
  std::optional<DimExpr> decided(Op op, const Place& place, int64_t decides) {
    auto a = stretched(op.getA(), place), b = stretched(op.getB(), place);
    const DimExpr d(decides);
    if ((a && *a == d) || (b && *b == d)) return d;
    if (!a || !b) return std::nullopt;
    return a->asConstant() && b->asConstant() ? std::optional(DimExpr(1 - decides)) : std::nullopt;
  }

  std::optional<DimExpr> cast(CastOp op, const Place& place) {
    auto x = at(op.getX(), place);
    const bool toCondition = elementOf(op).isInteger(1);
    if (!x || !toCondition || elementOf(op.getX()).isInteger(1)) return x;
    auto number = x->asConstant();
    return number ? std::optional(DimExpr(*number != 0)) : std::nullopt;
  }

  // True if the expression is at least 0 at every place and for all sizes.
  bool isNeverNegative(DimExpr e) const {
    // A place counts from the side on which it makes the expression small.
    std::map<std::string, int64_t> least;
    for (const std::string& symbol : e.symbols()) least[symbol] = 0;
    for (const Bounded& p : places_)
      for (const std::string& symbol : p.size.symbols()) least[symbol] = 0;
    for (const std::string& symbol : positive_) least[symbol] = 1;
    for (const Bounded& p : places_) {
      least[p.name] = 0;
      bool falls = false, rises = false;
      for (auto& [symbols, factor] : e.terms())
        if (llvm::is_contained(symbols, p.name)) (factor < 0 ? falls : rises) = true;
      if (falls && !rises) e = substitute(e, p.name, p.size - DimExpr(1) - DimExpr::symbol(p.name));
    }
    return e.provablyNonNegative(least);
  }
  bool isInside(const DimExpr& e, const DimExpr& size) const {
    return isNeverNegative(e) && isNeverNegative(size - DimExpr(1) - e);
  }

  std::optional<DimExpr> compared(CompareOp op, const Place& place) {
    auto difference = both(op, place, [](auto& a, auto& b) { return a - b; });
    if (!difference) return std::nullopt;
    const DimExpr& d = *difference;
    const bool notBelow = isNeverNegative(d), notAbove = isNeverNegative(DimExpr(0) - d);
    const bool above = isNeverNegative(d - DimExpr(1)), below = isNeverNegative(DimExpr(-1) - d);
    auto known = [](bool yes, bool no) {
      return yes || no ? std::optional(DimExpr(yes)) : std::nullopt;
    };
    switch (op.getPredicate()) {
      case Compare::eq:
        return known(d == DimExpr(0), above || below);
      case Compare::ne:
        return known(above || below, d == DimExpr(0));
      case Compare::lt:
        return known(below, notBelow);
      case Compare::le:
        return known(notAbove, above);
      case Compare::gt:
        return known(above, notAbove);
      case Compare::ge:
        return known(notBelow, below);
    }
    return std::nullopt;
  }

  // The number of the element in row-major order, taken apart by the dims of the source from the
  // last on: what divides by a dim is of the axes in front of it.
  std::optional<DimExpr> reshaped(ReshapeOp op, const Place& place) {
    auto from = dimsOf(tensorType(op.getX())), to = dimsOf(tensorType(op));
    DimExpr number(0);
    for (auto [d, p] : llvm::zip(to, place)) {
      if (!d) return std::nullopt;
      number = number * exprOf(d) + p;
    }
    Place source(from.size());
    for (size_t i = from.size(); i-- > 0;) {
      if (!from[i]) return std::nullopt;
      if (i == 0) {  // inside because the number is
        source[0] = number;
        break;
      }
      const DimExpr dim = exprOf(from[i]);
      DimExpr quotient(0), rest(0);
      for (auto& [symbols, factor] : number.terms()) {
        const DimExpr term = monomial(symbols, factor);
        if (auto q = term.dividedBy(dim))
          quotient = quotient + *q;
        else
          rest = rest + term;
      }
      if (!isInside(rest, dim)) return std::nullopt;
      source[i] = rest;
      number = quotient;
    }
    return at(op.getX(), source);
  }

  // Parts of one element, and longer ones that agree on one polynomial.
  std::optional<DimExpr> joined(ConcatOp op, const Place& place) {
    const size_t axis = size_t(op.getAxis());
    auto all = dimExprOf(tensorType(op), int64_t(axis));
    if (!all) return std::nullopt;
    const std::string along = fresh(*all);
    struct Single {
      DimExpr where, value;
    };
    SmallVector<Single> singles;
    std::optional<DimExpr> main;
    DimExpr offset(0);
    for (Value part : op.getInputs()) {
      auto size = dimExprOf(tensorType(part), int64_t(axis));
      if (!size) return std::nullopt;
      Place from = place;
      const bool single = *size == DimExpr(1);
      from[axis] = single ? DimExpr(0) : DimExpr::symbol(along) - offset;
      auto value = at(part, from);
      if (!value) return std::nullopt;
      if (single)
        singles.push_back({offset, *value});
      else if (main && !(*main == *value))
        return std::nullopt;
      else
        main = value;
      offset = offset + *size;
    }
    if (!main) return std::nullopt;
    for (const Single& s : singles)
      if (!(substitute(*main, along, s.where) == s.value)) return std::nullopt;
    return substitute(*main, along, place[axis]);
  }

  std::optional<DimExpr> gathered(GatherOp op, const Place& place) {
    const size_t axis = size_t(op.getAxis());
    const size_t rank = size_t(tensorType(op.getIndices()).getRank());
    auto size = dimExprOf(tensorType(op.getX()), int64_t(axis));
    auto index = at(op.getIndices(), Place(place.begin() + axis, place.begin() + axis + rank));
    // An index outside is an error when the program runs: that is not folded away.
    if (!index || !size || !isInside(*index, *size)) return std::nullopt;
    Place from(place.begin(), place.begin() + axis);
    from.push_back(*index);
    from.append(place.begin() + axis + rank, place.end());
    return at(op.getX(), from);
  }

  std::optional<DimExpr> runningSum(CumSumOp op, const Place& place) {
    const size_t axis = size_t(op.getAxis());
    auto size = dimExprOf(tensorType(op), int64_t(axis));
    if (!size) return std::nullopt;
    const std::string along = fresh(*size);
    Place from = place;
    from[axis] = DimExpr::symbol(along);
    auto each = at(op.getX(), from);
    if (!each || mentions(*each, along)) return std::nullopt;
    return *each * (place[axis] + DimExpr(1));
  }

  std::optional<DimExpr> sum(ReduceSumOp op, const Place& place) {
    auto type = tensorType(op.getX());
    Place from;
    SmallVector<std::string> summed;
    DimExpr count(1);
    size_t next = 0;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      if (!llvm::is_contained(op.getAxes(), i)) {
        from.push_back(place[next++]);
        continue;
      }
      auto size = dimExprOf(type, i);
      if (!size) return std::nullopt;
      count = count * *size;
      summed.push_back(fresh(*size));
      from.push_back(DimExpr::symbol(summed.back()));
      next += op.getKeepDims();
    }
    auto each = at(op.getX(), from);
    if (!each) return std::nullopt;
    for (const std::string& s : summed)
      if (mentions(*each, s)) return std::nullopt;
    return *each * count;
  }

  std::vector<Bounded> places_;
  std::set<std::string> positive_;
  int ops_ = 0;
};

}  // namespace

std::optional<IndexValue> indexValueOf(Value tensor) {
  Reader reader;
  IndexValue result;
  Place place;
  for (int64_t i = 0; i < tensorType(tensor).getRank(); ++i) {
    auto size = dimExprOf(tensorType(tensor), i);
    if (!size) return std::nullopt;
    result.axes.push_back(reader.axis(*size));
    place.push_back(DimExpr::symbol(result.axes.back()));
  }
  auto value = reader.at(tensor, place);
  if (!value) return std::nullopt;
  result.value = *value;
  return result;
}

}  // namespace lathe
