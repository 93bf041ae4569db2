// SPDX-License-Identifier: Apache-2.0
#include "inspect/questions/divergence.h"

#include <cstring>
#include <functional>
#include <string_view>

#include "lathe/ir/types.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {
namespace {

// A value that an op had. Of a large one, a weight of a vocabulary in doubles, some elements and a
// digest of all: two forms of a model would not fit into memory.
struct Seen {
  Shape shape;
  Array elements;
  size_t digest = 0;

  Seen() = default;
  explicit Seen(const Array& value) : shape(value.shape()), elements(value) {
    constexpr int64_t kWhole = 1 << 20, kSome = 1 << 16;
    if (value.size() <= kWhole) return;
    const size_t size = sizeOf(value.dtype());
    const char* from = static_cast<const char*>(value.data());
    digest = std::hash<std::string_view>()({from, value.bytes()});
    elements = Array(value.dtype(), {kSome});
    char* to = static_cast<char*>(elements.data());
    for (int64_t i = 0; i < kSome; ++i)
      std::memcpy(to + size_t(i) * size, from + size_t(i * (value.size() / kSome)) * size, size);
  }
};

struct Known {
  Operation* op;
  Seen value;
};

class DivergenceSearch {
 public:
  DivergenceSearch(const Form& before, const Form& now, const Trial& trial, bool contract)
      : before_(before), now_(now), trial_(trial), contract_(contract) {}

  std::optional<Divergence> run() {
    size_t next = 0;
    ModuleOp module = now_.module;
    for (auto f : module.getOps<func::FuncOp>()) {
      if (!trial_.runs(f)) continue;
      auto end = f.getBody().front().getTerminator();
      SmallVector<Value> wrong;
      for (Value v : end->getOperands()) {
        const TrialResult &is = now_.results.at(next), &was = before_.results.at(next);
        ++next;
        if (differ(is.value, was.value, is.dtype)) wrong.push_back(v);
      }
      if (wrong.empty()) continue;
      look(f);
      for (Value v : wrong) follow(v);
      return pick(f, wrong.front());
    }
    return std::nullopt;
  }

 private:
  bool differ(const Array& a, const Array& b, DType dtype) const {
    double allowed = contract_ ? contractOf(dtype, trial_.options().precision) : 0;
    Deviation d = deviationOf(a, b, dtype, allowed, "");
    return contract_ ? !d.within && !d.identical : !d.identical;
  }

  // Sees what the ops of an entry point have in both forms.
  void look(func::FuncOp f) {
    const Precision precision = trial_.options().precision;
    const std::string entry = f.getName().str();
    ModuleOp before = before_.module;
    trial_.run(before.lookupSymbol<func::FuncOp>(entry), entry, precision,
               [&](Operation* op, const std::vector<Array>& values) {
                 Origins origins;
                 addOrigins(origins, op->getLoc());
                 for (const Array& a : values) {
                   for (Location line : origins)
                     byLine_[line.getAsOpaquePointer()].push_back(old_.size());
                   old_.push_back({op, Seen(a)});
                 }
               });
    trial_.run(f, entry, precision, [&](Operation* op, const std::vector<Array>& values) {
      for (auto [v, a] : llvm::zip(op->getResults(), values)) values_[v] = Seen(a);
    });
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
    const Seen& value = values_[v];
    DType dtype = *dtypeOf(tensorType(v).getElementType());
    double allowed = contract_ ? contractOf(dtype, trial_.options().precision) : 0;
    Origins origins;
    addOrigins(origins, v.getDefiningOp()->getLoc());
    for (Location line : origins)
      for (size_t i : byLine_.lookup(line.getAsOpaquePointer())) {
        const Known& old = old_[i];
        if (old.value.shape != value.shape || old.value.elements.dtype() != value.elements.dtype())
          continue;
        Deviation d = deviationOf(value.elements, old.value.elements, dtype, allowed,
                                  v.getDefiningOp()->getName().getStringRef().str());
        d.identical &= old.value.digest == value.digest;
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

  const Form &before_, &now_;
  const Trial& trial_;
  const bool contract_;
  std::vector<Known> old_;
  llvm::DenseMap<const void*, SmallVector<size_t>> byLine_;
  llvm::DenseMap<Value, Seen> values_;
  llvm::DenseMap<Value, Nearest> found_;
};

}  // namespace

std::optional<Divergence> firstDivergence(const Form& before, const Form& now, const Trial& trial,
                                          bool contract) {
  return DivergenceSearch(before, now, trial, contract).run();
}

}  // namespace lathe
