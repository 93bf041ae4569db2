// SPDX-License-Identifier: Apache-2.0
//
//   k, table ── gather axis 0 ── transpose 0 2 1 3 4 ── reshape [b, g, n m, d] ──┐
//   v, table ── gather axis 0 ── transpose 0 2 1 3 4 ── reshape [b, g, n m, e] ──┤
//   q ────────────────────────────────────────────────── attention with positions   paged_attention
//
// One table for both. With one head, or with one entry in each row of the table, the transpose
// moves nothing and is not there. Keys that were turned for their product are turned back behind
// the reshape. A late phase: the attention itself comes first.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

// Keys or values that a table brought together.
struct Gathered {
  Tensor blocks, chosen, keys;
};
Gathered gathered(DagPattern& p, const Tensor& table) {
  Gathered g;
  g.blocks = p.any();
  g.chosen = gather(g.blocks, table, 0);
  g.keys = p.anyOf({anyReshape(p, p.optional(transpose(g.chosen, {0, 2, 1, 3, 4}), g.chosen)),
                    transpose(anyReshape(p, transpose(g.chosen, {0, 2, 4, 1, 3})), {0, 1, 3, 2})});
  return g;
}

// Whether key j of head h is the chosen [b, j / m, h, j % m].
bool areInOrder(Match& m, const Gathered& g) {
  const auto chosen = dimsOf(tensorType(m[g.chosen])), keys = dimsOf(tensorType(m[g.keys]));
  const bool named = llvm::all_of(chosen, [](StringAttr d) { return bool(d); });
  if (chosen.size() != 5 || keys.size() != 4 || !named) {
    m.decline(
        "lathe.gather: wanted blocks [blocks, heads, keys, depth] by a table [batch, "
        "entries], found " +
        shortType(m[g.chosen].getType()));
    return false;
  }
  const StringAttr together =
      dimAttr(m[g.keys].getContext(), exprOf(chosen[1]) * exprOf(chosen[3]));
  auto joined = m[g.keys].getDefiningOp<ReshapeOp>();
  const bool isTurned = !joined || joined.getX().getDefiningOp<TransposeOp>();
  const bool movesNothing = chosen[1].getValue() == "1" || chosen[2].getValue() == "1";
  if (keys[0] == chosen[0] && keys[1] == chosen[2] && keys[2] == together && keys[3] == chosen[4] &&
      (isTurned || movesNothing))
    return true;
  m.decline("lathe.reshape: the keys of a head do not lie in the order of the table");
  return false;
}

void paged(DagPattern& p, bool masked) {
  p.phase(kComposites);
  Tensor q = p.any(), table = p.any(), positions = p.any(), mask = p.any();
  const Gathered k = gathered(p, table), v = gathered(p, table);
  p.root(p.emit("lathe.attention", {q, k.keys, v.keys, masked ? mask : Tensor(), positions}, {},
                std::source_location::current()));
  p.replaceWith([=](Match& m) -> Value {
    if (!areInOrder(m, k) || !areInOrder(m, v)) return {};
    auto op = cast<AttentionOp>(m.root());
    return m.make(
        "lathe.paged_attention",
        {m[q], m[k.blocks], m[v.blocks], m[table], m[positions], masked ? m[mask] : Value()},
        {{"scale", op.getScale().convertToDouble()},
         {"softcap", op.getSoftcap().convertToDouble()},
         {"window", int64_t(op.getWindow())},
         {"masked_row", op.getMaskedRow()}});
  });
}

}  // namespace

void addPagedAttentionPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "paged_attention", [](DagPattern& p) { paged(p, false); });
  addPattern(library, context, "paged_attention-masked", [](DagPattern& p) { paged(p, true); });
}

}  // namespace lathe
