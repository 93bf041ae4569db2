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
//   x ─┬───────────────────── mul concat(cos, cos) ── add                       the same, half
//      ├─ slice b ─ neg ─┐                            │
//      └─ slice a ──── concat ── mul concat(sin, sin) ┘
#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

Tensor anySlice(DagPattern& p, const Tensor& x) {
  Tensor t = slice(x, {}, {}, {});
  for (const char* name : {"starts", "sizes", "strides"}) p.anyAttribute(t, name);
  return t;
}
Tensor anyReshape(DagPattern& p, const Tensor& x) {
  return p.anyAttribute(reshape(x, {}), "shape");
}
Tensor anyConcat(DagPattern& p, const Tensor& a, const Tensor& b) {
  return p.anyAttribute(concat({a, b}, 0), "axis");
}

// Elements start, start + stride, ... of the last axis, half of them, and all of the other axes.
bool isHalf(SliceOp op, int64_t start, int64_t stride) {
  auto type = tensorType(op.getX());
  int64_t last = type.getRank() - 1;
  auto starts = op.getStarts().getDims(), sizes = op.getSizes().getDims();
  for (int64_t i = 0; i < last; ++i)
    if (starts[i].getValue() != "0" || sizes[i] != dimOf(type, i) || op.getStrides()[i] != 1)
      return false;
  return starts[last].getValue() == std::to_string(start) && op.getStrides()[last] == stride &&
         sizes[last].getValue() == std::to_string(type.getDimSize(last) / 2);
}

bool joinsLastAxis(Match& m, const Tensor& concat) {
  return cast<IntegerAttr>(m.attribute(concat, "axis")).getInt() ==
         tensorType(m[concat]).getRank() - 1;
}

Value buildRope(Match& m, Value x, Value cos, Value sin, const char* pairing) {
  // Tables in the model's dtype are read as the f32 values they have.
  auto wide = [&](Value table) {
    Type element = tensorType(table).getElementType();
    bool ok = element.isF32() || element.isF64();
    return ok ? table : m.make("lathe.cast", {table}, {{"dtype", DType::F32}});
  };
  Value y =
      m.make("lathe.rope", {x, wide(cos), wide(sin)}, {{"pairing", Keyword{"pairing", pairing}}});
  auto wanted = tensorType(m.root()->getResult(0));
  if (!y || y.getType() == wanted) return y;
  // A reshape of the user's may have been merged into the last one of the pattern.
  auto dims = dimsOf(wanted);
  NamedAttribute shape(StringAttr::get(wanted.getContext(), "shape"),
                       DimsAttr::get(wanted.getContext(), dims));
  return m.makeWith("lathe.reshape", {y}, shape);
}

struct Rotation {
  Tensor x, a, b, cos, sin, first, second;
};
Rotation recordRotation(DagPattern& p) {
  Rotation r{.x = p.any(), .cos = p.any(), .sin = p.any()};
  r.a = anySlice(p, r.x);
  r.b = anySlice(p, r.x);
  r.first = sub(mul(r.a, r.cos), mul(r.b, r.sin));
  r.second = add(mul(r.a, r.sin), mul(r.b, r.cos));
  return r;
}
bool slicesAre(Match& m, const Tensor& a, const Tensor& b, bool halves) {
  auto first = m[a].getDefiningOp<SliceOp>(), second = m[b].getDefiningOp<SliceOp>();
  auto type = tensorType(first.getX());
  int64_t half = type.getDimSize(type.getRank() - 1) / 2;
  return halves ? isHalf(first, 0, 1) && isHalf(second, half, 1)
                : isHalf(first, 0, 2) && isHalf(second, 1, 2);
}

void halfForm(DagPattern& p) {
  Rotation r = recordRotation(p);
  Tensor joined = anyConcat(p, r.first, r.second);
  p.root(joined);
  p.replaceWith([=](Match& m) -> Value {
    if (!joinsLastAxis(m, joined))
      return m.decline("the halves are not joined along the last axis");
    if (!slicesAre(m, r.a, r.b, true))
      return m.decline("the slices are not the two halves of the last axis");
    return buildRope(m, m[r.x], m[r.cos], m[r.sin], "half");
  });
}

void interleavedForm(DagPattern& p) {
  Rotation r = recordRotation(p);
  Tensor first = anyReshape(p, r.first), second = anyReshape(p, r.second);
  Tensor joined = anyConcat(p, first, second);
  p.root(anyReshape(p, joined));
  p.replaceWith([=](Match& m) -> Value {
    auto pairs = dimsOf(tensorType(m[r.first]));
    pairs.push_back(StringAttr::get(m.root()->getContext(), "1"));
    if (!joinsLastAxis(m, joined) || dimsOf(tensorType(m[first])) != pairs)
      return m.decline("the parts are not joined along a new last axis");
    if (!slicesAre(m, r.a, r.b, false))
      return m.decline("the slices are not the even and the odd elements of the last axis");
    return buildRope(m, m[r.x], m[r.cos], m[r.sin], "interleaved");
  });
}

void doubledTables(DagPattern& p) {
  Tensor x = p.any(), cos = p.any(), sin = p.any();
  Tensor a = anySlice(p, x), b = anySlice(p, x);
  Tensor rotated = anyConcat(p, neg(b), a);
  Tensor cosines = p.mayEscape(anyConcat(p, cos, cos)), sines = p.mayEscape(anyConcat(p, sin, sin));
  p.root(add(mul(x, cosines), mul(rotated, sines)));
  p.replaceWith([=](Match& m) -> Value {
    for (const Tensor& t : {rotated, cosines, sines})
      if (!joinsLastAxis(m, t)) return m.decline("the halves are not joined along the last axis");
    if (!slicesAre(m, a, b, true))
      return m.decline("the slices are not the two halves of the last axis");
    return buildRope(m, m[x], m[cos], m[sin], "half");
  });
}

}  // namespace

void addRopePatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "rope-interleaved", interleavedForm);
  addPattern(library, context, "rope-half", halfForm);
  addPattern(library, context, "rope-doubled-tables", doubledTables);
}

}  // namespace lathe
