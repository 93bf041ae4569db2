// SPDX-License-Identifier: Apache-2.0
#include "ir/scalar_builder.h"
#include "lathe/ir/types.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe {
namespace {

// The one value of a splat constant as a double; nothing for anything else.
std::optional<double> splatOf(Attribute a) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(a);
  if (!splat) return std::nullopt;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble();
  if (splat.getElementType().isInteger(1)) return std::nullopt;
  return double(splat.getSplatValue<APInt>().getSExtValue());
}
bool isFloatTensor(Type t) { return isa<FloatType>(cast<RankedTensorType>(t).getElementType()); }

// x where `b` is the identity element and broadcasting leaves x's type alone.
OpFoldResult identity(Value x, Attribute b, double neutral, Type result) {
  auto value = splatOf(b);
  return value && *value == neutral && x.getType() == result ? OpFoldResult(x) : OpFoldResult();
}
}  // namespace

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getX().getDefiningOp<NegOp>()) return inner.getX();
  return {};
}
OpFoldResult LogicalNotOp::fold(FoldAdaptor) {
  if (auto inner = getX().getDefiningOp<LogicalNotOp>()) return inner.getX();
  return {};
}
// x + 0 turns -0 into 0, so floats fold only with -0.
OpFoldResult AddOp::fold(FoldAdaptor a) {
  auto zero = splatOf(a.getB());
  if (zero && isFloatTensor(getType()) && !(*zero == 0 && std::signbit(*zero))) return {};
  return identity(getA(), a.getB(), 0, getType());
}
OpFoldResult SubOp::fold(FoldAdaptor a) {
  auto zero = splatOf(a.getB());
  if (zero && std::signbit(*zero)) return {};
  return identity(getA(), a.getB(), 0, getType());
}
OpFoldResult MulOp::fold(FoldAdaptor a) { return identity(getA(), a.getB(), 1, getType()); }
OpFoldResult DivOp::fold(FoldAdaptor a) { return identity(getA(), a.getB(), 1, getType()); }
OpFoldResult PowOp::fold(FoldAdaptor a) { return identity(getA(), a.getB(), 1, getType()); }

LogicalResult IsNanOp::inferReturnTypes(MLIRContext* c, std::optional<Location>, Adaptor a,
                                        SmallVectorImpl<Type>& r) {
  r.push_back(withElement(tensorType(a.getX()), IntegerType::get(c, 1)));
  return success();
}
LogicalResult CompareOp::inferReturnTypes(MLIRContext* c, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  return inferBroadcast(loc, getOperationName(), {a.getA(), a.getB()}, IntegerType::get(c, 1), r);
}
LogicalResult SelectOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                         SmallVectorImpl<Type>& r) {
  return inferBroadcast(loc, getOperationName(), {a.getCondition(), a.getA(), a.getB()}, nullptr, r,
                        /*firstIsCondition=*/true);
}

LogicalResult CastOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                       SmallVectorImpl<Type>& r) {
  if (!dtypeOf(a.getDtype()))
    return emitOptionalError(loc, "'lathe.cast' [C1] no tensor has elements of ", a.getDtype());
  const Type from = tensorType(a.getX()).getElementType();
  auto isByte = [](DType dtype) { return dtype == DType::I8 || dtype == DType::U8; };
  const DType source = dtypeOf(from).value_or(DType::F32), target = *dtypeOf(a.getDtype());
  if ((isPacked(source) && source != target && !isByte(target)) ||
      (isPacked(target) && source != target && !isByte(source)))
    return emitOptionalError(loc,
                             "'lathe.cast' [C2] 4-bit elements become i8 or u8 and come from "
                             "them, got ",
                             shortType(a.getX().getType()), " to ", a.getDtype());
  r.push_back(withElement(tensorType(a.getX()), a.getDtype()));
  return success();
}
LogicalResult CastOp::verify() { return success(); }
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getType()) return getX();
  // Widening and coming back is exact; narrowing first is not.
  auto inner = getX().getDefiningOp<CastOp>();
  if (!inner || inner.getX().getType() != getType()) return {};
  Type narrow = getDtype(), wide = inner.getDtype();
  bool exact = (narrow.isBF16() || narrow.isF16()) ? wide.isF32() || wide.isF64()
                                                   : narrow.isF32() && wide.isF64();
  return exact ? OpFoldResult(inner.getX()) : OpFoldResult();
}

LogicalResult BitcastOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                          SmallVectorImpl<Type>& r) {
  auto from = dtypeOf(tensorType(a.getX()).getElementType()), to = dtypeOf(a.getDtype());
  if (!from || !to || bitsOf(*from) != bitsOf(*to) ||
      (*from == DType::Bool) != (*to == DType::Bool))
    return emitOptionalError(loc,
                             "'lathe.bitcast' [C1] widths differ: ", shortType(a.getX().getType()),
                             " to ", a.getDtype());
  r.push_back(withElement(tensorType(a.getX()), a.getDtype()));
  return success();
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/elementwise.cpp.inc"
