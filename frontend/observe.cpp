// SPDX-License-Identifier: Apache-2.0
#include "frontend/observe.h"

#include "lathe/ir/types.h"
#include "llvm/ADT/BitVector.h"
#include "passes/observe.h"
#include "passes/rewrite/cost.h"

using namespace mlir;

namespace lathe {
namespace {

void dropResult(ObservedResult& r) {
  r.function.getBody().front().getTerminator()->eraseOperand(r.index);
  llvm::BitVector dropped(r.function.getNumResults());
  dropped.set(r.index);
  (void)r.function.eraseResults(dropped);
}

// A copy of the module with at most one of its observed results, the `kept`th.
OwningOpRef<ModuleOp> withOnly(ModuleOp module, size_t kept, StringRef how) {
  OwningOpRef<ModuleOp> copy = module.clone();
  std::vector<ObservedResult> results = observedResults(*copy);
  for (size_t i = results.size(); i-- > 0;) {
    if (i != kept) {
      dropResult(results[i]);
      continue;
    }
    results[i].function.setResultAttr(results[i].index, kObserved,
                                      StringAttr::get(copy->getContext(), how));
  }
  return copy;
}

double bytesAtMost(const Cost& cost, const SymbolValues& most) {
  return evaluate(cost, most).bytes();
}

}  // namespace

std::vector<CompileRecord::Observed> decideObserved(ModuleOp module,
                                                    const std::function<void(ModuleOp)>& lower) {
  std::vector<CompileRecord::Observed> decisions;
  std::vector<ObservedResult> results = observedResults(module);
  if (results.empty()) return decisions;
  SymbolValues most;
  for (auto dim : module.getOps<DimOp>()) most[dim.getSymName().str()] = int64_t(dim.getHi());
  auto costWith = [&](size_t kept, StringRef how) {
    OwningOpRef<ModuleOp> copy = withOnly(module, kept, how);
    lower(*copy);
    return totalCost(*copy);
  };
  const Cost without = costWith(results.size(), "");
  for (size_t i = 0; i < results.size(); ++i) {
    ObservedResult& r = results[i];
    auto mark = r.function.getResultAttrOfType<StringAttr>(r.index, kObserved);
    std::string how = mark ? mark.str() : "";
    Cost chosen = costWith(i, mark ? mark.getValue() : StringRef(kObservedAsOutput)) - without;
    if (!mark) {
      const Cost again = costWith(i, kObservedAgain) - without;
      const bool cheaper = bytesAtMost(again, most) < bytesAtMost(chosen, most);
      if (cheaper) chosen = again;
      how = cheaper ? kObservedAgain.str() : kObservedAsOutput.str();
      r.function.setResultAttr(r.index, kObserved, StringAttr::get(module.getContext(), how));
    }
    decisions.push_back({r.function.getName().str(), r.name(), how, chosen});
  }
  return decisions;
}

}  // namespace lathe
