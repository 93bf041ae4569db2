// SPDX-License-Identifier: Apache-2.0
// Result types, constraints and meaning of the ops on values in few bits.
#include <limits>

#include "ir/op_builder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace lathe {
namespace {

// Blocks may be longer than the axis.
constexpr int64_t kLongestBlock = std::numeric_limits<int32_t>::max();
bool isBlock(int64_t block) { return block >= 1 && block <= kLongestBlock; }

struct Blocks {
  int64_t axis, block, size, count;
};

// The operand's dims with `count` blocks in the place of the axis; fails with [C1] and [C2].
LogicalResult checkBlocks(std::optional<Location> loc, StringRef op, Value x, Value scale,
                          Value zero, int64_t axis, int64_t block) {
  auto type = tensorType(x);
  if (axis < 0 || axis >= type.getRank() || type.isDynamicDim(axis) || !isBlock(block))
    return emitOptionalError(loc, "'", op, "' [C1] axis ", axis, " of ", shortType(type),
                             " has no fixed size, or block ", block, " is not from 1 to ",
                             kLongestBlock);
  auto dims = dimsOf(type);
  dims[size_t(axis)] =
      dimAttr(type.getContext(), DimExpr(llvm::divideCeilSigned(type.getDimSize(axis), block)));
  for (Value v : {scale, zero})
    if (v && dimsOf(tensorType(v)) != dims)
      return emitOptionalError(loc, "'", op, "' [C2] ", v == scale ? "scale " : "zero ",
                               shortType(v.getType()), " is not one element for ", block,
                               " neighbours along axis ", axis, " of ", shortType(type));
  return success();
}

template <class Op>
Blocks blocksOf(Op op, Value x) {
  const int64_t axis = int64_t(op.getAxis()), block = int64_t(op.getBlock());
  const int64_t size = tensorType(x).getDimSize(axis);
  return {axis, block, size, llvm::divideCeilSigned(size, block)};
}

// One element a block as one element each, for elements of `wide`.
Value spread(OpMaker& m, Value perBlock, const Blocks& b, Type wide) {
  Value v = m.cast(perBlock, wide);
  if (b.block == 1 || b.count == 1) return v;  // a literal 1 stretches
  auto dims = dimsOf(tensorType(v));
  // [.., blocks, ..] -> [.., blocks, 1, ..] -> [.., blocks, block, ..] -> [.., blocks * block, ..]
  SmallVector<StringAttr> apart(dims), joined(dims);
  apart.insert(apart.begin() + b.axis + 1, m.dim(1));
  v = m.reshape(v, apart);
  apart[size_t(b.axis) + 1] = m.dim(b.block);
  joined[size_t(b.axis)] = m.dim(b.count * b.block);
  v = m.reshape(m.broadcast(v, apart), joined);
  if (b.count * b.block == b.size) return v;
  SmallVector<StringAttr> starts(joined.size(), m.dim(0)), sizes(joined);
  sizes[size_t(b.axis)] = m.dim(b.size);
  MLIRContext* c = m.b.getContext();
  return m.make<SliceOp>(v, DimsAttr::get(c, starts), DimsAttr::get(c, sizes),
                         SmallVector<int64_t>(joined.size(), 1));
}

// Dims with an axis in blocks as two: [.., blocks, block, ..].
SmallVector<StringAttr> inBlocks(OpMaker& m, Value x, const Blocks& b, int64_t block) {
  SmallVector<StringAttr> dims(dimsOf(tensorType(x)));
  dims[size_t(b.axis)] = m.dim(b.count);
  dims.insert(dims.begin() + b.axis + 1, m.dim(block));
  return dims;
}

// 4-bit integers by way of the bytes that elementary ops know.
Type byteOf(Type element) {
  return IntegerType::get(
      element.getContext(), 8,
      element.isUnsignedInteger() ? IntegerType::Unsigned : IntegerType::Signless);
}

std::pair<double, double> rangeOf(Type element) {
  const double values = double(1 << element.getIntOrFloatBitWidth());
  if (element.isUnsignedInteger()) return {0, values - 1};
  return {-values / 2, values / 2 - 1};
}

}  // namespace

LogicalResult QuantizeOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                           SmallVectorImpl<Type>& r) {
  if (failed(checkBlocks(loc, getOperationName(), a.getX(), a.getScale(), a.getZero(),
                         int64_t(a.getAxis()), int64_t(a.getBlock()))))
    return failure();
  auto dtype = dtypeOf(a.getDtype());
  if (!dtype || (!isPacked(*dtype) && *dtype != DType::I8 && *dtype != DType::U8))
    return emitOptionalError(loc, "'lathe.quantize' [C3] expected i8, ui8, i4 or ui4, got ",
                             a.getDtype());
  r.push_back(withElement(tensorType(a.getX()), a.getDtype()));
  return success();
}

FailureOr<SmallVector<Value>> QuantizeOp::decompose(OpBuilder& builder) {
  OpMaker m(builder, getLoc());
  const Blocks b = blocksOf(*this, getX());
  const Type wide = computeType(tensorType(getX()).getElementType());
  auto [low, high] = rangeOf(getDtype());
  auto scalar = [&](double v) { return m.scalar(wide, v); };
  // No quotient by zero: a block of zeros has the scale 0.
  Value scale = m.cast(getScale(), wide);
  Value isZero = m.compare(Compare::eq, scale, scalar(0));
  Value divisor = m.make<SelectOp>(isZero, scalar(1), scale);
  // Half of the largest magnitude is often a tie: the quotient is that of f32 for every reader.
  // Whole blocks are an axis of their own, along which one element stretches: no copy of the scales
  // as large as the operand.
  const bool apart = b.count > 1 && b.block > 1 && b.count * b.block == b.size;
  Value x = getX();
  if (apart) x = m.reshape(x, inBlocks(m, x, b, b.block));
  auto beside = [&](Value perBlock) {
    return apart ? m.reshape(m.cast(perBlock, wide), inBlocks(m, perBlock, b, 1))
                 : spread(m, perBlock, b, wide);
  };
  Value quotient = m.inBits(m.make<DivOp>(m.cast(x, wide), beside(divisor)));
  Value y = m.make<RoundOp>(quotient);
  if (getZero()) y = m.make<AddOp>(y, beside(getZero()));
  y = m.make<MinOp>(m.make<MaxOp>(y, scalar(low)), scalar(high));
  y = m.cast(y, byteOf(getDtype()));
  if (apart) y = m.reshape(y, dimsOf(tensorType(getX())));
  return SmallVector<Value>{m.cast(y, getDtype())};
}

LogicalResult DequantizeOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor a,
                                             SmallVectorImpl<Type>& r) {
  if (failed(checkBlocks(loc, getOperationName(), a.getQ(), a.getScale(), a.getZero(),
                         int64_t(a.getAxis()), int64_t(a.getBlock()))))
    return failure();
  auto dtype = dtypeOf(a.getDtype());
  if (!dtype || !isFloat(*dtype))
    return emitOptionalError(loc, "'lathe.dequantize' [C3] expected a float dtype, got ",
                             a.getDtype());
  r.push_back(withElement(tensorType(a.getQ()), a.getDtype()));
  return success();
}

FailureOr<SmallVector<Value>> DequantizeOp::decompose(OpBuilder& builder) {
  OpMaker m(builder, getLoc());
  const Blocks b = blocksOf(*this, getQ());
  const Type wide = computeType(getDtype());
  Value y = m.cast(m.cast(getQ(), byteOf(tensorType(getQ()).getElementType())), wide);
  if (getZero()) y = m.make<SubOp>(y, spread(m, getZero(), b, wide));
  y = m.make<MulOp>(y, spread(m, getScale(), b, wide));
  return SmallVector<Value>{m.cast(y, getDtype())};
}

LogicalResult QuantizedLinearOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc,
                                                  Adaptor a, SmallVectorImpl<Type>& r) {
  auto x = tensorType(a.getX()), q = tensorType(a.getQ());
  if (x.getRank() < 1 || q.getRank() != 2 || !q.hasStaticShape() ||
      dimOf(x, x.getRank() - 1) != dimOf(q, 1))
    return emitOptionalError(loc, "'lathe.quantized_linear' [C1] x ", shortType(x), " and q ",
                             shortType(q), ": q must be a static matrix of as many columns");
  const int64_t block = int64_t(a.getBlock());
  if (!isBlock(block))
    return emitOptionalError(loc, "'lathe.quantized_linear' [C2] block ", block,
                             " is not from 1 to ", kLongestBlock);
  const SmallVector<StringAttr> dims{
      dimOf(q, 0),
      dimAttr(q.getContext(), DimExpr(llvm::divideCeilSigned(q.getDimSize(1), block)))};
  for (Value v : {a.getScale(), a.getZero()})
    if (v && dimsOf(tensorType(v)) != dims)
      return emitOptionalError(loc, "'lathe.quantized_linear' [C2] ",
                               v == a.getScale() ? "scale " : "zero ", shortType(v.getType()),
                               " is not one element for ", block, " columns of ", shortType(q));
  if (a.getBias()) {
    auto bias = tensorType(a.getBias());
    if (bias.getRank() != 1 || dimOf(bias, 0) != dims[0] ||
        bias.getElementType() != x.getElementType())
      return emitOptionalError(loc, "'lathe.quantized_linear' [C3] bias ", shortType(bias),
                               " does not fit x ", shortType(x), " and q ", shortType(q));
  }
  auto result = dimsOf(x);
  result.back() = dims[0];
  const bool isUnrounded = a.getUnroundedAttr() && a.getUnrounded();
  auto y = tensorOf(result, isUnrounded ? computeType(x.getElementType()) : x.getElementType());
  if (a.getResidual() && a.getResidual().getType() != y)
    return emitOptionalError(loc, "'lathe.quantized_linear' [C4] residual ",
                             shortType(a.getResidual().getType()), " is not ", shortType(y));
  if (a.getLayoutAttr() && a.getLayout() == WeightLayout::in_out)
    return emitOptionalError(loc,
                             "'lathe.quantized_linear' [C5] expected the layout out_in or "
                             "packed, got in_out");
  r.push_back(y);
  return success();
}

// Rows in f32 that are whole multiples of the 127th part of their largest magnitude. Quotients and
// products are those of f32 for every reader: they decide ties.
static Value roundedToBytes(OpMaker& m, Value x) {
  const Type wide = tensorType(x).getElementType();
  const int64_t last = tensorType(x).getRank() - 1;
  Value largest = m.make<ReduceMaxOp>(m.make<AbsOp>(x), ArrayRef<int64_t>{last}, true);
  largest = m.make<MaxOp>(largest, m.scalar(wide, 0x1p-100));
  Value steps = m.inBits(m.make<DivOp>(m.scalar(wide, 127), largest));
  Value size = m.inBits(m.make<DivOp>(largest, m.scalar(wide, 127)));
  return m.make<MulOp>(m.make<RoundOp>(m.inBits(m.make<MulOp>(x, steps))), size);
}

FailureOr<SmallVector<Value>> QuantizedLinearOp::decompose(OpBuilder& builder) {
  // Packed bytes have no elementary reading.
  if (getLayout() == WeightLayout::packed) return failure();
  OpMaker m(builder, getLoc());
  const Type wide = computeType(tensorType(getX()).getElementType());
  // In the width of the sums: the weight's elements are not rounded to the dtype of x.
  Value w =
      m.make<DequantizeOp>(getQ(), getScale(), getZero(), builder.getI64IntegerAttr(1),
                           builder.getI64IntegerAttr(int64_t(getBlock())), TypeAttr::get(wide));
  auto widened = [&](Value v) { return v ? m.cast(v, wide) : v; };
  Value x = widened(getX());
  if (getQuantizesX()) x = roundedToBytes(m, x);
  Value y = m.make<LinearOp>(x, w, widened(getBias()), widened(getResidual()), getActivation(),
                             WeightLayout::out_in);
  return SmallVector<Value>{m.cast(y, tensorType(getY()).getElementType())};
}

}  // namespace lathe

#define GET_OP_CLASSES
#include "ir/quantized.cpp.inc"
