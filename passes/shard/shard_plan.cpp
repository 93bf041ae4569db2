// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/shard_plan.h"

#include "llvm/ADT/StringSet.h"
#include "passes/rewrite/asked_once.h"
#include "passes/rewrite/weight_only.h"
#include "passes/shard/op_cuts.h"
#include "passes/shard/open_norms.h"

using namespace mlir;

namespace lathe {
namespace {

// Weights, or those of them that indices choose.
bool isFedByWeight(Value v) {
  auto gather = v.getDefiningOp<GatherOp>();
  return isLoadedWeight(gather ? gather.getX() : v);
}

// The checkpoint's tensor that a value is made of, where it is one alone.
WeightOp onlyWeightOf(Value v) {
  Operation* op = v.getDefiningOp();
  while (op && op->getNumOperands() == 1) op = op->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<WeightOp>(op);
}

// Whether a rank's piece of what is made of weights has the same name on all of them. Of a stack of
// weights it has not: one rank would read the first of them, another the last.
bool hasNamedPieces(Value v, const Cut& cut, AskedOnce<bool, std::pair<Value, Cut>>& asked) {
  Operation* op = v.getDefiningOp();
  if (!op || op->getNumOperands() == 0) return true;
  if (auto concat = dyn_cast<ConcatOp>(op); concat && int64_t(concat.getAxis()) == cut.axis)
    return false;
  return asked.of({v, cut}, [&] {
    const std::optional<OpCuts> cuts = cutsOfResult(op, cast<OpResult>(v).getResultNumber(), cut);
    if (!cuts) return true;  // it is made whole, and the rank takes its piece
    for (auto [operand, its] : llvm::zip_equal(op->getOperands(), cuts->operands))
      if (!its.isWhole() && !hasNamedPieces(operand, its, asked)) return false;
    return true;
  });
}
bool hasNamedPieces(Value v, const Cut& cut) {
  AskedOnce<bool, std::pair<Value, Cut>> asked;
  return hasNamedPieces(v, cut, asked);
}

// Where the pieces of a value may come from.
struct Sources {
  llvm::DenseMap<Operation*, Cut> columns;
  std::map<std::string, Cut, std::less<>> states;
  llvm::DenseSet<Operation*> norms;            // over an axis that is cut
  std::string reason;                          // what a trace ended at
  llvm::DenseSet<std::pair<Value, Cut>> seen;  // what was traced
};

class Planner {
 public:
  Planner(ModuleOp module, int64_t ranks, const CutsByHand& byHand)
      : module_(module), ranks_(ranks), byHand_(byHand) {}

  ShardPlan run() {
    // What was said of activations first: it is not found, but given.
    walk([&](Operation* op) {
      if (auto shard = dyn_cast<ShardOp>(op)) leadTo(shard);
    });
    walk([&](Operation* op) { pairWith(op); });
    // After the pairs: what they leave, a head in front of the results, is cut for itself.
    walk([&](Operation* op) {
      if (auto linear = dyn_cast<LinearOp>(op)) cutHead(linear);
    });
    // What is written to a state of which each rank has a piece is made in pieces, too.
    for (auto f : module_.getOps<func::FuncOp>()) writeStates(f);
    // Last: a table goes with the head that it is tied to.
    measureCutWeights();
    walk([&](Operation* op) {
      if (auto embedding = dyn_cast<EmbeddingOp>(op)) cutTable(embedding);
    });
    return std::move(plan_);
  }

 private:
  void walk(llvm::function_ref<void(Operation*)> visit) {
    for (auto f : module_.getOps<func::FuncOp>()) f.walk([&](Operation* op) { visit(op); });
  }

  // Products whose columns are the pieces that the user wants. Where there are none, ranks take
  // theirs of the whole value.
  void leadTo(ShardOp shard) {
    Sources found;
    if (trace(shard.getX(), byHand_.of(shard), found)) adopt(found);
  }

  void writeStates(func::FuncOp f) {
    for (auto [i, v] : llvm::enumerate(f.getBody().front().getTerminator()->getOperands())) {
      auto planned = plan_.states.find(stateOf(f.getResultAttrDict(unsigned(i))));
      if (planned == plan_.states.end()) continue;
      Sources found;
      if (trace(v, planned->second, found)) adopt(found);
    }
  }

  void adopt(const Sources& found) {
    for (auto [source, its] : found.columns) plan_.columns[source] = its;
    for (auto& [name, its] : found.states) plan_.states[name] = its;
    plan_.norms.insert(found.norms.begin(), found.norms.end());
  }

  // Products whose columns reach this one's rows: in as many parts as there are ranks, or in fewer,
  // of which neighbours hold the same, as where there are fewer heads.
  void pairWith(Operation* op) {
    const std::optional<WeightMatmul> matmul = weightMatmulOf(op);
    if (!matmul || plan_.columns.contains(op)) return;
    std::string reason;
    if (pairIn(ranks_, op, *matmul, reason)) return;
    for (int64_t parts = ranks_ / 2; parts > 1 && isa<LinearOp>(op) && !reason.empty(); --parts) {
      if (ranks_ % parts || !pairIn(parts, op, *matmul, reason)) continue;
      reason += ": " + std::to_string(ranks_ / parts) + " neighbours hold the same piece";
      break;
    }
    if (!reason.empty()) plan_.whole.push_back({op, reason});
  }

  // `reason` says why not, where nothing has before.
  bool pairIn(int64_t parts, Operation* op, const WeightMatmul& matmul, std::string& reason) {
    const Value x = op->getOperand(matmul.activation), w = op->getOperand(matmul.weight);
    for (int64_t groups : groupsAlong(x, matmul.activationAxis)) {
      const Cut cut{matmul.activationAxis, parts, groups},
          ofWeight{matmul.weightAxis, parts, groups};
      Sources found;
      if (partsOf(tensorType(x), cut.axis, parts, groups) == parts && trace(x, cut, found) &&
          !found.columns.empty() &&
          (isLoadedWeight(w) ? byHand_.agrees(w, ofWeight, &found.reason)
                             : trace(w, ofWeight, found))) {
        plan_.rows[op] = cut;
        adopt(found);
        return true;
      }
      if (reason.empty()) reason = found.reason;
    }
    return false;
  }

  // In how many groups an axis may be cut: one, and what a reshape says that it is made of.
  static SmallVector<int64_t> groupsAlong(Value v, int64_t axis) {
    SmallVector<int64_t> groups{1};
    auto reshape = v.getDefiningOp<ReshapeOp>();
    if (!reshape) return groups;
    auto x = tensorType(reshape.getX());
    for (int64_t a = 0; a < x.getRank(); ++a) {
      if (x.isDynamicDim(a) || x.getDimSize(a) < 2) continue;
      // In single elements: where the axis begins in the result.
      auto cuts = cutsOfOperand(reshape, 0, {a, x.getDimSize(a)});
      if (cuts && cuts->results[0].axis == axis && cuts->results[0].groups > 1)
        groups.push_back(cuts->results[0].groups);
    }
    return groups;
  }

  // Whether the value can be made in pieces: every way back ends at columns of a product, at a
  // state, or at what is whole and serves all pieces.
  bool trace(Value v, Cut cut, Sources& found) {
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      auto f = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      const StringRef state = stateOf(f.getArgAttrDict(argument.getArgNumber()));
      if (state.empty()) return true;  // every rank has it and takes its piece
      auto planned = plan_.states.find(state);
      if (planned != plan_.states.end() && planned->second != cut) return false;
      return cut.groups == 1 && found.states.try_emplace(state.str(), cut).first->second == cut;
    }
    if (isLoadedWeight(v) || !found.seen.insert({v, cut}).second) return true;
    Operation* op = v.getDefiningOp();
    if (auto shard = dyn_cast<ShardOp>(op); shard && byHand_.of(shard) != cut) {
      found.reason =
          "it is cut along axis " + std::to_string(int64_t(shard.getAxis())) + " by hand";
      return false;
    }
    const unsigned result = cast<OpResult>(v).getResultNumber();
    std::optional<OpCuts> cuts = cutsOfResult(op, result, cut, &found.reason);
    if (!cuts && (cuts = cutsOfNorm(op, cut))) found.norms.insert(op);
    if (!cuts) return false;
    auto linear = dyn_cast<LinearOp>(op);
    bool isWeight = false, isOther = false;  // what is cut
    for (auto [operand, its] : llvm::zip_equal(op->getOperands(), cuts->operands)) {
      if (its.isWhole()) continue;
      const bool loaded = isLoadedWeight(operand);
      isWeight |= loaded;
      isOther |= !loaded && !(linear && operand == linear.getResidual());
      if (loaded && (!hasNamedPieces(operand, its) || !byHand_.agrees(operand, its, &found.reason)))
        return false;
    }
    if (isWeight && !isOther && !startAt(op, cuts->results[0], found)) return false;
    for (auto [operand, its] : llvm::zip_equal(op->getOperands(), cuts->operands))
      if (!its.isWhole() && !trace(operand, its, found)) return false;
    return true;
  }

  static bool isReadByOneProduct(Value v) {
    while (v.hasOneUse()) {
      Operation* user = *v.user_begin();
      if (weightMatmulOf(user)) return true;
      if (user->getNumResults() != 1) return false;
      v = user->getResult(0);
    }
    return false;
  }

  // Pieces of weights make pieces of whole activations.
  bool startAt(Operation* op, const Cut& cut, Sources& found) {
    if (plan_.rows.contains(op)) return false;
    auto linear = dyn_cast<LinearOp>(op);
    if (linear && isWeightOnly(linear.getX())) return false;
    // Columns of a table are no work that is shared: what else reads them would gather them.
    if (isa<EmbeddingOp>(op) && !isReadByOneProduct(op->getResult(0))) return false;
    auto planned = plan_.columns.find(op);
    if (planned != plan_.columns.end() && planned->second != cut) return false;
    return found.columns.try_emplace(op, cut).first->second == cut;
  }

  // A state is as the plan has it, and no result.
  static bool isResult(OpOperand& use) {
    if (!isa<func::ReturnOp>(use.getOwner())) return false;
    auto f = cast<func::FuncOp>(use.getOwner()->getParentOp());
    return stateOf(f.getResultAttrDict(use.getOperandNumber())).empty();
  }

  // A projection that nothing but a result reads, such as that to the vocabulary.
  void cutHead(LinearOp linear) {
    auto type = tensorType(linear.getY());
    if (plan_.columns.contains(linear) || plan_.rows.contains(linear) || linear.getResidual() ||
        linear.getLayout() == WeightLayout::packed || isWeightOnly(linear.getX()))
      return;
    const bool isHead = llvm::all_of(linear->getUses(), [](OpOperand& use) {
      Operation* user = use.getOwner();
      return isResult(use) ||
             (isa<CastOp, ReshapeOp>(user) && llvm::all_of(user->getUses(), isResult));
    });
    if (!isHead || linear->use_empty()) return;
    const int64_t axis = type.getRank() - 1;
    std::string why;
    const int64_t ofWeight = linear.getLayout() == WeightLayout::in_out ? 1 : 0;
    if (partsOf(type, axis, ranks_) != ranks_)
      plan_.whole.push_back({linear, undivided(type, axis)});
    else if (!byHand_.agrees(linear.getW(), {ofWeight, ranks_}, &why))
      plan_.whole.push_back({linear, why});
    else
      plan_.columns[linear] = {axis, ranks_};
  }

  std::string undivided(RankedTensorType type, int64_t axis) const {
    return std::to_string(type.getDimSize(axis)) + " along axis " + std::to_string(axis) + " of " +
           shortType(type) + " do not divide by " + std::to_string(ranks_) + " ranks";
  }

  void measureCutWeights() {
    auto measure = [&](Operation* op) {
      auto linear = dyn_cast<LinearOp>(op);
      if (!linear) return;
      if (WeightOp weight = onlyWeightOf(linear.getW())) cutWeights_.insert(weight.getName());
      largest_ = std::max(largest_, tensorType(linear.getW()).getNumElements());
    };
    for (auto& [op, cut] : plan_.columns) measure(op);
    for (auto& [op, cut] : plan_.rows) measure(op);
  }

  // A rank finds the rows of its part of the vocabulary. That costs a sum, which a table repays
  // that is as large as the weights that are cut, or whose piece is there already for the head.
  void cutTable(EmbeddingOp embedding) {
    auto table = tensorType(embedding.getTable());
    if (plan_.columns.contains(embedding) || !isLoadedWeight(embedding.getTable()) ||
        isWeightOnly(embedding.getIds()) || !isa<FloatType>(table.getElementType()))
      return;
    WeightOp weight = onlyWeightOf(embedding.getTable());
    const bool isTied = weight && cutWeights_.contains(weight.getName());
    if (!isTied && (largest_ == 0 || table.getNumElements() < largest_)) return;
    std::string why;
    if (partsOf(table, 0, ranks_) != ranks_)
      plan_.whole.push_back({embedding, undivided(table, 0)});
    else if (!byHand_.agrees(embedding.getTable(), {0, ranks_}, &why))
      plan_.whole.push_back({embedding, why});
    else
      plan_.tables.insert(embedding);
  }

  ModuleOp module_;
  int64_t ranks_;
  const CutsByHand& byHand_;
  ShardPlan plan_;
  llvm::StringSet<> cutWeights_;
  int64_t largest_ = 0;  // elements of a weight that is cut
};

}  // namespace

std::optional<WeightMatmul> weightMatmulOf(Operation* op) {
  if (auto linear = dyn_cast<LinearOp>(op)) {
    if (linear.getActivation() != Activation::none || linear.getLayout() == WeightLayout::packed ||
        isWeightOnly(linear.getX()))
      return std::nullopt;
    return WeightMatmul{0, 1, tensorType(linear.getX()).getRank() - 1,
                        linear.getLayout() == WeightLayout::out_in ? 1 : 0};
  }
  if (auto grouped = dyn_cast<GroupedLinearOp>(op)) {
    if (grouped.getLayout() == WeightLayout::packed || isWeightOnly(grouped.getX()))
      return std::nullopt;
    return WeightMatmul{0, 1, tensorType(grouped.getX()).getRank() - 1,
                        grouped.getLayout() == WeightLayout::out_in ? 2 : 1};
  }
  auto matmul = dyn_cast<MatmulOp>(op);
  if (!matmul) return std::nullopt;
  const int64_t ofA = tensorType(matmul.getA()).getRank() - 1,
                ofB = tensorType(matmul.getB()).getRank() - 2;
  const bool a = isFedByWeight(matmul.getA()), b = isFedByWeight(matmul.getB());
  if (a == b || isWeightOnly(a ? matmul.getB() : matmul.getA())) return std::nullopt;
  return a ? WeightMatmul{1, 0, ofB, ofA} : WeightMatmul{0, 1, ofA, ofB};
}

ShardPlan planShards(ModuleOp module, int64_t ranks, const CutsByHand& byHand) {
  return Planner(module, ranks, byHand).run();
}

}  // namespace lathe
