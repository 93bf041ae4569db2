// SPDX-License-Identifier: Apache-2.0
// The meaning of the norms, of what surrounds them in a block, and of the rotary embedding. An op
// that is a composition of fused ops decomposes into those.
#include "ir/op_builder.h"

using namespace mlir;

namespace lathe {
namespace {

// x * rsqrt(mean(x^2) + epsilon) over the last axis.
Value divideByRoot(OpMaker& m, Value x, Value squares, const APFloat& epsilon) {
  auto type = tensorType(x);
  Value mean = m.make<ReduceMeanOp>(squares, ArrayRef<int64_t>{type.getRank() - 1}, true);
  Value shifted = m.make<AddOp>(mean, m.scalar(type.getElementType(), epsilon.convertToDouble()));
  return m.make<MulOp>(x, m.make<RsqrtOp>(shifted));
}

Value normOf(OpMaker& m, Norm norm, Value x, Value gain, Value bias, const APFloat& epsilon,
             GainRounding rounding) {
  FloatAttr e = m.b.getF64FloatAttr(epsilon.convertToDouble());
  if (norm == Norm::layer) return m.make<LayerNormOp>(x, gain, bias, e);
  return m.make<RmsNormOp>(x, gain, e, GainRoundingAttr::get(m.b.getContext(), rounding));
}

}  // namespace

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Type element = tensorType(getX()).getElementType(), wide = computeType(element);
  Value x = m.cast(getX(), wide);
  Value y = divideByRoot(m, x, m.make<MulOp>(x, x), getEpsilon());
  if (!getGain()) return SmallVector<Value>{m.cast(y, element)};
  if (getRounding() == GainRounding::before_gain)
    return SmallVector<Value>{m.make<MulOp>(m.cast(y, element), getGain())};
  return SmallVector<Value>{m.cast(m.make<MulOp>(y, m.cast(getGain(), wide)), element)};
}

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  auto type = tensorType(getX());
  Type element = type.getElementType(), wide = computeType(element);
  Value x = m.cast(getX(), wide);
  Value mean = m.make<ReduceMeanOp>(x, ArrayRef<int64_t>{type.getRank() - 1}, true);
  Value centered = m.make<SubOp>(x, mean);
  Value y = divideByRoot(m, centered, m.make<MulOp>(centered, centered), getEpsilon());
  if (getGain()) y = m.make<MulOp>(y, m.cast(getGain(), wide));
  if (getBias()) y = m.make<AddOp>(y, m.cast(getBias(), wide));
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> AddNormOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Value sum = m.make<AddOp>(getX(), getResidual());
  Value y = normOf(m, getNorm(), sum, getGain(), getBias(), getEpsilon(), getRounding());
  return SmallVector<Value>{sum, y};
}

FailureOr<SmallVector<Value>> AdalnModulateOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Type element = tensorType(getX()).getElementType(), wide = computeType(element);
  Value y =
      normOf(m, getNorm(), m.cast(getX(), wide), {}, {}, getEpsilon(), GainRounding::after_gain);
  Value factor = m.make<AddOp>(m.cast(getScale(), wide), m.scalar(wide, 1));
  y = m.make<AddOp>(m.make<MulOp>(y, factor), m.cast(getShift(), wide));
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> GatedResidualOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Type element = tensorType(getX()).getElementType(), wide = computeType(element);
  Value gated = m.make<MulOp>(m.cast(getGate(), wide), m.cast(getF(), wide));
  return SmallVector<Value>{m.cast(m.make<AddOp>(m.cast(getX(), wide), gated), element)};
}

FailureOr<SmallVector<Value>> RopeOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  auto type = tensorType(getX()), table = tensorType(getCos());
  Type element = type.getElementType(), wide = table.getElementType();
  int64_t last = type.getRank() - 1, width = type.getDimSize(last);
  int64_t half = table.getDimSize(table.getRank() - 1), rotated = 2 * half;
  Value x = m.cast(getX(), wide), rest, even, odd;
  if (rotated < width) {
    rest = m.sliceLast(x, rotated, width - rotated);
    x = m.sliceLast(x, 0, rotated);
  }
  if (getPairing() == Pairing::half) {
    even = m.sliceLast(x, 0, half);
    odd = m.sliceLast(x, half, half);
  } else {
    even = m.sliceLast(x, 0, half, 2);
    odd = m.sliceLast(x, 1, half, 2);
  }
  Value first = m.make<SubOp>(m.make<MulOp>(even, getCos()), m.make<MulOp>(odd, getSin()));
  Value second = m.make<AddOp>(m.make<MulOp>(even, getSin()), m.make<MulOp>(odd, getCos()));
  Value y;
  if (getPairing() == Pairing::half) {
    y = m.make<ConcatOp>(ValueRange{first, second}, last);
  } else {
    auto pair = dimsOf(tensorType(first));
    pair.push_back(m.dim(1));
    Value joined =
        m.make<ConcatOp>(ValueRange{m.reshape(first, pair), m.reshape(second, pair)}, last + 1);
    y = m.reshape(joined, dimsOf(tensorType(x)));
  }
  if (rest) y = m.make<ConcatOp>(ValueRange{y, rest}, last);
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> NormRopeOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Value y = normOf(m, Norm::rms, getX(), getGain(), {}, getEpsilon(), getRounding());
  return SmallVector<Value>{m.make<RopeOp>(y, getCos(), getSin(), getPairing())};
}

FailureOr<SmallVector<Value>> RopeAppendOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Value x = getX();
  if (getGain()) x = normOf(m, Norm::rms, x, getGain(), {}, getEpsilon(), getRounding());
  x = m.make<RopeOp>(x, getCos(), getSin(), getPairing());
  return SmallVector<Value>{m.make<UpdateOp>(getCache(), x, getPositions(), getAxis())};
}

}  // namespace lathe
