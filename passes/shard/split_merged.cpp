// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/split_merged.h"

#include "ir/op_builder.h"
#include "passes/rewrite/asked_once.h"
#include "passes/rewrite/weight_only.h"
#include "passes/shard/op_cuts.h"

using namespace mlir;

namespace lathe {
namespace {

struct Columns {
  SliceOp slice;
  int64_t start, size;
};

// Of a slice along the last axis alone.
std::optional<Columns> columnsOf(SliceOp slice) {
  auto y = tensorType(slice.getY());
  const auto start = startAlong(slice, y.getRank() - 1);
  if (!start) return std::nullopt;
  return Columns{slice, *start, y.getDimSize(y.getRank() - 1)};
}

// Whether the rows alone lie otherwise.
bool keepsColumns(ReshapeOp reshape) {
  auto x = tensorType(reshape.getX()), y = tensorType(reshape.getY());
  return y.getRank() > 0 && !x.isDynamicDim(x.getRank() - 1) &&
         dimOf(x, x.getRank() - 1) == dimOf(y, y.getRank() - 1);
}

// The slices that are all of a layer that is read; none where something reads the rest, too.
SmallVector<Columns> partsOfLayer(LinearOp linear, const CutsByHand& byHand) {
  if (linear.getResidual() || linear.getLayout() == WeightLayout::packed ||
      !isLoadedWeight(linear.getW()) || isWeightOnly(linear.getX()) ||
      (linear.getBias() && !isWeightOnly(linear.getBias())) || byHand.isSaidOf(linear.getW()))
    return {};
  SmallVector<Columns> parts;
  int64_t columns = 0;
  SmallVector<Operation*> readers;
  for (Operation* user : linear->getUsers()) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    if (reshape && keepsColumns(reshape))
      readers.append(reshape->getUsers().begin(), reshape->getUsers().end());
    else
      readers.push_back(user);
  }
  for (Operation* reader : readers) {
    auto slice = dyn_cast<SliceOp>(reader);
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

// The same of a value of weights, where it can be of slices of these: a rank reads no more of them.
using Slices = AskedOnce<Value, std::pair<Value, int64_t>>;  // by the axis
Value sliceOfWeights(OpBuilder& b, Location loc, Value v, int64_t axis, int64_t start, int64_t size,
                     Slices& slices);
Value makeSliceOfWeights(OpBuilder& b, Location loc, Value v, int64_t axis, int64_t start,
                         int64_t size, Slices& slices) {
  Operation* op = v.getDefiningOp();
  auto factored = isa<ReshapeOp, BroadcastOp>(op) ? FactoredOp() : dyn_cast<FactoredOp>(op);
  const auto factors = factored ? factored.factors() : std::nullopt;
  const int factor = factors ? factors->results[0][size_t(axis)] : Factors::kWhole;
  if (factor == Factors::kWhole || op->getNumResults() != 1)
    return sliceOf(b, loc, v, axis, start, size);
  const int64_t length = tensorType(v).getDimSize(axis);
  for (auto [operand, axes] : llvm::zip_equal(op->getOperands(), factors->operands))
    if (const int64_t own = axisOf(axes, factor);
        own >= 0 && tensorType(operand).getDimSize(own) != length)
      return sliceOf(b, loc, v, axis, start, size);
  // One value may be two operands, of which one is sliced.
  SmallVector<Value> operands(op->getOperands());
  for (auto [operand, axes] : llvm::zip_equal(operands, factors->operands))
    if (const int64_t own = axisOf(axes, factor); own >= 0)
      operand = sliceOfWeights(b, loc, operand, own, start, size, slices);
  Operation* made = b.clone(*op);
  made->setOperands(operands);
  auto dims = dimsOf(tensorType(v));
  dims[size_t(axis)] = dimAttr(b.getContext(), DimExpr(size));
  if (auto slice = dyn_cast<SliceOp>(made)) slice.setSizesAttr(DimsAttr::get(b.getContext(), dims));
  made->getResult(0).setType(tensorOf(dims, tensorType(v).getElementType()));
  return made->getResult(0);
}
Value sliceOfWeights(OpBuilder& b, Location loc, Value v, int64_t axis, int64_t start, int64_t size,
                     Slices& slices) {
  return slices.of({v, axis},
                   [&] { return makeSliceOfWeights(b, loc, v, axis, start, size, slices); });
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
      Slices slices;
      Value w =
          sliceOfWeights(b, linear.getLoc(), linear.getW(), columnsOfWeight, start, size, slices);
      Value bias = linear.getBias();
      if (bias) bias = sliceOfWeights(b, linear.getLoc(), bias, 0, start, size, slices);
      Value y = LinearOp::create(b, linear.getLoc(), linear.getX(), w, bias, Value(),
                                 linear.getActivation(), linear.getLayout(), linear.getUnrounded());
      Operation* reshape = slice.getX().getDefiningOp<ReshapeOp>();
      if (reshape) y = OpMaker(b, slice.getLoc()).reshape(y, dimsOf(tensorType(slice.getY())));
      slice.getY().replaceAllUsesWith(y);
      slice.erase();
      if (reshape && reshape->use_empty()) reshape->erase();
    }
    if (!parts.empty()) linear.erase();
  }
}

}  // namespace lathe
