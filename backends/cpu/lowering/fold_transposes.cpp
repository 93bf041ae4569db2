// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/to_kernels.h"
#include "ir/types.h"
#include "passes/cost.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

constexpr int64_t kSwapHeads[] = {0, 2, 1, 3};

TransposeOp swappedHeads(Value v) {
  auto t = v.getDefiningOp<TransposeOp>();
  return t && t.getPermutation() == ArrayRef<int64_t>(kSwapHeads) ? t : TransposeOp();
}

// matmul(a, transpose(b)) with the last two axes swapped: b is read through its strides.
void foldMatmul(MatmulOp op) {
  auto t = op.getB().getDefiningOp<TransposeOp>();
  if (!t) return;
  auto p = llvm::to_vector(t.getPermutation());
  size_t rank = p.size();
  std::swap(p[rank - 1], p[rank - 2]);
  if (!llvm::equal(p, llvm::seq<int64_t>(0, int64_t(rank)))) return;
  OpBuilder b(op);
  SmallVector<NamedAttribute> config{b.getNamedAttr("transpose_b", b.getBoolAttr(true))};
  auto kernel =
      KernelOp::create(b, op.getLoc(), TypeRange(op.getType()), ValueRange{op.getA(), t.getX()},
                       b.getStringAttr("matmul"), FlatSymbolRefAttr(), b.getDictionaryAttr(config),
                       DenseI64ArrayAttr());
  noteCost(kernel, costOf(op));
  op.replaceAllUsesWith(kernel->getResult(0));
  op.erase();
  if (t->use_empty()) t.erase();
}

void foldAttention(AttentionOp op) {
  OpBuilder b(op);
  SmallVector<Value> operands{op.getQ(), op.getK(), op.getV()};
  SmallVector<Attribute> transposed(4, b.getBoolAttr(false));
  SmallVector<TransposeOp> folded;
  for (int i = 0; i < 3; ++i)
    if (TransposeOp t = swappedHeads(operands[i])) {
      operands[i] = t.getX();
      transposed[i] = b.getBoolAttr(true);
      folded.push_back(t);
    }
  Value result = op.getY();
  Type type = result.getType();
  TransposeOp after;
  if (result.hasOneUse()) {
    after = dyn_cast<TransposeOp>(*result.getUsers().begin());
    if (after && after.getPermutation() != ArrayRef<int64_t>(kSwapHeads)) after = nullptr;
  }
  if (after) {
    type = after.getType();
    transposed[3] = b.getBoolAttr(true);
  }
  if (op.getMask()) operands.push_back(op.getMask());
  if (op.getPositions()) operands.push_back(op.getPositions());
  SmallVector<NamedAttribute> config{
      b.getNamedAttr("scale", op.getScaleAttr()),
      b.getNamedAttr("causal", b.getStringAttr(stringifyCausal(op.getCausal()))),
      b.getNamedAttr("masked_row", b.getStringAttr(stringifyMaskedRow(op.getMaskedRow()))),
      b.getNamedAttr("mask", b.getBoolAttr(bool(op.getMask()))),
      b.getNamedAttr("transposed", b.getArrayAttr(transposed))};
  Location loc = after ? b.getFusedLoc({op.getLoc(), after.getLoc()}) : op.getLoc();
  auto kernel =
      KernelOp::create(b, loc, TypeRange(type), operands, b.getStringAttr("attention"),
                       FlatSymbolRefAttr(), b.getDictionaryAttr(config), DenseI64ArrayAttr());
  noteCost(kernel, costOf(op));
  (after ? after.getY() : result).replaceAllUsesWith(kernel->getResult(0));
  if (after) after.erase();
  op.erase();
  for (TransposeOp t : folded)
    if (t->use_empty()) t.erase();
}

}  // namespace

void foldTransposes(ModuleOp module) {
  SmallVector<Operation*> ops;
  module.walk([&](Operation* op) {
    if (isa<MatmulOp, AttentionOp>(op)) ops.push_back(op);
  });
  for (Operation* op : ops) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      foldMatmul(matmul);
    else
      foldAttention(cast<AttentionOp>(op));
  }
}

}  // namespace lathe::cpu
