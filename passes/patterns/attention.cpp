// SPDX-License-Identifier: Apache-2.0
//
//   q ── (scale) ──── matmul ── scale, softcap, casts, masks ── softmax ── (cast) ── matmul ──
//   k ── transpose ───┘                                                     v ────┘
//
//   scale    mul or div by constants, before or after the product, also split over q and k
//   softcap  c * tanh(scores / c), in front of the masks
//   masks    select(condition, scores, -inf), add(scores, bias); conditions that compare index
//            ramps are causal masks and windows (causal.h), any other is a boolean mask
//   k, v     heads repeated by a broadcast, or stretched by the product of q [b, g, r, s, d] and
//            k [b, g, 1, t, d], are grouped heads (grouped_heads.h)
#include "ir/ops.h"
#include "passes/patterns/forms.h"
#include "passes/patterns/grouped_heads.h"
#include "passes/patterns/library.h"
#include "passes/patterns/scores.h"

using namespace mlir;

namespace lathe {
namespace {

// q or k without constant factors in front of the product, and k turned back. The permutation that
// is left maps axes of `x` to those of the operand.
struct Operand {
  Value x;
  SmallVector<int64_t> permutation;
  double scale = 1;
};
Operand readOperand(Match& m, Value v) {
  Operand o{.x = v};
  for (int64_t i = 0; i < tensorType(v).getRank(); ++i) o.permutation.push_back(i);
  while (isUsedOnce(o.x)) {
    Operation* op = o.x.getDefiningOp();
    if (auto scaling = readScaling(op)) {
      o.scale *= scaling->factor;
      o.x = scaling->x;
    } else if (!isa<TransposeOp>(op)) {
      break;
    }
    if (isa<TransposeOp>(op)) break;
    m.consume(op);
  }
  if (auto turn = o.x.getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t p : o.permutation) composed.push_back(turn.getPermutation()[p]);
    o.permutation = composed;
    bool mine = isUsedOnce(o.x);
    m.consume(turn);
    o.x = turn.getX();
    while (mine && isUsedOnce(o.x)) {
      auto scaling = readScaling(o.x.getDefiningOp());
      if (!scaling) break;
      m.consume(o.x.getDefiningOp());
      o.scale *= scaling->factor;
      o.x = scaling->x;
    }
  }
  return o;
}
Value turned(Match& m, const Operand& o) {
  if (llvm::equal(o.permutation, llvm::seq<int64_t>(0, int64_t(o.permutation.size())))) return o.x;
  return m.make(
      "lathe.transpose", {o.x},
      {{"permutation", std::vector<int64_t>(o.permutation.begin(), o.permutation.end())}});
}

Value build(Match& m, Value weights, Value v) {
  auto softmax = weights.getDefiningOp<SoftmaxOp>();
  int64_t rank = tensorType(weights).getRank();
  if (int64_t(softmax.getAxis()) != rank - 1)
    return m.decline("'axis' of the softmax is not that of the keys");
  ScoreReader scores(m, softmax.getX(), ScoreReader::Until::Product);
  if (!scores.read()) return {};
  auto product = scores.base.getDefiningOp<MatmulOp>();
  Value keys = withoutGroupAxis(m, product.getB());
  Operand q = readOperand(m, product.getA()), k = readOperand(m, keys);
  if (k.x == keys) return m.decline("lathe.transpose: k is not transposed in front of the product");
  std::swap(k.permutation.back(), *(k.permutation.end() - 2));
  double scale = q.scale * k.scale * scores.scale;
  scores.readCausal();
  Value query = turned(m, q), key = turned(m, k);
  if (!query || !key) return {};
  Value mask = scores.mask();
  bool inGroups = rank == 5;
  if (inGroups) v = withoutGroupAxis(m, v);
  if (inGroups ? !joinGroups(m, query, key, v, mask) : !groupHeads(m, key, v)) return {};
  std::string maskedRow = scores.maskedRow(softmax);
  std::string causal = stringifyCausal(scores.causal).str();
  Value y = m.make("lathe.attention", {query, key, v, mask, scores.positions},
                   {{"scale", scale},
                    {"softcap", scores.softcap},
                    {"causal", Keyword{"causal", causal}},
                    {"window", scores.window},
                    {"masked_row", Keyword{"masked_row", maskedRow}}});
  return y && inGroups ? reshaped(m, y, dimsOf(tensorType(m.root()->getResult(0)))) : y;
}

void record(DagPattern& p) {
  Tensor x = p.any(), v = p.any();
  Tensor weights = anyPlainSoftmax(p, x);
  p.root(matmul(p.optional(roundingCast(p, weights), weights), v));
  p.replaceWith([=](Match& m) { return build(m, m[weights], m[v]); });
}

}  // namespace

void addAttentionPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "attention", record);
}

}  // namespace lathe
