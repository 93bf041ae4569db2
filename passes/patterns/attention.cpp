// SPDX-License-Identifier: Apache-2.0
//
//   q ── (scale) ──── matmul ── scale, softcap, casts, masks ── softmax ── (cast) ── matmul ──
//   k ── transpose ───┘                                                     v ────┘
//
//   scale    mul or div by constants, before or after the product, also split over q and k
//   softcap  c * tanh(scores / c), in front of the masks
//   masks    select(condition, scores, -inf), add(scores, bias); conditions that compare index
//            ramps are causal masks and windows (causal.h), any other is a boolean mask
//   ranks    of 2 are a batch of one; scores [b h, s, t] may be [b, h, s, t] where they are masked
//   k, v     heads repeated by a broadcast, or stretched by the product of q [b, g, r, s, d] and
//            k [b, g, 1, t, d], are grouped heads (grouped_heads.h)
#include "lathe/ir/ops.h"
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

// One axis of rows becomes two: batch and heads.
bool splitsHeads(Value four, Value three) {
  auto a = dimsOf(tensorType(four)), b = dimsOf(tensorType(three));
  return a.size() == 4 && b.size() == 3 && a[2] && a[2] == b[1] && a[3] && a[3] == b[2];
}
// An operand [n, .., d] as [batch, heads, .., d], as the scores are.
bool splitHeads(Match& m, Value scores, Value& x) {
  auto apart = dimsOf(tensorType(scores)), dims = dimsOf(tensorType(x));
  if (dims.size() == apart.size()) return true;
  const bool named =
      apart[0] && apart[1] && llvm::all_of(dims, [](StringAttr d) { return bool(d); });
  if (dims.size() != 3 || !named ||
      dims[0] != dimAttr(x.getContext(), exprOf(apart[0]) * exprOf(apart[1]))) {
    m.decline("queries, keys and values do not have the heads of the scores: " +
              shortType(x.getType()));
    return false;
  }
  x = reshaped(m, x, {apart[0], apart[1], dims[1], dims[2]});
  return bool(x);
}
// Matrices as a batch of one.
bool withBatch(Match& m, const ScoreReader& scores, std::initializer_list<Value*> operands) {
  if (scores.positions) {
    m.decline("a matrix of scores has no batch for the positions");
    return false;
  }
  for (Value* x : operands) {
    auto dims = dimsOf(tensorType(*x));
    if (!llvm::all_of(dims, [](StringAttr d) { return bool(d); })) {
      m.decline("a size has no name: " + shortType((*x).getType()));
      return false;
    }
    dims.insert(dims.begin(), StringAttr::get((*x).getContext(), "1"));
    *x = reshaped(m, *x, dims);
    if (!*x) return false;
  }
  return true;
}

Value build(Match& m, Value weights, Value v) {
  auto softmax = weights.getDefiningOp<SoftmaxOp>();
  int64_t rank = tensorType(weights).getRank();
  if (int64_t(softmax.getAxis()) != rank - 1)
    return m.decline("'axis' of the softmax is not that of the keys");
  // Scores of rank 3 that a mask of the batch takes apart have rank 4 there, and maybe from there
  // on.
  Value inner = softmax.getX();
  auto merge = inner.getDefiningOp<ReshapeOp>();
  if (merge && rank == 3 && splitsHeads(merge.getX(), inner) && inner.hasOneUse()) {
    m.consume(merge);
    inner = merge.getX();
  }
  ScoreReader scores(m, inner, ScoreReader::Until::Product);
  scores.readSoftmax(softmax);
  if (!scores.read()) return {};
  auto product = scores.base.getDefiningOp<MatmulOp>();
  const bool apart =
      tensorType(inner).getRank() == 4 &&
      (rank == 3 || tensorType(v).getRank() == 3 || tensorType(scores.base).getRank() == 3);
  Value keys = withoutGroupAxis(m, product.getB());
  Operand q = readOperand(m, product.getA()), k = readOperand(m, keys);
  // Behind a layout that folds turned keys the two turns are one layout.
  auto fold = keys.getDefiningOp<ReshapeOp>();
  const bool turnsInside = fold && fold.getX().getDefiningOp<TransposeOp>();
  if (k.x == keys && !turnsInside)
    return m.decline("lathe.transpose: k is not transposed in front of the product");
  std::swap(k.permutation.back(), *(k.permutation.end() - 2));
  double scale = q.scale * k.scale * scores.scale;
  scores.readCausal();
  Value query = turned(m, q), key = turned(m, k);
  if (!query || !key) return {};
  Value mask = scores.mask();
  if (apart)
    for (Value* x : {&query, &key, &v})
      if (!splitHeads(m, inner, *x)) return {};
  if (rank == 2 && !withBatch(m, scores, {&query, &key, &v})) return {};
  bool inGroups = rank == 5;
  if (inGroups) v = withoutGroupAxis(m, v);
  if (inGroups ? !joinGroups(m, query, key, v, mask) : !groupHeads(m, key, v)) return {};
  // What the patterns above could not read stays with the softmax: a mask that adds finite fills,
  // say, whose rows are another matter for attention.
  if (!softmax.isPlain())
    return m.decline("wanted a softmax without scale, softcap and mask: they stand in front of it");
  Value y = m.make("lathe.attention", {query, key, v, mask, scores.positions},
                   {{"scale", scale},
                    {"softcap", scores.softcap},
                    {"causal", scores.causal},
                    {"window", scores.window},
                    {"masked_row", scores.maskedRow(softmax)}});
  return y && (inGroups || apart || rank == 2)
             ? reshaped(m, y, dimsOf(tensorType(m.root()->getResult(0))))
             : y;
}

// A softmax that has taken in its scale and mask is read like one that has them in front, to tell
// what stopped the fusion then.
Tensor anySoftmax(DagPattern& p, bool hasMask) {
  Tensor x = p.any(), mask = hasMask ? p.any() : Tensor();
  return p.emit("lathe.softmax", {x, mask}, {}, std::source_location::current());
}

void recordAttention(DagPattern& p, bool hasMask) {
  Tensor weights = anySoftmax(p, hasMask), v = p.any();
  p.root(matmul(p.optional(roundingCast(p, weights), weights), v));
  p.replaceWith([=](Match& m) { return build(m, m[weights], m[v]); });
}

// The weights [b, h, s, t] as [b h, s, t], in front of a product of rank 3.
void recordFolded(DagPattern& p, bool hasMask) {
  Tensor weights = anySoftmax(p, hasMask), v = p.any();
  Tensor rounded = roundingCast(p, weights);
  Tensor folded = anyReshape(p, p.optional(rounded, weights));
  p.root(matmul(folded, v));
  p.replaceWith([=](Match& m) -> Value {
    if (!splitsHeads(m[weights], m[folded]))
      return m.decline("lathe.reshape: the weights are not those of batch and heads in one axis");
    return build(m, m[weights], m[v]);
  });
}

// An attention that was recorded whole: causality and the window come out of its mask.
void maskOfRecorded(DagPattern& p) {
  Tensor q = p.any(), k = p.any(), v = p.any(), mask = p.any();
  p.root(p.emit("lathe.attention", {q, k, v, mask, Tensor()}, {}, std::source_location::current()));
  p.replaceWith([=](Match& m) -> Value {
    auto op = cast<AttentionOp>(m.root());
    if (op.getCausal() != Causal::none) return m.decline("'causal' of lathe.attention is set");
    const auto type = tensorType(m[q]), keys = tensorType(m[k]);
    auto dims = dimsOf(type);
    dims.back() = dimOf(keys, keys.getRank() - 2);
    if (!llvm::all_of(dims, [](StringAttr d) { return bool(d); }))
      return m.decline("a size has no name: " + shortType(type) + ", " + shortType(keys));
    ScoreReader scores(m, tensorOf(dims, type.getElementType()));
    if (!scores.readMask(m[mask])) return {};
    scores.readCausal();
    if (scores.causal == Causal::none && tensorType(m[mask]).getElementType().isInteger(1))
      return m.decline("the mask compares no index ramps of queries and keys");
    return m.make("lathe.attention", {m[q], m[k], m[v], scores.mask(), scores.positions},
                  {{"scale", op.getScale().convertToDouble()},
                   {"softcap", op.getSoftcap().convertToDouble()},
                   {"causal", scores.causal},
                   {"window", scores.window},
                   {"masked_row", op.getMaskedRow()}});
  });
}

}  // namespace

void addAttentionPatterns(PatternLibrary& library, MLIRContext* context) {
  for (bool hasMask : {false, true}) {
    const std::string kind = hasMask ? "-masked" : "";
    addPattern(library, context, "attention" + kind,
               [&](DagPattern& p) { recordAttention(p, hasMask); });
    addPattern(library, context, "attention-folded" + kind,
               [&](DagPattern& p) { recordFolded(p, hasMask); });
  }
  addPattern(library, context, "attention-mask", maskOfRecorded);
}

}  // namespace lathe
