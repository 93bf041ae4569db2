// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

LogicalResult ConstantOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  r.push_back(a.getValue().getType());
  return success();
}
OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult WeightOp::verify() {
  if (!tensorType(getY()).hasStaticShape())
    return emitOpError() << "[C1] a weight's shape is static, got " << shortType(getType());
  const int given = bool(getOfAttr()) + bool(getAxisAttr()) + bool(getPartsAttr());
  const bool whole = given == 0;
  if (!whole && (given != 3 || int64_t(*getAxis()) < 0 ||
                 int64_t(*getAxis()) >= tensorType(getY()).getRank() || int64_t(*getParts()) < 1))
    return emitOpError() << "[C2] a piece has a weight that it is of, an axis of "
                         << shortType(getType()) << " and a number of parts";
  const bool isPart = getGroupsAttr() || getBeginAttr() || getExtentAttr();
  if ((isPart && whole) || bool(getBeginAttr()) != bool(getExtentAttr()))
    return emitOpError()
           << "[C2] expected groups, begin and extent of a piece of a weight, the last "
              "two together";
  if (!isPart) return success();
  const int64_t groups = int64_t(getGroups().value_or(1)),
                size = tensorType(getY()).getDimSize(int64_t(*getAxis()));
  if (groups < 1 || size % groups ||
      (getBeginAttr() && (int64_t(*getBegin()) < 0 || int64_t(*getExtent()) - int64_t(*getBegin()) <
                                                          size / groups * int64_t(*getParts()))))
    return emitOpError() << "[C3] " << int64_t(*getParts()) << " parts of " << size
                         << " elements in " << groups << " groups are not inside of the weight";
  return success();
}

LogicalResult DimOp::verify() {
  if (int64_t(getLo()) < 0 || getHi() < getLo() || int64_t(getMultiple()) < 1)
    return emitOpError() << "[C1] empty range " << int64_t(getLo()) << " to " << int64_t(getHi())
                         << " multiple " << int64_t(getMultiple());
  if (int64_t(getHi()) / int64_t(getMultiple()) * int64_t(getMultiple()) < int64_t(getLo()))
    return emitOpError() << "[C1] range " << int64_t(getLo()) << " to " << int64_t(getHi())
                         << " holds no multiple of " << int64_t(getMultiple());
  return success();
}

LogicalResult DimPartOp::verifySymbolUses(SymbolTableCollection& symbols) {
  if (int64_t(getParts()) < 1)
    return emitOpError() << "[C2] expected at least one part, got " << int64_t(getParts());
  ArrayRef<StringAttr> of = getOf().getDims();
  if (of.size() != 1 || exprOf(of[0]).asConstant())
    return emitOpError() << "[C1] expected one size of symbols, got " << getOf();
  for (const std::string& name : exprOf(of[0]).symbols())
    if (!symbols.lookupNearestSymbolFrom<DimOp>(*this, StringAttr::get(getContext(), name)))
      return emitOpError() << "[C1] there is no lathe.dim @" << name;
  return success();
}

LogicalResult MeshOp::verify() {
  if (int64_t(getRanks()) < 1 || getMeshAxis().empty())
    return emitOpError() << "[C1] expected at least one rank along a named axis, got "
                         << int64_t(getRanks()) << " along '" << getMeshAxis() << "'";
  return success();
}

LogicalResult ShardWeightsOp::verify() {
  if (getWeights().empty() || bool(getAxisAttr()) != bool(getMeshAxisAttr()))
    return emitOpError() << "[C1] expected a pattern for names of weights, and an axis of theirs "
                            "together with one of the mesh";
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/state.cpp.inc"
