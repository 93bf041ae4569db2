// SPDX-License-Identifier: Apache-2.0
// Chains that compute shapes (Shape, Gather, Concat, Mul, ...) on sizes with symbols. What is no
// polynomial, or is not decided for every value of the symbols, is not folded: it is then recorded.
#include <algorithm>
#include <map>

#include "frontend/onnx/value.h"

namespace lathe::onnx {
namespace {

using Fold = std::optional<std::vector<SizeList>> (*)(const SizeOperands&);
constexpr int64_t kMostItems = 1024;

std::vector<SizeList> one(SizeList list) {
  std::vector<SizeList> lists;
  lists.push_back(std::move(list));
  return lists;
}

bool fitsWell(const DimExpr& e) {
  for (auto& [monomial, factor] : e.terms())
    if (factor > INT64_MAX / 4 || factor < INT64_MIN / 4) return false;
  return e.terms().size() <= 64;
}

// --- elementwise

struct Broadcast {
  Shape shape;
  std::vector<int64_t> a, b;  // the operands' item of each result
};
std::optional<Broadcast> broadcast(const Shape& a, const Shape& b) {
  Broadcast r;
  const size_t rank = std::max(a.size(), b.size());
  auto dim = [&](const Shape& s, size_t i) {
    return i + s.size() < rank ? int64_t(1) : s[i + s.size() - rank];
  };
  for (size_t i = 0; i < rank; ++i) {
    const int64_t m = dim(a, i), n = dim(b, i);
    if (m != n && m != 1 && n != 1) return std::nullopt;
    r.shape.push_back(m == 1 ? n : m);
  }
  const int64_t count = countOf(r.shape);
  if (count > kMostItems) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, stepA = 1, stepB = 1, atA = 0, atB = 0;
    for (size_t axis = rank; axis-- > 0;) {
      const int64_t at = rest % r.shape[axis];
      rest /= r.shape[axis];
      if (dim(a, axis) != 1) atA += at * stepA;
      if (dim(b, axis) != 1) atB += at * stepB;
      stepA *= dim(a, axis);
      stepB *= dim(b, axis);
    }
    r.a.push_back(atA);
    r.b.push_back(atB);
  }
  return r;
}

using Scalar2 = std::optional<DimExpr> (*)(const DimExpr&, const DimExpr&);

template <Scalar2 function, bool isPredicate = false>
std::optional<std::vector<SizeList>> binary(const SizeOperands& o) {
  if (o.in.size() < 2 || !o.in[0] || !o.in[1]) return std::nullopt;
  SizeList result = *o.in[0];
  for (size_t k = 1; k < o.in.size(); ++k) {
    if (!o.in[k]) return std::nullopt;
    const auto shape = broadcast(result.shape, o.in[k]->shape);
    if (!shape) return std::nullopt;
    SizeList next{isPredicate ? DType::Bool : result.dtype, shape->shape, {}};
    for (size_t i = 0; i < shape->a.size(); ++i) {
      auto item = function(result.items[size_t(shape->a[i])], o.in[k]->items[size_t(shape->b[i])]);
      if (!item || !fitsWell(*item)) return std::nullopt;
      // i32 wraps where sizes do not.
      if (auto n = item->asConstant();
          n && result.dtype == DType::I32 && int64_t(int32_t(*n)) != *n)
        return std::nullopt;
      next.items.push_back(*item);
    }
    result = std::move(next);
  }
  return one(std::move(result));
}

bool isLess(const DimExpr& a, const DimExpr& b) { return (b - a - 1).provablyNonNegative(); }
bool isAtMost(const DimExpr& a, const DimExpr& b) { return (b - a).provablyNonNegative(); }
std::optional<DimExpr> truth(bool yes, bool no) {
  if (yes) return DimExpr(1);
  if (no) return DimExpr(0);
  return std::nullopt;
}

std::optional<DimExpr> sum(const DimExpr& a, const DimExpr& b) { return a + b; }
std::optional<DimExpr> difference(const DimExpr& a, const DimExpr& b) { return a - b; }
std::optional<DimExpr> product(const DimExpr& a, const DimExpr& b) { return a * b; }
std::optional<DimExpr> quotient(const DimExpr& a, const DimExpr& b) {
  const auto x = a.asConstant(), y = b.asConstant();
  if (x && y)
    return *y == 0 || (*x == INT64_MIN && *y == -1) ? std::nullopt
                                                    : std::optional(DimExpr(*x / *y));
  return a.dividedBy(b);
}
std::optional<DimExpr> remainder(const DimExpr& a, const DimExpr& b) {
  const auto x = a.asConstant(), y = b.asConstant();
  if (!y || *y == 0) return std::nullopt;
  if (x) return DimExpr(((*x % *y) + *y) % *y);
  if (a.dividedBy(b)) return DimExpr(0);
  return std::nullopt;
}
std::optional<DimExpr> smaller(const DimExpr& a, const DimExpr& b) {
  if (isAtMost(a, b)) return a;
  if (isAtMost(b, a)) return b;
  return std::nullopt;
}
std::optional<DimExpr> larger(const DimExpr& a, const DimExpr& b) {
  if (isAtMost(a, b)) return b;
  if (isAtMost(b, a)) return a;
  return std::nullopt;
}
std::optional<DimExpr> equal(const DimExpr& a, const DimExpr& b) {
  return truth(a == b, isLess(a, b) || isLess(b, a));
}
std::optional<DimExpr> less(const DimExpr& a, const DimExpr& b) {
  return truth(isLess(a, b), isAtMost(b, a));
}
std::optional<DimExpr> greater(const DimExpr& a, const DimExpr& b) { return less(b, a); }
std::optional<DimExpr> lessOrEqual(const DimExpr& a, const DimExpr& b) {
  return truth(isAtMost(a, b), isLess(b, a));
}
std::optional<DimExpr> greaterOrEqual(const DimExpr& a, const DimExpr& b) {
  return lessOrEqual(b, a);
}
std::optional<DimExpr> both(const DimExpr& a, const DimExpr& b) { return a * b; }
std::optional<DimExpr> either(const DimExpr& a, const DimExpr& b) { return a + b - a * b; }

std::optional<std::vector<SizeList>> negated(const SizeOperands& o) {
  SizeList x = *o.in[0];
  for (DimExpr& item : x.items) item = (x.dtype == DType::Bool ? DimExpr(1) : DimExpr(0)) - item;
  return one(std::move(x));
}
std::optional<std::vector<SizeList>> same(const SizeOperands& o) { return one(*o.in[0]); }

// To i64, i32 or bool (ONNX's numbers of element types); other types have no symbols.
std::optional<std::vector<SizeList>> convertedTo(SizeList x, DType to) {
  if (to != DType::I64 && to != DType::I32 && to != DType::Bool) return std::nullopt;
  for (DimExpr& item : x.items) {
    const auto number = item.asConstant();
    if (to == DType::Bool) {
      const auto isZero = equal(item, DimExpr(0));
      if (!isZero) return std::nullopt;
      item = DimExpr(1) - *isZero;
    } else if (to == DType::I32 && number && int64_t(int32_t(*number)) != *number) {
      return std::nullopt;
    }
  }
  x.dtype = to;
  return one(std::move(x));
}
std::optional<std::vector<SizeList>> converted(const SizeOperands& o) {
  const auto to = dtypeOf(ElementType(o.attribute("to", 0)));
  return to ? convertedTo(*o.in[0], *to) : std::nullopt;
}
std::optional<std::vector<SizeList>> convertedLike(const SizeOperands& o) {
  if (o.in.size() != 2 || !o.in[1]) return std::nullopt;
  return convertedTo(*o.in[0], o.in[1]->dtype);
}

std::optional<std::vector<SizeList>> chosen(const SizeOperands& o) {
  if (o.in.size() != 3 || !o.in[0] || !o.in[1] || !o.in[2]) return std::nullopt;
  const auto values = broadcast(o.in[1]->shape, o.in[2]->shape);
  if (!values) return std::nullopt;
  const auto all = broadcast(o.in[0]->shape, values->shape);
  if (!all) return std::nullopt;
  SizeList result{o.in[1]->dtype, all->shape, {}};
  for (size_t i = 0; i < all->a.size(); ++i) {
    const auto condition = o.in[0]->items[size_t(all->a[i])].asConstant();
    if (!condition) return std::nullopt;
    const auto at = size_t(all->b[i]);
    result.items.push_back(*condition ? o.in[1]->items[size_t(values->a[at])]
                                      : o.in[2]->items[size_t(values->b[at])]);
  }
  return one(std::move(result));
}

// --- lists of rank 0 and 1

std::optional<std::vector<SizeList>> joined(const SizeOperands& o) {
  SizeList result{o.in[0] ? o.in[0]->dtype : DType::I64, {}, {}};
  for (auto& part : o.in) {
    if (!part || part->shape.size() != 1) return std::nullopt;
    result.items.insert(result.items.end(), part->items.begin(), part->items.end());
  }
  if (int64_t(result.items.size()) > kMostItems) return std::nullopt;
  result.shape = {int64_t(result.items.size())};
  return one(std::move(result));
}

std::optional<std::vector<SizeList>> picked(const SizeOperands& o) {
  const auto& x = o.in[0];
  if (o.in.size() != 2 || !o.in[1] || x->shape.size() != 1 || o.attribute("axis", 0) > 0)
    return std::nullopt;
  SizeList result{x->dtype, o.in[1]->shape, {}};
  for (const DimExpr& index : o.in[1]->items) {
    auto i = index.asConstant();
    if (i && *i < 0) *i += x->shape[0];
    if (!i || *i < 0 || *i >= x->shape[0]) return std::nullopt;
    result.items.push_back(x->items[size_t(*i)]);
  }
  return one(std::move(result));
}

std::optional<std::vector<int64_t>> constants(const std::optional<SizeList>& list) {
  if (!list) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const DimExpr& item : list->items) {
    const auto n = item.asConstant();
    if (!n) return std::nullopt;
    numbers.push_back(*n);
  }
  return numbers;
}

// An operand of numbers, or the attribute of the same meaning that older opsets have.
std::optional<std::vector<int64_t>> numbersOf(const SizeOperands& o, size_t i,
                                              std::string_view attribute) {
  return i < o.in.size() && o.in[i] ? constants(o.in[i]) : o.list(attribute);
}

std::optional<std::vector<SizeList>> sliced(const SizeOperands& o) {
  const auto& x = o.in[0];
  const auto starts = numbersOf(o, 1, "starts"), ends = numbersOf(o, 2, "ends");
  if (x->shape.size() != 1 || !starts || !ends || starts->size() != 1 || ends->size() != 1)
    return std::nullopt;
  if (o.in.size() > 3 && o.in[3] && !constants(o.in[3])) return std::nullopt;
  int64_t step = 1;
  if (o.in.size() > 4 && o.in[4]) {
    const auto steps = constants(o.in[4]);
    if (!steps || steps->size() != 1 || steps->at(0) == 0 || steps->at(0) == INT64_MIN)
      return std::nullopt;
    step = steps->at(0);
  }
  const int64_t n = x->shape[0];
  auto place = [&](int64_t at) {
    if (at < 0) at = at < -n ? -1 : at + n;
    return step > 0 ? std::clamp(at, int64_t(0), n) : std::clamp(at, int64_t(-1), n - 1);
  };
  auto start = [&](int64_t at) { return at < -n && step > 0 ? 0 : place(at); };
  SizeList result{x->dtype, {}, {}};
  const int64_t end = ends->at(0) < -n && step > 0 ? 0 : place(ends->at(0));
  for (int64_t i = start(starts->at(0)); step > 0 ? i < end : i > end; i += step)
    result.items.push_back(x->items[size_t(i)]);
  result.shape = {int64_t(result.items.size())};
  return one(std::move(result));
}

std::optional<std::vector<SizeList>> reshaped(SizeList x, Shape shape) {
  if (countOf(shape) != int64_t(x.items.size())) return std::nullopt;
  x.shape = std::move(shape);
  return one(std::move(x));
}

std::optional<std::vector<SizeList>> unsqueezed(const SizeOperands& o) {
  auto axes = numbersOf(o, 1, "axes");
  if (!axes) return std::nullopt;
  const int64_t rank = int64_t(o.in[0]->shape.size() + axes->size());
  if (rank > 8) return std::nullopt;
  std::vector<bool> isNew(size_t(rank), false);
  for (int64_t a : *axes) {
    if (a < 0) a += rank;
    if (a < 0 || a >= rank || isNew[size_t(a)]) return std::nullopt;
    isNew[size_t(a)] = true;
  }
  Shape shape;
  auto next = o.in[0]->shape.begin();
  for (bool fresh : isNew) shape.push_back(fresh ? 1 : *next++);
  return reshaped(*o.in[0], shape);
}

std::optional<std::vector<SizeList>> squeezed(const SizeOperands& o) {
  const Shape& from = o.in[0]->shape;
  const auto axes = numbersOf(o, 1, "axes");
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    bool gone = !axes && from[i] == 1;
    if (axes)
      for (int64_t a : *axes) gone |= a == int64_t(i) || a + int64_t(from.size()) == int64_t(i);
    if (!gone) shape.push_back(from[i]);
  }
  return reshaped(*o.in[0], shape);
}

std::optional<std::vector<SizeList>> reshapedTo(const SizeOperands& o) {
  auto shape = numbersOf(o, 1, "shape");
  if (!shape || o.attribute("allowzero", 0)) return std::nullopt;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape->size(); ++i) {
    int64_t& d = (*shape)[i];
    if (d == 0 && i < o.in[0]->shape.size()) d = o.in[0]->shape[i];
    if (d == -1)
      open = int64_t(i);
    else if (__builtin_mul_overflow(known, d, &known))
      return std::nullopt;
  }
  if (open >= 0 && known > 0) (*shape)[size_t(open)] = int64_t(o.in[0]->items.size()) / known;
  return reshaped(*o.in[0], *shape);
}

std::optional<std::vector<SizeList>> expanded(const SizeOperands& o) {
  if (o.in.size() != 2) return std::nullopt;
  const auto shape = constants(o.in[1]);
  if (!shape || std::ranges::any_of(*shape, [](int64_t d) { return d < 0; })) return std::nullopt;
  const auto all = broadcast(o.in[0]->shape, *shape);
  if (!all) return std::nullopt;
  SizeList result{o.in[0]->dtype, all->shape, {}};
  for (int64_t i : all->a) result.items.push_back(o.in[0]->items[size_t(i)]);
  return one(std::move(result));
}

std::optional<std::vector<SizeList>> ranged(const SizeOperands& o) {
  if (o.in.size() != 3) return std::nullopt;
  const auto start = constants(o.in[0]), end = constants(o.in[1]), step = constants(o.in[2]);
  if (!start || !end || !step || start->size() != 1 || end->size() != 1 || step->size() != 1)
    return std::nullopt;
  SizeList result{o.in[0]->dtype, {}, {}};
  const int64_t d = step->at(0);
  if (d == 0 || d == INT64_MIN) return std::nullopt;
  for (int64_t i = start->at(0); d > 0 ? i < end->at(0) : i > end->at(0);) {
    if (int64_t(result.items.size()) == kMostItems) return std::nullopt;
    result.items.push_back(i);
    if (__builtin_add_overflow(i, d, &i)) break;
  }
  result.shape = {int64_t(result.items.size())};
  return one(std::move(result));
}

// Of all elements of a list.
template <Scalar2 function>
std::optional<std::vector<SizeList>> reduced(const SizeOperands& o) {
  const SizeList& x = *o.in[0];
  const auto axes = numbersOf(o, 1, "axes");
  const bool whole = !axes || (axes->size() == 1 && (axes->at(0) == 0 || axes->at(0) == -1));
  if (x.shape.size() != 1 || !whole || x.items.empty() || o.attribute("noop_with_empty_axes", 0))
    return std::nullopt;
  DimExpr total = x.items[0];
  for (size_t i = 1; i < x.items.size(); ++i) {
    auto next = function(total, x.items[i]);
    if (!next || !fitsWell(*next)) return std::nullopt;
    total = *next;
  }
  return one({x.dtype, o.attribute("keepdims", 1) ? Shape{1} : Shape{}, {total}});
}

std::optional<std::vector<SizeList>> divided(const SizeOperands& o) {
  const SizeList& x = *o.in[0];
  if (x.shape.size() != 1 || o.attribute("axis", 0) > 0) return std::nullopt;
  auto sizes = numbersOf(o, 1, "split");
  const int64_t n = x.shape[0], count = int64_t(o.outputs);
  if (!sizes) {
    sizes.emplace(size_t(count), (n + count - 1) / count);
    sizes->back() = n - (count - 1) * sizes->front();
  }
  if (sizes->size() != o.outputs) return std::nullopt;
  std::vector<SizeList> parts;
  int64_t at = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > n - at) return std::nullopt;
    parts.push_back({x.dtype, {size}, {x.items.begin() + at, x.items.begin() + at + size}});
    at += size;
  }
  return parts;
}

const std::map<std::string_view, Fold>& folds() {
  static const std::map<std::string_view, Fold> table{
      {"Identity", same},
      {"Cast", converted},
      {"CastLike", convertedLike},
      {"Add", binary<sum>},
      {"Sub", binary<difference>},
      {"Mul", binary<product>},
      {"Div", binary<quotient>},
      {"Mod", binary<remainder>},
      {"Min", binary<smaller>},
      {"Max", binary<larger>},
      {"Equal", binary<equal, true>},
      {"Less", binary<less, true>},
      {"Greater", binary<greater, true>},
      {"LessOrEqual", binary<lessOrEqual, true>},
      {"GreaterOrEqual", binary<greaterOrEqual, true>},
      {"And", binary<both>},
      {"Or", binary<either>},
      {"Not", negated},
      {"Neg", negated},
      {"Where", chosen},
      {"Concat", joined},
      {"Gather", picked},
      {"Slice", sliced},
      {"Squeeze", squeezed},
      {"Unsqueeze", unsqueezed},
      {"Reshape", reshapedTo},
      {"Expand", expanded},
      {"Range", ranged},
      {"ReduceProd", reduced<product>},
      {"ReduceSum", reduced<sum>},
      {"ReduceMax", reduced<larger>},
      {"ReduceMin", reduced<smaller>},
      {"Split", divided}};
  return table;
}

}  // namespace

std::optional<std::vector<SizeList>> foldSizes(std::string_view op, const SizeOperands& operands) {
  const auto fold = folds().find(op);
  if (fold == folds().end() || operands.in.empty() || !operands.in[0]) return std::nullopt;
  if (op == "Mod" && operands.attribute("fmod", 0)) return std::nullopt;
  return fold->second(operands);
}

}  // namespace lathe::onnx
