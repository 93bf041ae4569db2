// SPDX-License-Identifier: Apache-2.0
// Regions that only move elements, as copies by tiles: printed flat, each lane of a warp would read
// a line of its own.
#include "backends/cuda/lowering/data/data_calls.h"
#include "backends/cuda/lowering/data/data_kernels.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/backends/region_plan.h"
#include "lathe/backends/strided_view.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// Of the 32 on a side of a tile: with fewer elements most of its threads would idle.
constexpr int64_t kLeastSide = 16;

bool isLong(const DimExpr& size) { return size.asConstant().value_or(kLeastSide) >= kLeastSide; }

}  // namespace

std::optional<KernelSet> transposedCopyKernels(func::FuncOp region, const std::string& name) {
  auto results = resultsOf(region);
  if (results.size() != 1 || isEmpty(results[0])) return std::nullopt;
  const auto type = tensorType(results[0]);
  const unsigned bits = type.getElementType().getIntOrFloatBitWidth();
  if (type.getRank() < 2 || (bits != 1 && bits % 8)) return std::nullopt;
  const StridedView view = viewOf(results[0]);
  auto source = dyn_cast<BlockArgument>(view.base);
  if (!source || view.strides.back() == DimExpr(1) || !isLong(view.sizes.back()))
    return std::nullopt;
  const size_t last = view.sizes.size() - 1;
  bool hasDenseAxis = false;
  for (size_t i = 0; i < last && !hasDenseAxis; ++i) {
    if (!(view.strides[i] == DimExpr(1)) || view.sizes[i] == DimExpr(1)) continue;
    if (!isLong(view.sizes[i])) return std::nullopt;
    hasDenseAxis = true;
  }
  if (!hasDenseAxis) return std::nullopt;
  CopyKernel copy{name, elementOf(results[0]), view.offset, {}, {}};
  copy.sizes.assign(view.sizes.begin(), view.sizes.end());
  copy.strides.assign(view.strides.begin(), view.strides.end());
  KernelSet set = copyKernels(copy);
  const int from = int(source.getArgNumber()), to = int(region.getNumArguments());
  for (Variant& v : set.variants)
    for (Launch& l : v.launches)
      for (Argument& a : l.arguments)
        if (a.kind == Argument::Kind::Buffer) a.index = a.index == 0 ? from : to;
  return set;
}

}  // namespace lathe::cuda
