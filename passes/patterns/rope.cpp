// SPDX-License-Identifier: Apache-2.0
//
//   x ─┬─ slice a ─┬─ mul cos ─── sub ── (reshape) ─┬─ concat ── (reshape)     rope(x, cos, sin)
//      └─ slice b ─│┬─ mul sin ───┘                 │
//                  └┼─ mul sin ─── add ── (reshape) ┘
//                   └─ mul cos ────┘
//
// half: a and b are the halves of the last axis, joined along it. interleaved: a and b are its even
// and odd elements, joined along a new last axis that the last reshape folds in.
//
//   x ─┬───────────────────── mul C ── add                                     the same, half
//      ├─ slice b ─ neg ─┐             │
//      └─ slice a ──── concat ── mul S ┘       C, S: concat(cos, cos), concat(sin, sin), also in
//                                              front of the cosine or a layout (rope_parts.h)
//
// The same of neighbours, with tables that hold each angle twice in a row.
//
//   x ─┬─ slice :r ── rope ── concat                                           partial, r < d
//      └─ slice r: ───────────┘
#include <array>

#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"
#include "passes/patterns/rope_parts.h"

using namespace mlir;

namespace lathe {
namespace {

bool joinsLastAxis(Match& m, const Tensor& concat) {
  return cast<IntegerAttr>(m.attribute(concat, "axis")).getInt() ==
         tensorType(m[concat]).getRank() - 1;
}

Value buildRope(Match& m, Value x, Value cos, Value sin, Pairing pairing) {
  // Tables in the model's dtype are read as the f32 values they have.
  auto wide = [&](Value table) {
    Type element = tensorType(table).getElementType();
    bool ok = element.isF32() || element.isF64();
    return ok ? table : m.make("lathe.cast", {table}, {{"dtype", DType::F32}});
  };
  return m.make("lathe.rope", {x, wide(cos), wide(sin)}, {{"pairing", pairing}});
}
// A reshape of the user's may have been merged into the last one of the pattern.
Value asRoot(Match& m, Value y) {
  return y ? reshaped(m, y, dimsOf(tensorType(m.root()->getResult(0)))) : y;
}

// a cos - b sin and a sin + b cos. Exchanging (a, b) with (cos, sin) gives the same: which are
// parts of x is read afterwards.
struct Rotation {
  Tensor a, b, cos, sin, first, second;
};
Rotation recordRotation(DagPattern& p) {
  Rotation r{.a = p.any(), .b = p.any(), .cos = p.any(), .sin = p.any()};
  r.first = sub(mul(r.a, r.cos), mul(r.b, r.sin));
  r.second = add(mul(r.a, r.sin), mul(r.b, r.cos));
  return r;
}
Value rotate(Match& m, const Rotation& r, Pairing pairing) {
  auto type = m[r.first].getType();
  Value a = m[r.a], b = m[r.b], cos = m[r.cos], sin = m[r.sin];
  Value x;
  if (a.getType() == type) x = joinedParts(m, a, b, pairing);
  if (!x && cos.getType() == type) {
    std::swap(a, cos);
    std::swap(b, sin);
    x = joinedParts(m, a, b, pairing);
  }
  if (!x)
    return m.decline(
        pairing == Pairing::half
            ? "lathe.slice: the parts are not the two halves of the last axis"
            : "lathe.slice: the parts are not the even and the odd elements of the last "
              "axis");
  for (Value table : {cos, sin})
    if (!spansLastAxis(table, tensorType(m[r.first])))
      return m.decline("the table " + shortType(table.getType()) +
                       " has not one angle per pair of " + shortType(x.getType()) +
                       ": it is broadcast");
  return buildRope(m, x, cos, sin, pairing);
}

void halfForm(DagPattern& p, bool partial) {
  Rotation r = recordRotation(p);
  Tensor rest = p.any();
  std::vector<Tensor> parts{r.first, r.second};
  if (partial) parts.push_back(rest);
  Tensor joined = anyConcat(p, parts);
  p.root(joined);
  p.replaceWith([=](Match& m) -> Value {
    if (!joinsLastAxis(m, joined))
      return m.decline("'axis' of lathe.concat: the halves are not joined along the last axis");
    Value y = rotate(m, r, Pairing::half);
    if (!y || !partial) return y;
    return m.make("lathe.concat", {y, m[rest]}, {{"axis", tensorType(y).getRank() - 1}});
  });
}

void interleavedForm(DagPattern& p) {
  Rotation r = recordRotation(p);
  Tensor first = anyReshape(p, r.first), second = anyReshape(p, r.second);
  Tensor joined = anyConcat(p, {first, second});
  p.root(anyReshape(p, joined));
  p.replaceWith([=](Match& m) -> Value {
    auto pairs = dimsOf(tensorType(m[r.first]));
    pairs.push_back(StringAttr::get(m.root()->getContext(), "1"));
    if (!joinsLastAxis(m, joined) || dimsOf(tensorType(m[first])) != pairs)
      return m.decline("'axis' of lathe.concat: the parts are not joined along a new last axis");
    return asRoot(m, rotate(m, r, Pairing::interleaved));
  });
}

// Of two factors the one beside the elements of a and b together; null if neither is them.
Value besideRotated(Match& m, std::array<Tensor, 2> factors, const Tensor& a, const Tensor& b) {
  for (int i : {0, 1})
    if (isSamePart(m[factors[i]], m[a], m[b])) return m[factors[1 - i]];
  return {};
}

void doubledTables(DagPattern& p) {
  Tensor x = p.any(), cos = p.any(), sin = p.any(), a = p.any(), b = p.any();
  Tensor rotated = anyConcat(p, {neg(b), a});
  p.root(add(mul(x, cos), mul(rotated, sin)));
  p.replaceWith([=](Match& m) -> Value {
    if (!joinsLastAxis(m, rotated))
      return m.decline("'axis' of lathe.concat: the halves are not joined along the last axis");
    Value whole = joinedParts(m, m[a], m[b], Pairing::half);
    if (!whole) return m.decline("lathe.slice: the parts are not the two halves of the last axis");
    Value other = besideRotated(m, {x, cos}, a, b);
    if (!other) return m.decline("lathe.mul: another value is scaled than the one that is rotated");
    // A table of one column has no halves.
    Value c = halfOfTable(m, other, Pairing::half), s = halfOfTable(m, m[sin], Pairing::half);
    if (!c || !s)
      return m.decline("the halves of the table cannot be proved equal: wanted lathe.concat");
    return buildRope(m, whole, c, s, Pairing::half);
  });
}

// The same of neighbours: tables hold each angle twice in a row.
void doubledNeighbours(DagPattern& p) {
  Tensor x = p.any(), cos = p.any(), sin = p.any(), a = p.any(), b = p.any();
  Tensor first = anyReshape(p, neg(b)), second = anyReshape(p, a);
  Tensor joined = anyConcat(p, {first, second});
  Tensor rotated = anyReshape(p, joined);
  p.root(add(mul(x, cos), mul(rotated, sin)));
  p.replaceWith([=](Match& m) -> Value {
    auto pairs = dimsOf(tensorType(m[a]));
    pairs.push_back(StringAttr::get(m.root()->getContext(), "1"));
    if (!joinsLastAxis(m, joined) || dimsOf(tensorType(m[second])) != pairs)
      return m.decline("'axis' of lathe.concat: the parts are not joined along a new last axis");
    Value whole = joinedParts(m, m[a], m[b], Pairing::interleaved);
    if (!whole || whole.getType() != m[rotated].getType())
      return m.decline(
          "lathe.slice: the parts are not the even and the odd elements of the last axis");
    Value other = besideRotated(m, {x, cos}, a, b);
    if (!other) return m.decline("lathe.mul: another value is scaled than the one that is rotated");
    for (Value table : {other, m[sin]})
      if (!spansLastAxis(table, tensorType(whole)))
        return m.decline("the table " + shortType(table.getType()) +
                         " has not two angles per pair of " + shortType(whole.getType()));
    Value c = halfOfTable(m, other, Pairing::interleaved),
          s = halfOfTable(m, m[sin], Pairing::interleaved);
    if (!c || !s)
      return m.decline(
          "the neighbours of the table cannot be proved equal: wanted lathe.broadcast");
    return buildRope(m, whole, c, s, Pairing::interleaved);
  });
}

void partial(DagPattern& p) {
  Tensor rotated = p.any(), rest = p.any(), cos = p.any(), sin = p.any();
  Tensor turned = p.emit("lathe.rope", {rotated, cos, sin}, {}, std::source_location::current());
  Tensor joined = anyConcat(p, {turned, rest});
  p.root(joined);
  p.replaceWith([=](Match& m) -> Value {
    if (!joinsLastAxis(m, joined))
      return m.decline("'axis' of lathe.concat: the parts are not joined along the last axis");
    Value x = headAndRest(m, m[rotated], m[rest]);
    if (!x)
      return m.decline(
          "lathe.slice: the parts are not the first elements and the rest of one value");
    auto op = m[turned].getDefiningOp<RopeOp>();
    // The number of angles says what rotates: it must be all of the head.
    auto head = tensorType(m[rotated]), table = tensorType(m[cos]);
    if (2 * table.getDimSize(table.getRank() - 1) != head.getDimSize(head.getRank() - 1))
      return m.decline("only a part of the head rotates");
    return buildRope(m, x, m[cos], m[sin], op.getPairing());
  });
}

}  // namespace

void addRopePatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "rope-interleaved", interleavedForm);
  addPattern(library, context, "rope-half", [](DagPattern& p) { halfForm(p, false); });
  addPattern(library, context, "rope-half-and-rest", [](DagPattern& p) { halfForm(p, true); });
  addPattern(library, context, "rope-doubled-tables", doubledTables);
  addPattern(library, context, "rope-doubled-neighbours", doubledNeighbours);
  addPattern(library, context, "rope-partial", partial);
}

}  // namespace lathe
