// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/cut_stages.h"

#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/shard/cut.h"
#include "passes/shard/stage_plan.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_CUTSTAGESPASS
#include "lathe/passes/passes.h.inc"
namespace {

constexpr const char* kAxis = "pp";

class StageCutter {
 public:
  StageCutter(ModuleOp module, const StagePlan& plan, int64_t stages, int64_t stage)
      : module_(module), plan_(plan), stages_(uint64_t(stages)), stage_(stage), b_(module) {}

  // All that is made first, and then what goes: the plan knows ops by their addresses, which new
  // ones could have again.
  void run() {
    SmallVector<func::FuncOp> functions(module_.getOps<func::FuncOp>());
    SmallVector<Operation*> others;
    for (func::FuncOp f : functions) exchange(f, others);
    for (func::FuncOp f : functions) dropResults(f);
    for (Operation* op : llvm::reverse(others)) op->erase();
    for (func::FuncOp f : functions) {
      for (Operation& op : llvm::make_early_inc_range(llvm::reverse(f.getBody().front())))
        if (isOpTriviallyDead(&op)) op.erase();
      dropArguments(f);
    }
    for (auto state : llvm::make_early_inc_range(module_.getOps<StateOp>()))
      if (!has(state.getSymName())) state.erase();
  }

 private:
  bool has(StringRef state) const {
    auto it = plan_.states.find(state);
    return (it == plan_.states.end() ? 0 : it->second) == stage_;
  }
  // The stage that has a value, also a state that is read and nothing else; -1: all of them.
  int64_t ownerOf(func::FuncOp f, Value v) const {
    auto argument = dyn_cast<BlockArgument>(v);
    const StringRef state = argument ? stateOf(f.getArgAttrDict(argument.getArgNumber())) : "";
    if (state.empty()) return plan_.of(v);
    auto it = plan_.states.find(state);
    return it == plan_.states.end() ? 0 : it->second;
  }
  // Whether a result, or an argument with these attributes, is this stage's.
  bool isOwn(DictionaryAttr attributes, bool otherwise) const {
    const StringRef state = stateOf(attributes);
    return state.empty() ? otherwise : has(state);
  }

  // Messages from and to the other stages, whose ops are added to `others`.
  void exchange(func::FuncOp f, SmallVectorImpl<Operation*>& others) {
    exchangeOutputs(f, f.getBody().front().getTerminator());
    // In the order of what is sent, on both ends.
    for (Operation& op : llvm::make_early_inc_range(f.getBody().front().without_terminator())) {
      auto at = plan_.stageOf.find(&op);
      if (at == plan_.stageOf.end()) continue;
      if (at->second == stage_) {
        sendOn(&op);
        continue;
      }
      if (at->second < stage_) receive(&op);
      others.push_back(&op);
    }
  }

  // Outputs of later stages come to the first at its end, and are sent at theirs.
  void exchangeOutputs(func::FuncOp f, Operation* end) {
    llvm::SmallDenseMap<Value, Value> exchanged;
    b_.setInsertionPoint(end);
    for (OpOperand& use : end->getOpOperands()) {
      const Value v = use.get();
      const int64_t from = ownerOf(f, v);
      if (from <= 0 || !stateOf(f.getResultAttrDict(use.getOperandNumber())).empty()) continue;
      if (from != stage_ && stage_ != 0) continue;
      auto [it, isNew] = exchanged.try_emplace(v);
      if (stage_ == 0) {
        if (isNew)
          it->second = ReceiveOp::create(b_, v.getLoc(), v.getType(), uint64_t(from), kAxis,
                                         stages_, /*result=*/true);
        use.set(it->second);
      } else if (isNew) {
        SendOp::create(b_, v.getLoc(), v, uint64_t(0), kAxis, stages_, /*result=*/true);
      }
    }
  }

  // To each later stage that reads what the op makes.
  void sendOn(Operation* op) {
    b_.setInsertionPointAfter(op);
    for (Value v : op->getResults()) {
      llvm::SmallSetVector<int64_t, 4> to;
      for (Operation* user : v.getUsers())
        if (auto at = plan_.stageOf.find(user); at != plan_.stageOf.end() && at->second > stage_)
          to.insert(at->second);
      SmallVector<int64_t> order(to.begin(), to.end());
      llvm::sort(order);
      for (int64_t stage : order)
        SendOp::create(b_, v.getLoc(), v, uint64_t(stage), kAxis, stages_, /*result=*/false);
    }
  }

  void receive(Operation* op) {
    b_.setInsertionPoint(op);
    for (Value v : op->getResults()) {
      auto isOurs = [&](OpOperand& use) {
        auto at = plan_.stageOf.find(use.getOwner());
        return at != plan_.stageOf.end() && at->second == stage_;
      };
      if (llvm::none_of(v.getUses(), isOurs)) continue;
      const Value received =
          ReceiveOp::create(b_, v.getLoc(), v.getType(), uint64_t(plan_.stageOf.lookup(op)), kAxis,
                            stages_, /*result=*/false);
      v.replaceUsesWithIf(received, isOurs);
    }
  }

  // Results that are not this stage's.
  void dropResults(func::FuncOp f) {
    Operation* end = f.getBody().front().getTerminator();
    llvm::BitVector drop(f.getNumResults());
    for (unsigned i = 0; i < f.getNumResults(); ++i)
      if (!isOwn(f.getResultAttrDict(i), stage_ == 0)) drop.set(i);
    [[maybe_unused]] const LogicalResult erased = f.eraseResults(drop);
    assert(succeeded(erased));
    end->eraseOperands(drop);
  }
  // States that are not.
  void dropArguments(func::FuncOp f) {
    llvm::BitVector drop(f.getNumArguments());
    for (unsigned i = 0; i < f.getNumArguments(); ++i) {
      if (isOwn(f.getArgAttrDict(i), true)) continue;
      drop.set(i);
      if (!f.getArgument(i).use_empty())
        throw Error(ErrorCode::Unsupported, "stages of a pipeline: what the state '" +
                                                stateOf(f.getArgAttrDict(i)).str() +
                                                "' holds is kept as it is in a state of another "
                                                "stage; take one stage");
    }
    [[maybe_unused]] const LogicalResult erased = f.eraseArguments(drop);
    assert(succeeded(erased));
  }

  ModuleOp module_;
  const StagePlan& plan_;
  uint64_t stages_;
  int64_t stage_;
  OpBuilder b_;
};

}  // namespace

void cutStages(ModuleOp module, int64_t stages, int64_t stage) {
  const StagePlan plan = planStages(module, stages);
  StageCutter(module, plan, stages, stage).run();
}

namespace {

struct CutStagesPass : impl::CutStagesPassBase<CutStagesPass> {
  using Base::Base;
  void runOnOperation() final {
    try {
      cutStages(getOperation(), stages, stage);
    } catch (const Error& e) {
      getOperation().emitError(e.what());
      signalPassFailure();
    }
  }
};

}  // namespace

}  // namespace lathe
