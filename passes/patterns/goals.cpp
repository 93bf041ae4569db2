// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/goals.h"

#include "lathe/ir/types.h"
#include "lathe/passes/match.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/rewrite/asked_once.h"
#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr int kNear = 12;  // ops between two parts of one idea, at most

// Answers about values that lie so many ops away.
template <class Answer>
using AskedNear = AskedOnce<Answer, std::pair<Value, int>>;

// The op that gave a value, behind those that `through` looks through: each by its operands.
using IsOp = bool (*)(Operation*);
Operation* findBelow(Value v, IsOp isIt, IsOp through, int depth, AskedNear<Operation*>& asked) {
  Operation* op = v.getDefiningOp();
  if (!op || depth == 0) return nullptr;
  return asked.of({v, depth}, [&]() -> Operation* {
    if (isIt(op)) return op;
    if (!through(op)) return nullptr;
    for (Value operand : op->getOperands())
      if (Operation* found = findBelow(operand, isIt, through, depth - 1, asked)) return found;
    return nullptr;
  });
}
Operation* findBelow(Value v, IsOp isIt, IsOp through, int depth = kNear) {
  AskedNear<Operation*> asked;
  return findBelow(v, isIt, through, depth, asked);
}

bool dependsOn(Value v, Value on, int depth, AskedNear<bool>& asked) {
  if (v == on) return true;
  Operation* op = v.getDefiningOp();
  if (!op || depth == 0) return false;
  return asked.of({v, depth}, [&] {
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return dependsOn(operand, on, depth - 1, asked); });
  });
}
bool dependsOn(Value v, Value on, int depth = kNear) {
  AskedNear<bool> asked;
  return dependsOn(v, on, depth, asked);
}

// One value's elements, moved or rounded.
bool movesElements(Operation* op) {
  return isa<CastOp>(op) || (op->hasTrait<fact::IsMovement>() && op->getNumOperands() == 1);
}
bool isElementwise(Operation* op) { return op->hasTrait<fact::IsElementwise>(); }
Value behindMoves(Value v) {
  while (Operation* op = v.getDefiningOp()) {
    if (!movesElements(op)) break;
    v = op->getOperand(0);
  }
  return v;
}

// --- softmax and attention

bool isExp(Operation* op) { return isa<ExpOp>(op); }
bool isSum(Operation* op) { return isa<ReduceSumOp>(op); }

// e / sum(e) or e * (1 / sum(e)), with e of exp.
bool isQuotientOfExp(Operation* op) {
  if (!isa<DivOp, MulOp>(op)) return false;
  auto keeps = [](Operation* o) { return movesElements(o) || isa<SelectOp, MulOp>(o); };
  auto inverts = [](Operation* o) { return movesElements(o) || isElementwise(o); };
  for (auto [e, sum] : {std::pair(0, 1), std::pair(1, 0)}) {
    Operation* exponential = findBelow(op->getOperand(unsigned(e)), isExp, keeps);
    Operation* total = findBelow(op->getOperand(unsigned(sum)), isSum, inverts);
    if (exponential && total && dependsOn(total->getOperand(0), exponential->getResult(0)))
      return true;
    if (isa<DivOp>(op)) break;
  }
  return false;
}
bool isLogOfSumOfExp(Operation* op) {
  if (!isa<LogOp>(op)) return false;
  auto any = [](Operation* o) { return movesElements(o) || isa<AddOp, MulOp, SelectOp>(o); };
  Operation* total = findBelow(op->getOperand(0), isSum, any);
  return total && findBelow(total->getOperand(0), isExp, any);
}

bool isWeights(Operation* op) { return isa<SoftmaxOp>(op) || isQuotientOfExp(op); }
bool isAttentionWith(Operation* op, ValueRange weightsIn) {
  auto scales = [](Operation* o) { return movesElements(o) || isa<SelectOp, MulOp, DivOp>(o); };
  auto isProduct = [](Operation* o) { return isa<MatmulOp, LinearOp>(o); };
  auto leads = [](Operation* o) {
    return movesElements(o) || isElementwise(o) || isa<ConcatOp>(o);
  };
  for (Value operand : weightsIn)
    if (Operation* weights = findBelow(operand, isWeights, scales))
      if (findBelow(weights->getOperand(0), isProduct, leads)) return true;
  return false;
}
bool isAttention(Operation* op) {
  return isa<MatmulOp>(op) && isAttentionWith(op, op->getOperands().take_front(1));
}
// Of rank 5 are groups of heads, which a pattern takes.
bool isAttentionOfOtherRank(Operation* op) {
  return isa<MatmulOp>(op) && tensorType(op->getResult(0)).getRank() > 5 && isAttention(op);
}
bool isAttentionTurnedRound(Operation* op) {
  return isa<MatmulOp>(op) && isAttentionWith(op, op->getOperands().drop_front(1));
}

// --- norms

// x in x * x or x ^ 2.
Value squared(Operation* op) {
  if (isa<MulOp>(op) && op->getOperand(0) == op->getOperand(1)) return op->getOperand(0);
  if (isa<PowOp>(op) && isSplatOf(op->getOperand(1), 2)) return op->getOperand(0);
  return {};
}
bool isSquare(Operation* op) { return bool(squared(op)); }
bool isMean(Operation* op) { return isa<ReduceMeanOp, ReduceSumOp>(op); }
bool isRoot(Operation* op) { return isa<SqrtOp, RsqrtOp>(op); }
bool adjusts(Operation* op) {
  return movesElements(op) || (isElementwise(op) && !isRoot(op) && !isSquare(op));
}
// x - mean(x)
bool isCentred(Operation* op) {
  if (!isa<SubOp>(op)) return false;
  auto averages = [](Operation* o) { return movesElements(o) || isa<MulOp, DivOp>(o); };
  return findBelow(op->getOperand(1), isMean, averages) != nullptr;
}

// x, or a part of it, over the root of the mean of its squares. The square in it.
Operation* squareUnderRoot(Operation* op) {
  if (!isa<MulOp, DivOp>(op)) return nullptr;
  for (unsigned factor : {1u, 0u}) {
    Operation* root = findBelow(op->getOperand(factor), isRoot, adjusts);
    Operation* mean = root ? findBelow(root->getOperand(0), isMean, adjusts) : nullptr;
    Operation* square = mean ? findBelow(mean->getOperand(0), isSquare, movesElements) : nullptr;
    if (square && dependsOn(op->getOperand(1 - factor), behindMoves(squared(square))))
      return square;
    if (isa<DivOp>(op)) break;
  }
  return nullptr;
}
bool isLayerNorm(Operation* op) {
  Operation* square = squareUnderRoot(op);
  if (!square) return false;
  for (Value v : op->getOperands())
    if (findBelow(v, isCentred, movesElements)) return true;
  return findBelow(squared(square), isCentred, movesElements) != nullptr;
}
bool isRmsNorm(Operation* op) { return squareUnderRoot(op) && !isLayerNorm(op); }

// norm * (1 + scale) + shift of a norm that has a gain, too.
bool isModulationOfGain(Operation* op) {
  if (!isa<AddOp>(op)) return false;
  auto isNorm = [](Operation* o) {
    return isa<LayerNormOp, RmsNormOp>(o) && o->getNumOperands() > 1;
  };
  for (Value side : op->getOperands()) {
    auto product = behindMoves(side).getDefiningOp<MulOp>();
    if (!product) continue;
    for (unsigned i : {0u, 1u}) {
      auto scale = behindMoves(product->getOperand(i)).getDefiningOp<AddOp>();
      if (scale && (isSplatOf(scale.getA(), 1) || isSplatOf(scale.getB(), 1)) &&
          findBelow(product->getOperand(1 - i), isNorm, movesElements))
        return true;
    }
  }
  return false;
}

// --- rope

bool isProduct(Operation* op) { return isa<MulOp>(op); }
// Two parts of one value joined again, the other way round or with a sign.
bool isTurned(Operation* op) {
  auto concat = dyn_cast<ConcatOp>(op);
  if (!concat || concat->getNumOperands() != 2) return false;
  auto part = [](Value v) -> Value {
    while (Operation* o = v.getDefiningOp()) {
      if (auto slice = dyn_cast<SliceOp>(o)) return slice.getX();
      if (!isa<NegOp, ReshapeOp, CastOp, MulOp>(o)) break;
      v = o->getOperand(0);
    }
    return {};
  };
  Value a = part(concat->getOperand(0)), b = part(concat->getOperand(1));
  return a && a == b;
}
bool isRope(Operation* op) {
  auto signs = [](Operation* o) { return movesElements(o) || isa<MulOp, NegOp>(o); };
  // x * c + turned(x) * s
  if (isa<AddOp, SubOp>(op)) {
    for (auto [plain, turned] : {std::pair(0, 1), std::pair(1, 0)}) {
      Operation* product = findBelow(op->getOperand(unsigned(plain)), isProduct, movesElements);
      Operation* concat = findBelow(op->getOperand(unsigned(turned)), isTurned, signs);
      if (!product || !concat) continue;
      for (Value v : product->getOperands())
        if (dependsOn(concat->getResult(0), behindMoves(v))) return true;
    }
    return false;
  }
  // Two sums of products of two slices, joined.
  auto concat = dyn_cast<ConcatOp>(op);
  if (!concat || concat->getNumOperands() < 2) return false;
  llvm::DenseSet<Value> shared;
  for (unsigned i : {0u, 1u}) {
    Value v = behindMoves(concat->getOperand(i));
    Operation* sum = v.getDefiningOp();
    if (!isa_and_nonnull<AddOp, SubOp>(sum)) return false;
    llvm::DenseSet<Value> factors;
    for (Value term : sum->getOperands()) {
      Operation* product = findBelow(term, isProduct, movesElements);
      if (!product) return false;
      for (Value factor : product->getOperands())
        if (Operation* slice = factor.getDefiningOp(); isa_and_nonnull<SliceOp, ReshapeOp>(slice))
          factors.insert(factor);
    }
    if (factors.size() < 2) return false;
    if (i == 0)
      shared = factors;
    else
      return llvm::count_if(factors, [&](Value f) { return shared.contains(f); }) >= 2;
  }
  return false;
}

// --- gates

// What is multiplied, through products and the numerators of quotients.
void addFactors(SmallVectorImpl<Value>& factors, Value v, int depth) {
  Operation* op = v.getDefiningOp();
  if (op && depth > 0 && isa<MulOp>(op)) {
    for (Value operand : op->getOperands()) addFactors(factors, operand, depth - 1);
  } else if (op && depth > 0 && isa<DivOp, CastOp>(op)) {
    addFactors(factors, op->getOperand(0), depth - 1);
    if (isa<DivOp>(op)) factors.push_back(op->getOperand(1));
  } else if (!splatValue(v)) {
    factors.push_back(v);
  }
}
bool bends(Operation* op) { return isa<SigmoidOp, ErfOp, TanhOp, ExpOp>(op); }
bool isGate(Operation* op) {
  if (!isa<MulOp>(op)) return false;
  for (Operation* user : op->getUsers())
    if (isa<MulOp>(user)) return false;  // the last product of several is the gate
  SmallVector<Value> factors;
  addFactors(factors, op->getResult(0), 5);
  auto shapes = [](Operation* o) { return isElementwise(o) && !bends(o); };
  for (Value active : factors) {
    Operation* bend = findBelow(active, bends, shapes, 3);
    if (!bend) continue;
    bool ofFactor = false, gates = false;
    for (Value other : factors) {
      if (other == active) continue;
      bool inner = dependsOn(bend->getOperand(0), other, 6);
      ofFactor |= inner;
      gates |= !inner && !findBelow(other, bends, shapes, 3) &&
               isa<RankedTensorType>(other.getType()) &&
               other.getType() == op->getResult(0).getType();
    }
    if (ofFactor && gates) return true;
  }
  return false;
}
// x * sigmoid(c x) * u
bool isScaledGate(Operation* op) {
  if (!isGate(op)) return false;
  SmallVector<Value> factors;
  addFactors(factors, op->getResult(0), 5);
  return llvm::any_of(factors, [&](Value v) {
    auto bend = v.getDefiningOp<SigmoidOp>();
    Operation* inner = bend ? bend.getX().getDefiningOp() : nullptr;
    if (!isa_and_nonnull<MulOp, DivOp>(inner)) return false;
    const bool first = splatValue(inner->getOperand(0)).has_value();
    if (!first && !splatValue(inner->getOperand(1))) return false;
    Value x = behindMoves(inner->getOperand(first ? 1 : 0));
    return llvm::any_of(factors, [&](Value factor) { return behindMoves(factor) == x; });
  });
}

// --- products with weights

bool isOneHot(Operation* op) {
  auto compare = dyn_cast<CompareOp>(op);
  auto isRamp = [](Operation* o) { return isa<IotaOp>(o); };
  return compare && (findBelow(compare->getOperand(0), isRamp, movesElements) ||
                     findBelow(compare->getOperand(1), isRamp, movesElements));
}
bool isLookUp(Operation* op) {
  return isa<MatmulOp, LinearOp>(op) && isLoadedWeight(op->getOperand(1)) &&
         findBelow(op->getOperand(0), isOneHot, movesElements);
}
bool isLayer(Operation* op) {
  return isa<MatmulOp>(op) &&
         isLoadedWeight(op->getOperand(0)) != isLoadedWeight(op->getOperand(1));
}
// A product with weights that indices choose.
bool isChosenLayer(Operation* op) {
  if (!isa<MatmulOp>(op)) return false;
  return llvm::any_of(op->getOperands(), [](Value v) {
    auto chosen = behindMoves(v).getDefiningOp<GatherOp>();
    return chosen && isLoadedWeight(chosen.getX()) && tensorType(chosen.getX()).getRank() == 3;
  });
}
// sum(x * w) over an axis that a broadcast put the factors side by side on.
bool isSumOfProducts(Operation* op) {
  if (!isa<ReduceSumOp>(op)) return false;
  auto product = op->getOperand(0).getDefiningOp<MulOp>();
  if (!product) return false;
  Type type = product.getResult().getType();
  auto spread = [&](Value v) {
    return !splatValue(v) && (v.getType() != type || v.getDefiningOp<BroadcastOp>());
  };
  return spread(product.getA()) && spread(product.getB());
}

// --- masks of fused attention

bool isOfRamps(Value v, int depth, AskedNear<bool>& asked) {
  Operation* op = v.getDefiningOp();
  if (!op || depth == 0) return false;
  if (isa<IotaOp, ConstantOp>(op)) return true;
  return asked.of({v, depth}, [&] {
    return op->getNumOperands() > 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
             return isOfRamps(operand, depth - 1, asked);
           });
  });
}
bool isOfRamps(Value v) {
  AskedNear<bool> asked;
  return isOfRamps(v, 2 * kNear, asked);
}
// What is the same for all queries, such as the biases of ALiBi, hides nothing from some of them.
bool hasMaskOfRamps(Operation* op) {
  auto attention = dyn_cast<AttentionOp>(op);
  if (!attention || !attention.getMask() || !isOfRamps(attention.getMask())) return false;
  const auto shape = cast<RankedTensorType>(attention.getMask().getType()).getShape();
  return shape.size() >= 2 && shape[shape.size() - 2] != 1;
}

// Keys that a table of sequences brought together.
bool isAttentionOfBlocks(Operation* op) {
  auto attention = dyn_cast<AttentionOp>(op);
  if (!attention || !attention.getPositions()) return false;
  auto chosen = behindMoves(attention.getK()).getDefiningOp<GatherOp>();
  return chosen && tensorType(chosen.getX()).getRank() == 4 &&
         tensorType(chosen.getIndices()).getRank() == 2 && int64_t(chosen.getAxis()) == 0;
}

}  // namespace

bool Goal::owns(std::string_view pattern) const {
  const std::string_view name = fused;
  return pattern == name ||
         (pattern.starts_with(name) && pattern.size() > name.size() && pattern[name.size()] == '-');
}

const std::vector<Goal>& fusionGoals() {
  static const std::vector<Goal> goals{
      {"attention", isAttentionOfOtherRank, "lathe.attention takes q, k and v of rank 3 or 4",
       /*certain=*/true},
      {"attention", isAttention, "wanted a softmax of the scores times the values"},
      {"attention", isAttentionTurnedRound,
       "the values are multiplied by the weights: wanted lathe.matmul of the weights and the "
       "values",
       /*certain=*/true},
      {"causal", hasMaskOfRamps,
       "lathe.attention reads a mask that is made of index ramps alone: wanted a comparison of the "
       "positions of keys and queries that selects -inf, found arithmetic on it"},
      {"paged_attention", isAttentionOfBlocks,
       "wanted keys and values of one table, in its order: lathe.gather, lathe.transpose 0 2 1 3 4 "
       "and lathe.reshape"},
      {"softmax", isQuotientOfExp, "wanted the quotient of exponentials and their sum"},
      {"softmax", isLogOfSumOfExp,
       "the logarithm of a sum of exponentials: no fused op computes a log-softmax"},
      {"layer_norm", isLayerNorm, "wanted (x - mean) over the root of the mean of its squares"},
      {"rms_norm", isRmsNorm, "wanted x over the root of the mean of its squares"},
      {"adaln_modulate", isModulationOfGain,
       "the norm has a gain of its own: wanted one without, times (1 + scale), plus shift",
       /*certain=*/true},
      {"rope", isRope, "wanted the rotation of two halves, or of even and odd elements"},
      {"glu", isScaledGate,
       "the sigmoid of a multiple of the value is no activation of lathe.glu: wanted "
       "lathe.sigmoid of the value itself",
       /*certain=*/true},
      {"glu", isGate, "wanted an activation times another value"},
      {"embedding", isLookUp,
       "a product with a one-hot matrix computes a look-up: wanted lathe.gather"},
      {"grouped_linear", isChosenLayer,
       "wanted one row for each index: lathe.gather of weights [groups, out, in] along axis 0, and "
       "lathe.matmul with a column [.., in, 1] or a row [.., 1, in]"},
      {"linear", isLayer, "wanted the product of an input and a weight matrix"},
      {"linear", isSumOfProducts,
       "a sum of broadcast products computes a matrix product: wanted lathe.matmul"},
  };
  return goals;
}

}  // namespace lathe
