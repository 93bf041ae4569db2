// SPDX-License-Identifier: Apache-2.0
// Result types and constraints of the collectives.
#include "lathe/ir/types.h"
#include "lathe/runtime/axis_piece.h"

using namespace mlir;

namespace lathe {

// Whether `part` is, or may be, what each of `parts` parts of an axis of size `whole` has. That a
// name is declared so is seen where declarations are: verifyParts.
static LogicalResult checkPart(std::optional<Location> loc, StringRef op, StringAttr part,
                               StringAttr whole, int64_t parts) {
  const std::optional<int64_t> size = whole ? exprOf(whole).asConstant() : std::nullopt;
  const bool fits =
      whole && part &&
      exprOf(part) == (size ? DimExpr(sizeOfPart(*size, parts)) : DimExpr::symbol(part.getValue()));
  if (fits) return success();
  return emitOptionalError(
      loc, "'", op, "' [C3] expected ",
      size ? std::to_string(sizeOfPart(*size, parts)) : std::string("the lathe.dim_part"), " of ",
      whole ? whole.getValue() : "?", " in ", parts, " parts, got ", part ? part.getValue() : "?");
}
static LogicalResult verifyParts(Operation* op, SymbolTableCollection& symbols, StringAttr part,
                                 StringAttr whole, int64_t parts) {
  if (exprOf(whole).asConstant()) return success();
  auto declared = symbols.lookupNearestSymbolFrom<DimPartOp>(op, part);
  if (declared && declared.getOf().getDims()[0] == whole && int64_t(declared.getParts()) == parts)
    return success();
  return op->emitOpError() << "[C3] there is no lathe.dim_part @" << part.getValue() << " of <"
                           << whole.getValue() << "> parts " << parts;
}
// One part is all; its size may have a name of its own.
template <class Op>
static Value ofOneRank(Op op, int64_t parts) {
  return parts == 1 && op.getX().getType() == op.getType() ? op.getX() : Value();
}
// The one size of an attribute of sizes; null where it has not one, of which `loc` is told.
static StringAttr oneDim(std::optional<Location> loc, StringRef op, DimsAttr dims) {
  if (dims.getDims().size() == 1) return dims.getDims()[0];
  (void)emitOptionalError(loc, "'", op, "' [C3] expected one size, got ", dims);
  return {};
}

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
  StringAttr& along = dims[size_t(axis)];
  if (DimsAttr said = a.getWholeAttr()) {
    const StringAttr whole = oneDim(loc, getOperationName(), said);
    if (!whole || failed(checkPart(loc, getOperationName(), along, whole, parts))) return failure();
    along = whole;
  } else {
    along = dimAttr(x.getContext(), exprOf(along) * DimExpr(parts));
  }
  r.push_back(tensorOf(dims, x.getElementType()));
  return success();
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection& symbols) {
  if (!getWhole()) return success();
  return verifyParts(*this, symbols, dimOf(tensorType(getX()), int64_t(getAxis())),
                     getWhole()->getDims()[0], int64_t(getParts()));
}
OpFoldResult AllGatherOp::fold(FoldAdaptor) { return ofOneRank(*this, int64_t(getParts())); }

// One of `parts` pieces of x along an axis: equal ones, or of the size that `part` says.
static LogicalResult inferPiece(std::optional<Location> loc, StringRef op, RankedTensorType x,
                                int64_t axis, int64_t parts, DimsAttr part,
                                SmallVectorImpl<Type>& r) {
  if (axis < 0 || axis >= x.getRank() ||
      (!part && (x.isDynamicDim(axis) || x.getDimSize(axis) % parts)))
    return emitOptionalError(loc, "'", op, "' [C1] axis ", axis, " of ", shortType(x),
                             " does not divide by ", parts);
  auto dims = dimsOf(x);
  StringAttr& along = dims[size_t(axis)];
  if (part) {
    const StringAttr size = oneDim(loc, op, part);
    if (!size || failed(checkPart(loc, op, size, along, parts))) return failure();
    along = size;
  } else {
    along = dimAttr(x.getContext(), DimExpr(x.getDimSize(axis) / parts));
  }
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
  return inferPiece(loc, getOperationName(), x, axis, ranks, a.getPartAttr(), r);
}
// The part that a rank keeps, where its size has a name.
template <class Op>
static LogicalResult verifyOwnPart(Op op, SymbolTableCollection& symbols, uint64_t parts) {
  if (!op.getPart()) return success();
  return verifyParts(op, symbols, op.getPart()->getDims()[0],
                     dimOf(tensorType(op.getX()), int64_t(op.getAxis())), int64_t(parts));
}
LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection& symbols) {
  return verifyOwnPart(*this, symbols, getRanks());
}
OpFoldResult ReduceScatterOp::fold(FoldAdaptor) { return ofOneRank(*this, int64_t(getRanks())); }

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
  if (failed(inferPiece(loc, getOperationName(), x, split, ranks, {}, piece))) return failure();
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
  return inferPiece(loc, getOperationName(), x, axis, parts, a.getPartAttr(), r);
}
LogicalResult AllSliceOp::verifySymbolUses(SymbolTableCollection& symbols) {
  return verifyOwnPart(*this, symbols, getParts());
}
OpFoldResult AllSliceOp::fold(FoldAdaptor) { return ofOneRank(*this, int64_t(getParts())); }

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
