// SPDX-License-Identifier: Apache-2.0
#include "frontend/questions/divergence.h"

#include "ir/types.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/locations.h"

using namespace mlir;

namespace lathe {
namespace {

struct Known {
  Operation* op;
  Array value;
};

class Search {
 public:
  Search(ModuleOp before, ModuleOp now, const Trial& trial, bool contract)
      : now_(now), trial_(trial), contract_(contract) {
    const Precision precision = trial.options().precision;
    was_ = trial.run(before, precision, [&](Operation* op, const std::vector<Array>& values) {
      Origins origins;
      addOrigins(origins, op->getLoc());
      for (auto [v, a] : llvm::zip(op->getResults(), values)) {
        for (Location line : origins) byLine_[line.getAsOpaquePointer()].push_back(old_.size());
        old_.push_back({op, a});
      }
    });
    is_ = trial.run(now, precision, [&](Operation* op, const std::vector<Array>& values) {
      for (auto [v, a] : llvm::zip(op->getResults(), values)) values_[v] = a;
    });
  }

  std::optional<Divergence> run() {
    size_t next = 0;
    for (auto f : now_.getOps<func::FuncOp>()) {
      if (!trial_.runs(f)) continue;
      auto end = f.getBody().front().getTerminator();
      Value wrong;
      for (Value v : end->getOperands()) {
        const TrialResult &is = is_.at(next), &was = was_.at(next);
        ++next;
        if (differ(is.value, was.value, is.dtype)) {
          if (!wrong) wrong = v;
          follow(v);
        }
      }
      if (wrong) return pick(f, wrong);
    }
    return std::nullopt;
  }

 private:
  bool differ(const Array& a, const Array& b, DType dtype) const {
    double allowed = contract_ ? contractOf(dtype, trial_.options().precision) : 0;
    Deviation d = deviationOf(a, b, dtype, allowed, "");
    return contract_ ? !d.within && !d.identical : !d.identical;
  }

  // Through the walls of regions.
  static Value source(Value v) {
    while (true) {
      if (auto argument = dyn_cast<BlockArgument>(v)) {
        auto region = dyn_cast<RegionOp>(argument.getOwner()->getParentOp());
        if (!region) return v;
        v = region.getInputs()[argument.getArgNumber()];
      } else if (auto region = v.getDefiningOp<RegionOp>()) {
        v = region.getBody().front().getTerminator()->getOperand(
            cast<OpResult>(v).getResultNumber());
      } else {
        return v;
      }
    }
  }

  // The op of the old form that comes nearest to a value, and how near.
  struct Nearest {
    Operation* op = nullptr;
    Deviation deviation;
    bool agrees = false;
  };
  Nearest nearest(Value v) {
    Nearest best;
    const Array& value = values_[v];
    DType dtype = *dtypeOf(tensorType(v).getElementType());
    double allowed = contract_ ? contractOf(dtype, trial_.options().precision) : 0;
    Origins origins;
    addOrigins(origins, v.getDefiningOp()->getLoc());
    for (Location line : origins)
      for (size_t i : byLine_.lookup(line.getAsOpaquePointer())) {
        const Known& old = old_[i];
        if (old.value.shape() != value.shape() || old.value.dtype() != value.dtype()) continue;
        Deviation d = deviationOf(value, old.value, dtype, allowed,
                                  v.getDefiningOp()->getName().getStringRef().str());
        bool agrees = d.identical || (contract_ && d.within);
        if (agrees || !best.op || d.ulps < best.deviation.ulps) best = {old.op, d, agrees};
        if (agrees) return best;
      }
    return best;
  }

  void follow(Value v) {
    SmallVector<Value> work{v};
    while (!work.empty()) {
      Value at = source(work.pop_back_val());
      Operation* def = at.getDefiningOp();
      if (!def || found_.count(at)) continue;
      Nearest n = nearest(at);
      found_[at] = n;
      if (n.agrees) continue;
      for (Value operand : def->getOperands()) work.push_back(operand);
    }
  }

  Divergence pick(func::FuncOp f, Value wrong) {
    Operation *first = nullptr, *firstWithCounterpart = nullptr;
    Nearest counterpart;
    f.walk<WalkOrder::PreOrder>([&](Operation* op) {
      for (Value v : op->getResults()) {
        auto it = found_.find(v);
        if (it == found_.end() || it->second.agrees) continue;
        if (!first) first = op;
        if (!firstWithCounterpart && it->second.op) {
          firstWithCounterpart = op;
          counterpart = it->second;
        }
      }
    });
    // A right value in the wrong place: the result itself is to blame.
    Operation* op = firstWithCounterpart ? firstWithCounterpart : first;
    if (!op) op = source(wrong).getDefiningOp();
    Divergence d;
    d.op = op ? op->getName().getStringRef().str() : "an argument";
    d.at = sourceText(op ? op->getLoc() : wrong.getLoc());
    d.deviation = counterpart.deviation;
    if (counterpart.op) {
      d.was = counterpart.op->getName().getStringRef().str();
      d.wasAt = sourceText(counterpart.op->getLoc());
    }
    return d;
  }

  ModuleOp now_;
  const Trial& trial_;
  const bool contract_;
  TrialResults was_, is_;
  std::vector<Known> old_;
  llvm::DenseMap<const void*, SmallVector<size_t>> byLine_;
  llvm::DenseMap<Value, Array> values_;
  llvm::DenseMap<Value, Nearest> found_;
};

}  // namespace

std::optional<Divergence> firstDivergence(ModuleOp before, ModuleOp now, const Trial& trial,
                                          bool contract) {
  return Search(before, now, trial, contract).run();
}

}  // namespace lathe
