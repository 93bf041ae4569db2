// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/split_merged.h"

#include "passes/rewrite/weight_only.h"

using namespace mlir;

namespace lathe {
namespace {

struct Columns {
  SliceOp slice;
  int64_t start, size;
};

// Of a slice along the last axis alone.
std::optional<Columns> columnsOf(SliceOp slice) {
  auto x = tensorType(slice.getX()), y = tensorType(slice.getY());
  const int64_t last = x.getRank() - 1;
  const auto whole = dimsOf(x), sizes = dimsOf(y);
  for (int64_t axis = 0; axis <= last; ++axis)
    if (slice.getStrides()[size_t(axis)] != 1 ||
        (axis < last && whole[size_t(axis)] != sizes[size_t(axis)]))
      return std::nullopt;
  const auto start = exprOf(slice.getStarts().getDims()[size_t(last)]).asConstant();
  if (!start || y.isDynamicDim(last)) return std::nullopt;
  return Columns{slice, *start, y.getDimSize(last)};
}

// The slices that are all of a layer that is read; none where something reads the rest, too.
SmallVector<Columns> partsOfLayer(LinearOp linear, const CutsByHand& byHand) {
  if (linear.getResidual() || linear.getLayout() == WeightLayout::packed ||
      !isLoadedWeight(linear.getW()) || isWeightOnly(linear.getX()) ||
      (linear.getBias() && !isWeightOnly(linear.getBias())) || byHand.isSaidOf(linear.getW()))
    return {};
  SmallVector<Columns> parts;
  int64_t columns = 0;
  for (Operation* user : linear->getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    const auto part = slice ? columnsOf(slice) : std::nullopt;
    if (!part) return {};
    parts.push_back(*part);
    columns += part->size;
  }
  auto y = tensorType(linear.getY());
  // Fewer than two are no layers of their own; slices that overlap would be computed twice.
  if (parts.size() < 2 || columns > y.getDimSize(y.getRank() - 1)) return {};
  llvm::sort(parts, [](const Columns& a, const Columns& b) { return a.start < b.start; });
  return parts;
}

Value sliceOf(OpBuilder& b, Location loc, Value v, int64_t axis, int64_t start, int64_t size) {
  MLIRContext* c = b.getContext();
  auto sizes = dimsOf(tensorType(v));
  SmallVector<StringAttr> starts(sizes.size(), dimAttr(c, DimExpr(0)));
  starts[size_t(axis)] = dimAttr(c, DimExpr(start));
  sizes[size_t(axis)] = dimAttr(c, DimExpr(size));
  return SliceOp::create(b, loc, v, DimsAttr::get(c, starts), DimsAttr::get(c, sizes),
                         b.getDenseI64ArrayAttr(SmallVector<int64_t>(sizes.size(), 1)));
}

}  // namespace

void splitMergedLinears(ModuleOp module, const CutsByHand& byHand) {
  SmallVector<LinearOp> linears;
  module.walk([&](LinearOp linear) { linears.push_back(linear); });
  for (LinearOp linear : linears) {
    const SmallVector<Columns> parts = partsOfLayer(linear, byHand);
    const int64_t columnsOfWeight = linear.getLayout() == WeightLayout::in_out ? 1 : 0;
    OpBuilder b(linear);
    for (auto [slice, start, size] : parts) {
      Value w = sliceOf(b, linear.getLoc(), linear.getW(), columnsOfWeight, start, size);
      Value bias = linear.getBias();
      if (bias) bias = sliceOf(b, linear.getLoc(), bias, 0, start, size);
      Value y = LinearOp::create(b, linear.getLoc(), linear.getX(), w, bias, Value(),
                                 linear.getActivation(), linear.getLayout(), linear.getUnrounded());
      slice.getY().replaceAllUsesWith(y);
      slice.erase();
    }
    if (!parts.empty()) linear.erase();
  }
}

}  // namespace lathe
