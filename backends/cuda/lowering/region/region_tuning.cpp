// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/region_printer.h"

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

constexpr int64_t kMeasuredRows = 512;

// The region's text without its name and without places in the user's program.
std::string textOf(func::FuncOp region) {
  std::string text;
  llvm::raw_string_ostream(text) << region;
  const std::string name = "@" + region.getName().str();
  if (const size_t at = text.find(name); at != std::string::npos) text.erase(at, name.size());
  return text;
}

}  // namespace

TuningQuestion questionOf(func::FuncOp region, const std::string& kernel,
                          const std::vector<RegionSchedule>& schedules) {
  Value result = region.getBody().front().getTerminator()->getOperand(0);
  auto sizes = dimExprs(result);
  TuningQuestion q;
  q.problem = "region " + shortHash(textOf(region));
  q.version = kRegionVersion;
  q.kernel = kernel;
  for (const RegionSchedule& s : schedules) q.candidates.push_back(s.text());
  if (sizes.size() > 1) q.sizes = {{productOf(ArrayRef(sizes).drop_back()), 0, kMeasuredRows}};
  return q;
}

}  // namespace lathe::cuda
