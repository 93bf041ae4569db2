// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/shard_plan.h"

#include <set>
#include <tuple>

#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

// Where the pieces of a value may come from.
struct Sources {
  llvm::DenseMap<Operation*, int64_t> columns;
  std::map<std::string, Cut, std::less<>> states;
  std::string reason;                                  // what a trace ended at
  std::set<std::tuple<void*, int64_t, int64_t>> seen;  // values on the way, and how they are cut
};

class Planner {
 public:
  Planner(ModuleOp module, int64_t ranks) : module_(module), ranks_(ranks) {}

  ShardPlan run() {
    for (auto f : module_.getOps<func::FuncOp>())
      f.walk([&](LinearOp linear) { pairWith(linear); });
    // After the pairs: what they leave, a head in front of the results, is cut for itself.
    for (auto f : module_.getOps<func::FuncOp>()) f.walk([&](LinearOp linear) { cutHead(linear); });
    return std::move(plan_);
  }

 private:
  static bool readsCutRows(LinearOp linear) {
    return linear.getActivation() == Activation::none && linear.getLayout() != WeightLayout::packed;
  }

  // Linear ops whose columns reach this one's rows.
  void pairWith(LinearOp linear) {
    auto x = tensorType(linear.getX());
    const int64_t last = x.getRank() - 1;
    if (isWeightOnly(linear.getX()) || plan_.columns.contains(linear)) return;
    Sources found;
    const bool isPair = readsCutRows(linear) && partsOf(x, last, ranks_) == ranks_ &&
                        trace(linear.getX(), {last, ranks_}, found) && !found.columns.empty();
    if (!isPair) {
      if (!found.reason.empty()) plan_.whole.push_back({linear, found.reason});
      return;
    }
    plan_.rows.insert(linear);
    for (auto [op, parts] : found.columns) plan_.columns[op] = parts;
    for (auto& [name, cut] : found.states) plan_.states[name] = cut;
  }

  // Whether the value can be made in pieces: every way back ends at columns of a linear op, at a
  // state, or at what is whole and serves all pieces.
  bool trace(Value v, Cut cut, Sources& found) {
    auto type = tensorType(v);
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      auto f = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      const StringRef state = stateOf(f.getArgAttrDict(argument.getArgNumber()));
      if (state.empty()) return true;  // every rank has it and takes its piece
      auto planned = plan_.states.find(state);
      if (planned != plan_.states.end() && planned->second != cut) return false;
      return found.states.try_emplace(state.str(), cut).first->second == cut;
    }
    if (isLoadedWeight(v) ||
        !found.seen.insert({v.getAsOpaquePointer(), cut.axis, cut.parts}).second)
      return true;
    Operation* op = v.getDefiningOp();
    auto factored = dyn_cast<FactoredOp>(op);
    const std::optional<Factors> factors = factored ? factored.factors() : std::nullopt;
    if (!factors) return false;
    const unsigned result = cast<OpResult>(v).getResultNumber();
    const int factor = factors->results[result][size_t(cut.axis)];
    if (factor == Factors::kWhole) return false;
    if (auto linear = dyn_cast<LinearOp>(op)) return columnsOf(linear, type, cut, found);
    for (auto [operand, axes] : llvm::zip_equal(op->getOperands(), factors->operands)) {
      const int64_t axis = axisOf(axes, factor);
      if (axis < 0) continue;
      const int64_t parts = partsOf(tensorType(operand), axis, cut.parts);
      // Only heads may be fewer than ranks: those of keys, which several query heads share.
      const bool isShared = isa<AttentionOp>(op) && parts > 0;
      if (parts != cut.parts && !isShared) {
        found.reason = std::to_string(tensorType(operand).getDimSize(axis)) + " along axis " +
                       std::to_string(axis) + " of " + shortType(operand.getType()) + " in " +
                       op->getName().getStringRef().str() + " do not divide by " +
                       std::to_string(cut.parts) + " ranks";
        return false;
      }
      if (!trace(operand, {axis, parts}, found)) return false;
    }
    return true;
  }

  bool columnsOf(LinearOp linear, RankedTensorType type, Cut cut, Sources& found) {
    if (cut.axis != type.getRank() - 1 || plan_.rows.contains(linear) ||
        isWeightOnly(linear.getX()))
      return false;
    auto planned = plan_.columns.find(linear);
    if (planned != plan_.columns.end() && planned->second != cut.parts) return false;
    if (found.columns.try_emplace(linear, cut.parts).first->second != cut.parts) return false;
    return !linear.getResidual() || trace(linear.getResidual(), cut, found);
  }

  // A projection that nothing but a result reads, such as that to the vocabulary.
  void cutHead(LinearOp linear) {
    auto type = tensorType(linear.getY());
    if (plan_.columns.contains(linear) || plan_.rows.contains(linear) || linear.getResidual() ||
        linear.getLayout() == WeightLayout::packed || isWeightOnly(linear.getX()) ||
        partsOf(type, type.getRank() - 1, ranks_) != ranks_)
      return;
    const bool isHead = llvm::all_of(linear->getUsers(), [](Operation* user) {
      return isa<func::ReturnOp>(user) ||
             (isa<CastOp, ReshapeOp>(user) &&
              llvm::all_of(user->getUsers(), [](Operation* u) { return isa<func::ReturnOp>(u); }));
    });
    if (isHead && !linear->use_empty()) plan_.columns[linear] = ranks_;
  }

  ModuleOp module_;
  int64_t ranks_;
  ShardPlan plan_;
};

}  // namespace

ShardPlan planShards(ModuleOp module, int64_t ranks) { return Planner(module, ranks).run(); }

}  // namespace lathe
