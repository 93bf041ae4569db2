// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/align_blocks.h"

#include <numeric>

#include "ir/op_builder.h"
#include "passes/shard/op_cuts.h"

using namespace mlir;

namespace lathe {
namespace {

// Each element `times` times in a row along an axis, `size` elements in all.
Value repeated(OpMaker& m, Value v, int64_t axis, int64_t times, int64_t size) {
  if (!v) return v;
  auto dims = dimsOf(tensorType(v));
  SmallVector<StringAttr> apart(dims), joined(dims);
  const int64_t count = tensorType(v).getDimSize(axis);
  apart.insert(apart.begin() + axis + 1, m.dim(1));
  v = m.reshape(v, apart);
  apart[size_t(axis) + 1] = m.dim(times);
  joined[size_t(axis)] = m.dim(count * times);
  v = m.reshape(m.broadcast(v, apart), joined);
  if (count * times == size) return v;
  SmallVector<StringAttr> starts(joined.size(), m.dim(0));
  joined[size_t(axis)] = m.dim(size);
  MLIRContext* c = m.b.getContext();
  return m.make<SliceOp>(v, DimsAttr::get(c, starts), DimsAttr::get(c, joined),
                         SmallVector<int64_t>(joined.size(), 1));
}

// The op is read no more, and stands.
void align(DequantizeOp op, const Cut& cut) {
  const int64_t axis = int64_t(op.getAxis()), block = int64_t(op.getBlock());
  auto type = tensorType(op.getY());
  const int64_t size = type.getDimSize(axis);
  if (cut.groups > 1 || partsOf(type, axis, cut.parts) != cut.parts) return;
  const int64_t smaller = std::gcd(block, size / cut.parts);
  OpBuilder b(op);
  OpMaker m(b, op.getLoc());
  auto scales = [&](Value v) { return repeated(m, v, axis, block / smaller, size / smaller); };
  Value y = m.make<DequantizeOp>(op.getQ(), scales(op.getScale()), scales(op.getZero()),
                                 b.getI64IntegerAttr(axis), b.getI64IntegerAttr(smaller),
                                 op.getDtypeAttr());
  op.getY().replaceAllUsesWith(y);
}

void alignBehind(Value v, const Cut& cut, llvm::DenseSet<std::pair<Value, Cut>>& seen) {
  Operation* op = v.getDefiningOp();
  if (!op || op->getNumOperands() == 0 || cut.isWhole() || !seen.insert({v, cut}).second) return;
  const std::optional<OpCuts> cuts = cutsOfResult(op, cast<OpResult>(v).getResultNumber(), cut);
  auto dequantize = dyn_cast<DequantizeOp>(op);
  if (!cuts && dequantize && cut.axis == int64_t(dequantize.getAxis()))
    return align(dequantize, cut);
  for (size_t i = 0; cuts && i < op->getNumOperands(); ++i)
    alignBehind(op->getOperand(unsigned(i)), cuts->operands[i], seen);
}

}  // namespace

void alignBlocks(Value v, const Cut& cut) {
  llvm::DenseSet<std::pair<Value, Cut>> seen;
  alignBehind(v, cut, seen);
}

}  // namespace lathe
