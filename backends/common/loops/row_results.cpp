// SPDX-License-Identifier: Apache-2.0
#include "backends/common/loops/row_results.h"

using namespace mlir;

namespace lathe::loops {

RowResults::RowResults(func::FuncOp region, const RowPlan& plan)
    : values(resultsOf(region)), region_(region), plan_(plan) {}

DimExpr RowResults::rows() const {
  return plan_.flat ? *elementCountOf(tensorType(values[0])) : productOf(plan_.rowDims);
}

SmallVector<std::pair<unsigned, Value>> RowResults::storeColumns(
    Evaluator& e, function_ref<void(const Columns&)> loop) {
  SmallVector<std::pair<unsigned, Value>> scalars;
  SmallVector<Columns> all;
  for (auto [r, v] : llvm::enumerate(values)) {
    if (isEmpty(v)) continue;
    if (isRowScalar(v)) {
      scalars.push_back({unsigned(r), e.eval(v, Index{e.row})});
      continue;
    }
    const DimExpr length = columns(v);
    auto it = llvm::find_if(all, [&](const Columns& c) { return c.length == length; });
    if (it == all.end()) it = all.insert(all.end(), {length, {}});
    it->results.push_back(unsigned(r));
  }
  loops = int(all.size());
  for (const Columns& c : all) loop(c);
  return scalars;
}

std::vector<std::pair<unsigned, unsigned>> RowResults::inPlace(const Evaluator& e,
                                                               bool rowScalars) const {
  std::vector<std::pair<unsigned, unsigned>> pairs;
  // Of several loops a later one may read what an earlier one has replaced.
  if (loops != 1) return pairs;
  auto operands = func::FuncOp(region_).getArguments();
  for (auto [r, v] : llvm::enumerate(values))
    for (BlockArgument operand : operands) {
      const unsigned a = operand.getArgNumber();
      if (!e.scattered.contains(a) && e.read.count(a) && operand.getType() == v.getType() &&
          (rowScalars || !isRowScalar(v)))
        pairs.push_back({a, unsigned(r)});
    }
  return pairs;
}

}  // namespace lathe::loops
