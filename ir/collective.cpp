// SPDX-License-Identifier: Apache-2.0
// Result types and constraints of the collectives.
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  if (int64_t(a.getRanks()) < 1)
    return emitOptionalError(loc, "'lathe.all_reduce' [C1] expected at least one rank, got ",
                             int64_t(a.getRanks()));
  r.push_back(a.getX().getType());
  return success();
}
OpFoldResult AllReduceOp::fold(FoldAdaptor) { return getRanks() == 1 ? getX() : Value(); }

LogicalResult AllGatherOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                            SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  const int64_t axis = int64_t(a.getAxis()), parts = int64_t(a.getParts());
  if (axis < 0 || axis >= x.getRank())
    return emitOptionalError(loc, "'lathe.all_gather' [C1] axis ", axis, " is outside of ",
                             shortType(x));
  if (parts < 1 || int64_t(a.getRanks()) % parts)
    return emitOptionalError(loc, "'lathe.all_gather' [C2] ", parts, " pieces on ",
                             int64_t(a.getRanks()), " ranks");
  auto dims = dimsOf(x);
  dims[size_t(axis)] = dimAttr(x.getContext(), exprOf(dims[size_t(axis)]) * DimExpr(parts));
  r.push_back(tensorOf(dims, x.getElementType()));
  return success();
}
OpFoldResult AllGatherOp::fold(FoldAdaptor) { return getParts() == 1 ? getX() : Value(); }

// One of `parts` equal pieces of x along an axis.
static LogicalResult inferPiece(std::optional<Location> loc, StringRef op, RankedTensorType x,
                                int64_t axis, int64_t parts, SmallVectorImpl<Type>& r) {
  if (axis < 0 || axis >= x.getRank() || x.isDynamicDim(axis) || x.getDimSize(axis) % parts)
    return emitOptionalError(loc, "'", op, "' [C1] axis ", axis, " of ", shortType(x),
                             " does not divide by ", parts);
  auto dims = dimsOf(x);
  dims[size_t(axis)] = dimAttr(x.getContext(), DimExpr(x.getDimSize(axis) / parts));
  r.push_back(tensorOf(dims, x.getElementType()));
  return success();
}

LogicalResult ReduceScatterOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc,
                                                Adaptor a, SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  const int64_t axis = int64_t(a.getAxis()), ranks = int64_t(a.getRanks());
  if (ranks < 1)
    return emitOptionalError(loc, "'lathe.reduce_scatter' [C2] expected at least one rank, got ",
                             ranks);
  return inferPiece(loc, getOperationName(), x, axis, ranks, r);
}
OpFoldResult ReduceScatterOp::fold(FoldAdaptor) { return getRanks() == 1 ? getX() : Value(); }

LogicalResult AllToAllOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  const int64_t split = int64_t(a.getSplitAxis()), concat = int64_t(a.getConcatAxis()),
                ranks = int64_t(a.getRanks());
  if (ranks < 1)
    return emitOptionalError(loc, "'lathe.all_to_all' [C2] expected at least one rank, got ",
                             ranks);
  if (concat < 0 || concat >= x.getRank())
    return emitOptionalError(loc, "'lathe.all_to_all' [C1] axis ", concat, " is outside of ",
                             shortType(x));
  SmallVector<Type> piece;
  if (failed(inferPiece(loc, getOperationName(), x, split, ranks, piece))) return failure();
  auto dims = dimsOf(cast<RankedTensorType>(piece[0]));
  StringAttr& along = dims[size_t(concat)];
  along = dimAttr(x.getContext(), exprOf(along) * DimExpr(ranks));
  r.push_back(tensorOf(dims, x.getElementType()));
  return success();
}
OpFoldResult AllToAllOp::fold(FoldAdaptor) { return getRanks() == 1 ? getX() : Value(); }

template <class Op>
static LogicalResult verifyStage(Op op) {
  const int64_t stage = int64_t(op.getStage()), stages = int64_t(op.getStages());
  if (stage >= 0 && stage < stages) return success();
  return op.emitOpError("[C1] stage ") << stage << " is none of " << stages;
}
LogicalResult SendOp::verify() { return verifyStage(*this); }
LogicalResult ReceiveOp::verify() { return verifyStage(*this); }

LogicalResult AllSliceOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  const int64_t axis = int64_t(a.getAxis()), parts = int64_t(a.getParts());
  if (parts < 1 || int64_t(a.getRanks()) % parts)
    return emitOptionalError(loc, "'lathe.all_slice' [C2] ", parts, " pieces on ",
                             int64_t(a.getRanks()), " ranks");
  return inferPiece(loc, getOperationName(), x, axis, parts, r);
}
OpFoldResult AllSliceOp::fold(FoldAdaptor) { return getParts() == 1 ? getX() : Value(); }

LogicalResult ShardOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                        SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX());
  const int64_t axis = int64_t(a.getAxis());
  if (axis < 0 || axis >= x.getRank())
    return emitOptionalError(loc, "'lathe.shard' [C1] axis ", axis, " is outside of ",
                             shortType(x));
  if (x.isDynamicDim(axis))
    return emitOptionalError(loc, "'lathe.shard' [C1] axis ", axis, " of ", shortType(x),
                             ": expected a size that is a number");
  r.push_back(x);
  return success();
}
FailureOr<SmallVector<Value>> ShardOp::decompose(OpBuilder&) { return SmallVector<Value>{getX()}; }

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/collective.cpp.inc"
