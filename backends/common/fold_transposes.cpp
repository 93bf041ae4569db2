// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "lathe/backends/call_attributes.h"
#include "lathe/backends/strided_view.h"
#include "lathe/backends/to_kernels.h"
#include "lathe/ir/types.h"
#include "lathe/passes/region_ops.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/cost.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr int64_t kSwapHeads[] = {0, 2, 1, 3};

// matmul(a, transpose(b)) with the last two axes swapped: b is read through its strides.
void foldMatmul(MatmulOp op) {
  auto t = op.getB().getDefiningOp<TransposeOp>();
  if (!t) return;
  auto p = llvm::to_vector(t.getPermutation());
  size_t rank = p.size();
  std::swap(p[rank - 1], p[rank - 2]);
  if (!llvm::equal(p, llvm::seq<int64_t>(0, int64_t(rank)))) return;
  OpBuilder b(op);
  const CallAttributes config = attributesOf(b, MatmulConfig{.transposeB = true});
  auto kernel =
      KernelOp::create(b, op.getLoc(), TypeRange(op.getType()), ValueRange{op.getA(), t.getX()},
                       b.getStringAttr("matmul"), FlatSymbolRefAttr(), b.getDictionaryAttr(config),
                       DenseI64ArrayAttr());
  noteCost(kernel, costOf(op));
  op.replaceAllUsesWith(kernel->getResult(0));
  op.erase();
}

bool allNamed(ValueRange values) {
  return llvm::all_of(values, [](Value v) { return elementCountOf(tensorType(v)).has_value(); });
}

// Operands of the call: q, k, v, the mask, the positions and the table, where there are such.
template <class Op>
void foldAttention(Op op) {
  OpBuilder b(op);
  SmallVector<Value> inputs{op.getQ(), op.getK(), op.getV()}, operands;
  if (!allNamed(inputs) || !allNamed(op->getResults())) return;
  constexpr bool isPaged = std::is_same_v<Op, PagedAttentionOp>;
  AttentionConfig config{.scale = op.getScale().convertToDouble(),
                         .softcap = op.getSoftcap().convertToDouble(),
                         .window = int64_t(op.getWindow()),
                         .causal = Causal::positions,
                         .maskedRow = op.getMaskedRow(),
                         .mask = bool(op.getMask())};
  if constexpr (!isPaged) config.causal = op.getCausal();
  for (Value v : inputs) {
    StridedView view = viewOf(v);
    if (!view.denseFrom(view.sizes.size() - 1)) view = StridedView::dense(v);
    operands.push_back(view.base);
    config.views.push_back(view.terms());
  }
  Value result = op.getY();
  TransposeOp after;
  if (result.hasOneUse()) {
    after = dyn_cast<TransposeOp>(*result.getUsers().begin());
    if (after && after.getPermutation() != ArrayRef<int64_t>(kSwapHeads)) after = nullptr;
  }
  StridedView out = StridedView::dense(after ? Value(after.getY()) : result);
  if (after) out.permute(kSwapHeads);
  config.views.push_back(out.terms());
  if (op.getMask()) operands.push_back(op.getMask());
  if (op.getPositions()) operands.push_back(op.getPositions());
  if constexpr (isPaged) operands.push_back(op.getTable());
  Location loc = after ? b.getFusedLoc({op.getLoc(), after.getLoc()}) : op.getLoc();
  auto kernel = KernelOp::create(b, loc, TypeRange(out.base.getType()), operands,
                                 b.getStringAttr(op->getName().stripDialect()), FlatSymbolRefAttr(),
                                 b.getDictionaryAttr(attributesOf(b, config)), DenseI64ArrayAttr());
  noteCost(kernel, costOf(op));
  out.base.replaceAllUsesWith(kernel->getResult(0));
  if (after) after.erase();
  op.erase();
}

// The new block is read in place: heads of a projection need no copy on their way to the cache.
template <class Op>
void foldUpdate(Op op) {
  Value value = op.getValue();
  if (!allNamed(value)) return;
  StridedView view = viewOf(value);
  size_t axis = size_t(op.getAxis());
  if (view.base == value || !view.denseFrom(axis + 1)) return;
  if (view.base == viewOf(op.getX()).base) return;  // it is overwritten while it is read
  OpBuilder b(op);
  const CallAttributes config =
      attributesOfUpdate(b, {.axis = int64_t(op.getAxis()), .view = view.terms()});
  SmallVector<Value> operands(op->getOperands());
  operands[1] = view.base;
  auto kernel = KernelOp::create(b, op.getLoc(), TypeRange(op.getType()), operands,
                                 b.getStringAttr(op->getName().stripDialect()), FlatSymbolRefAttr(),
                                 b.getDictionaryAttr(config), DenseI64ArrayAttr());
  noteCost(kernel, costOf(op));
  op.replaceAllUsesWith(kernel->getResult(0));
  op.erase();
}

}  // namespace

void foldTransposes(ModuleOp module) {
  SmallVector<Operation*> ops;
  for (auto f : module.getOps<func::FuncOp>())
    for (Operation& op : f.getOps())
      if (!isMovement(&op)) ops.push_back(&op);  // the folds erase transposes
  for (Operation* op : ops)
    TypeSwitch<Operation*>(op)
        .Case([](MatmulOp matmul) { foldMatmul(matmul); })
        .Case<UpdateOp, PagedUpdateOp>([](auto update) { foldUpdate(update); })
        .Case<AttentionOp, PagedAttentionOp>([](auto attention) { foldAttention(attention); });
  // Movement that is read through strides now: operands of one op may share it.
  for (auto f : module.getOps<func::FuncOp>()) {
    if (f.isExternal()) continue;
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(f.getBody().front())))
      if (isMovement(&op) && isOpTriviallyDead(&op)) op.erase();
  }
}

}  // namespace lathe
