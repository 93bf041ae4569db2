// SPDX-License-Identifier: Apache-2.0
//
//   weight ─ (cast) ── gather axis 0 ── mul ── add ──   embedding(ids, table) positions(p) scale(c)
//   ids ───────────────┘              c ┘    p ┘
//
// One pattern per step. Of two embeddings that are added the first is the tokens'.
#include "lathe/ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

void rows(DagPattern& p) {
  Tensor ids = p.any();
  Tensor table = p.where(p.any(), "a weight matrix",
                         [](Value v) { return isWeight(v) && tensorType(v).getRank() == 2; });
  p.root(gather(table, ids, 0));
  p.replaceWith([=](Match& m) { return m.make("lathe.embedding", {m[ids], m[table], {}}); });
}

bool isBare(Value v) {
  auto op = v.getDefiningOp<EmbeddingOp>();
  return op && !op.getPositions() && op.getScale().convertToDouble() == 1;
}
Tensor embeddingOp(DagPattern& p, const Tensor& ids, const Tensor& table) {
  return p.emit("lathe.embedding", {ids, table, Tensor()}, {}, std::source_location::current());
}

void scaled(DagPattern& p, bool divides) {
  Tensor ids = p.any(), table = p.any();
  Tensor bare = p.where(embeddingOp(p, ids, table), "an embedding without scale", isBare);
  Tensor factor =
      p.constantWhere("a constant scale that is not 0", [](double v) { return v != 0; });
  p.root(divides ? div(bare, factor) : mul(bare, factor));
  p.replaceWith([=](Match& m) -> Value {
    double c = m.constant(factor);
    return m.make("lathe.embedding", {m[ids], m[table], {}}, {{"scale", divides ? 1 / c : c}});
  });
}

void positioned(DagPattern& p) {
  Tensor ids = p.any(), table = p.any(), positions = p.any();
  Tensor bare = embeddingOp(p, ids, table);
  p.root(add(bare, positions));
  p.replaceWith([=](Match& m) -> Value {
    if (m[positions].getDefiningOp<LinearOp>() && m[positions].hasOneUse())
      return m.decline("lathe.linear takes the rows as its residual");
    if (m[bare].getType() != m.root()->getResult(0).getType())
      return m.decline("lathe.add: the rows are broadcast to the positions");
    // Both may be rows of tables: the first of the sum stays.
    auto sum = cast<AddOp>(m.root());
    bool second = sum.getB() == m[bare] && sum.getA() != m[bare];
    auto other = sum.getA().getDefiningOp<EmbeddingOp>();
    if (second && other && other->hasOneUse() && !other.getPositions() &&
        other.getType() == m.root()->getResult(0).getType())
      return m.decline("lathe.embedding: the other operand of the sum is the tokens' rows");
    auto op = m[bare].getDefiningOp<EmbeddingOp>();
    return m.make("lathe.embedding", {m[ids], m[table], m[positions]},
                  {{"scale", op.getScale().convertToDouble()}});
  });
}

// In f32 between casts, as the op computes it.
void widened(DagPattern& p) {
  Tensor ids = p.any(), table = p.any(), positions = p.any();
  Tensor bare = p.where(embeddingOp(p, ids, table), "an embedding without scale", isBare);
  Tensor wide = roundingCast(p, bare);
  Tensor factor =
      p.constantWhere("a constant scale that is not 0", [](double v) { return v != 0; });
  Tensor scaled = mul(wide, factor);
  Tensor sum = p.anyOf({scaled, add(p.anyOf({wide, scaled}), positions)});
  p.root(roundingCast(p, sum));
  p.replaceWith([=](Match& m) -> Value {
    Type narrow = tensorType(m[bare]).getElementType();
    Value added = m[positions];
    if (added) {
      auto widened = added.getDefiningOp<CastOp>();
      if (!widened || tensorType(widened.getX()).getElementType() != narrow)
        return m.decline("the positions are not a cast from the table's type");
      m.consume(widened);
      added = widened.getX();
    }
    return m.make("lathe.embedding", {m[ids], m[table], added},
                  {{"scale", m.has(scaled) ? m.constant(factor) : 1}});
  });
}

}  // namespace

void addEmbeddingPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "embedding", rows);
  addPattern(library, context, "embedding-scale", [](DagPattern& p) { scaled(p, false); });
  addPattern(library, context, "embedding-scale-quotient", [](DagPattern& p) { scaled(p, true); });
  addPattern(library, context, "embedding-positions", positioned);
  addPattern(library, context, "embedding-widened", widened);
}

}  // namespace lathe
