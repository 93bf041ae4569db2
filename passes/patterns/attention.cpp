// SPDX-License-Identifier: Apache-2.0
//
//   q ── (scale) ──── matmul ── scale, casts, masks ── softmax ── (cast) ── matmul ──
//   k ── transpose ───┘           in any order                        v ────┘
//
//   scale   mul or div by constants, before or after the product
//   masks   select(condition, scores, -inf), add(scores, bias); a condition that compares index
//           ramps is causal (causal.h), any other is a boolean mask
//   k, v    [b, g, t, d] ── reshape [b, g, 1, t, d] ── broadcast [b, g, n, t, d] ── reshape
//           [b, g n, t, d] are grouped heads
#include <cmath>

#include "ir/ops.h"
#include "ir/types.h"
#include "passes/match.h"
#include "passes/patterns/causal.h"
#include "passes/patterns/library.h"

using namespace mlir;

namespace lathe {
namespace {

bool isMinusInfinity(Value v) {
  auto number = splatValue(v);
  return number && std::isinf(*number) && *number < 0;
}

// Walks from the softmax's operand down to the product of q and k.
class ScoreReader {
 public:
  ScoreReader(Match& match, Value scores) : m_(match), type_(tensorType(scores)) {}

  // False after m_.decline.
  bool read(Value v) {
    while (true) {
      Operation* op = v.getDefiningOp();
      if (!op) return fail("the scores are an argument, wanted lathe.matmul");
      if (!v.hasOneUse())
        return fail(op->getName().getStringRef() +
                    " between the product and the softmax has "
                    "another user");
      m_.consume(op);
      if (auto product = dyn_cast<MatmulOp>(op)) {
        q = unscaled(product.getA());
        transposedK = unscaled(product.getB());
        return true;
      }
      if (isa<CastOp>(op)) {
        v = op->getOperand(0);
      } else if (isa<MulOp, DivOp>(op)) {
        Value inner = scaled(op);
        if (!inner) return fail("the scores are scaled by something else than a positive constant");
        v = inner;
        scaledOutside_ = true;
      } else if (auto select = dyn_cast<SelectOp>(op)) {
        bool hidden = isMinusInfinity(select.getA());
        if (!hidden && !isMinusInfinity(select.getB()))
          return fail("the mask does not put -inf into the scores");
        v = hidden ? select.getB() : select.getA();
        if (!addCondition(select.getCondition(), hidden)) return false;
      } else if (auto sum = dyn_cast<AddOp>(op)) {
        bool left = leadsToProduct(sum.getA()), right = leadsToProduct(sum.getB());
        if (left == right) return fail("one operand of lathe.add must come from lathe.matmul");
        if (!addBias(left ? sum.getB() : sum.getA())) return false;
        v = left ? sum.getA() : sum.getB();
      } else {
        return fail("wanted the product of q and k, found " + op->getName().getStringRef());
      }
    }
  }

  // The mask operand; null if there is none. Call after `read`.
  Value mask() {
    if (bias_) return bias_;
    Value all;
    for (auto [condition, hidden] : conditions_) {
      if (hidden) condition = m_.make("lathe.logical_not", {condition});
      all = all ? m_.make("lathe.logical_and", {all, condition}) : condition;
    }
    return all;
  }

  Value q, transposedK;
  double scale = 1;
  CausalMask causal;

 private:
  bool fail(const Twine& reason) {
    m_.decline(reason);
    return false;
  }

  // The operand that a constant scales; takes the constant into `scale`.
  Value scaled(Operation* op) {
    bool divides = isa<DivOp>(op);
    for (unsigned i : {1u, 0u}) {
      auto factor = splatValue(op->getOperand(i));
      if (!factor || (divides && i == 0)) continue;
      if (!(*factor > 0) || std::isinf(*factor)) return {};
      scale = divides ? scale / *factor : scale * *factor;
      return op->getOperand(1 - i);
    }
    return {};
  }
  // q or k without constant factors in front of the product.
  Value unscaled(Value v) {
    while (isa_and_nonnull<MulOp, DivOp>(v.getDefiningOp()) && v.hasOneUse()) {
      Value inner = scaled(v.getDefiningOp());
      // A factor of one element may still have a larger rank than v.
      if (!inner || inner.getType() != v.getType()) break;
      m_.consume(v.getDefiningOp());
      v = inner;
    }
    return v;
  }

  static bool leadsToProduct(Value v) {
    Operation* op = v.getDefiningOp();
    if (!op) return false;
    if (isa<MatmulOp>(op)) return true;
    if (isa<SelectOp>(op))
      return leadsToProduct(op->getOperand(1)) || leadsToProduct(op->getOperand(2));
    if (isa<CastOp>(op)) return leadsToProduct(op->getOperand(0));
    if (isa<MulOp, DivOp, AddOp>(op))
      return leadsToProduct(op->getOperand(0)) || leadsToProduct(op->getOperand(1));
    return false;
  }

  bool addCondition(Value condition, bool hidden) {
    if (auto mask = readCausal(condition, hidden, type_);
        mask && causal.alignment == Causal::none) {
      causal = *mask;
      for (Operation* op : causal.ops) m_.consume(op);
      return true;
    }
    auto both = condition.getDefiningOp<LogicalAndOp>();
    bool split = both && !hidden &&
                 (readCausal(both.getA(), false, type_) || readCausal(both.getB(), false, type_));
    if (split) {
      m_.consume(both);
      return addCondition(both.getA(), false) && addCondition(both.getB(), false);
    }
    if (bias_) return fail("there are a boolean and an added mask");
    conditions_.emplace_back(condition, hidden);
    return true;
  }

  bool addBias(Value bias) {
    // 0 where visible and -inf elsewhere is a condition.
    if (auto select = bias.getDefiningOp<SelectOp>()) {
      bool hidden = isMinusInfinity(select.getA());
      auto visible = splatValue(hidden ? select.getB() : select.getA());
      if (visible && *visible == 0 && (hidden || isMinusInfinity(select.getB()))) {
        m_.consume(select);
        return addCondition(select.getCondition(), hidden);
      }
    }
    if (scaledOutside_) return fail("the added mask is scaled with the scores");
    if (bias_ || !conditions_.empty()) return fail("there are two masks");
    bias_ = bias;
    return true;
  }

  Match& m_;
  RankedTensorType type_;
  bool scaledOutside_ = false;
  Value bias_;
  SmallVector<std::pair<Value, bool>, 2> conditions_;  // and whether true means masked
};

// k from k^T: a plain swap of the last two axes is dropped, any other permutation keeps the rest.
Value untransposed(Match& m, Value v) {
  auto op = v.getDefiningOp<TransposeOp>();
  if (!op) return m.decline("k is not transposed in front of the product");
  m.consume(op);
  SmallVector<int64_t> permutation(op.getPermutation());
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, int64_t(permutation.size()))))
    return op.getX();
  return m.make("lathe.transpose", {op.getX()},
                {{"permutation", std::vector<int64_t>(permutation.begin(), permutation.end())}});
}

// The grouped heads behind a repetition, as the rank-5 value in front of it.
struct Repeated {
  SmallVector<Operation*, 3> ops;
  Value source;  // [b, g, 1, t, d] before the broadcast
};
std::optional<Repeated> readRepeat(Value v) {
  auto merge = v.getDefiningOp<ReshapeOp>();
  auto copies = merge ? merge.getX().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!copies || tensorType(v).getRank() != 4) return std::nullopt;
  auto from = dimsOf(tensorType(copies.getX())), to = dimsOf(tensorType(copies.getY()));
  auto heads = dimsOf(tensorType(v));
  bool fits = from.size() == 5 && to.size() == 5 && isOne(from[2]) && from[0] == to[0] &&
              from[1] == to[1] && from[3] == to[3] && from[4] == to[4] && heads[0] == to[0] &&
              heads[2] == to[3] && heads[3] == to[4];
  if (!fits) return std::nullopt;
  return Repeated{{merge, copies}, copies.getX()};
}
Value groupedHeads(Match& m, const Repeated& r) {
  auto d = dimsOf(tensorType(r.source));
  SmallVector<StringAttr> dims{d[0], d[1], d[3], d[4]};
  auto type = tensorOf(dims, tensorType(r.source).getElementType());
  for (Operation* op : r.ops) m.consume(op);
  if (auto split = r.source.getDefiningOp<ReshapeOp>()) {
    m.consume(split);
    if (split.getX().getType() == type) return split.getX();
  }
  MLIRContext* c = type.getContext();
  return m.makeWith("lathe.reshape", {r.source},
                    NamedAttribute(StringAttr::get(c, "shape"), DimsAttr::get(c, dims)));
}

Value build(Match& m, Value weights, Value v) {
  auto softmax = weights.getDefiningOp<SoftmaxOp>();
  if (int64_t(softmax.getAxis()) != tensorType(weights).getRank() - 1)
    return m.decline("the softmax does not run over the keys");
  ScoreReader scores(m, softmax.getX());
  if (!scores.read(softmax.getX())) return {};
  Value k = untransposed(m, scores.transposedK);
  if (!k) return {};
  auto repeatedK = readRepeat(k), repeatedV = readRepeat(v);
  if (repeatedK && repeatedV &&
      dimOf(tensorType(repeatedK->source), 1) == dimOf(tensorType(repeatedV->source), 1)) {
    k = groupedHeads(m, *repeatedK);
    v = groupedHeads(m, *repeatedV);
  }
  std::string maskedRow = stringifyMaskedRow(softmax.getMaskedRow()).str();
  std::string causal = stringifyCausal(scores.causal.alignment).str();
  return m.make("lathe.attention", {scores.q, k, v, scores.mask(), scores.causal.positions},
                {{"scale", scores.scale},
                 {"causal", Keyword{"causal", causal}},
                 {"masked_row", Keyword{"masked_row", maskedRow}}});
}

void record(DagPattern& p) {
  Tensor x = p.any(), v = p.any();
  Tensor weights = p.emit("lathe.softmax", {x}, {}, std::source_location::current());
  p.root(matmul(p.optional(anyCast(p, weights), weights), v));
  p.replaceWith([=](Match& m) { return build(m, m[weights], m[v]); });
}

}  // namespace

void addAttentionPatterns(PatternLibrary& library, MLIRContext* context) {
  addPattern(library, context, "attention", record);
}

}  // namespace lathe
