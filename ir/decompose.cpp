// SPDX-License-Identifier: Apache-2.0
// The meaning of every fused op, as the elementary ops it stands for.
#include "ir/op_builder.h"

using namespace mlir;

namespace lathe {
namespace {

// Fused ops compute in f32, or in f64 when the operands are.
Type computeType(Type element, OpBuilder& b) { return element.isF64() ? element : b.getF32Type(); }

Value softmaxOf(OpMaker& m, Value x, int64_t axis, MaskedRow policy) {
  Type element = tensorType(x).getElementType();
  Value top = m.make<ReduceMaxOp>(x, ArrayRef<int64_t>{axis}, true);
  Value empty;
  if (policy != MaskedRow::nan) {
    // -inf - (-inf) is NaN: shift a fully masked row by 0, so that its exponentials are 0.
    empty = m.compare(Predicate::eq, top, m.scalar(element, -INFINITY));
    top = m.make<SelectOp>(empty, m.scalar(element, 0), top);
  }
  Value e = m.make<ExpOp>(m.make<SubOp>(x, top));
  if (policy == MaskedRow::uniform) e = m.make<SelectOp>(empty, m.scalar(element, 1), e);
  Value sum = m.make<ReduceSumOp>(e, ArrayRef<int64_t>{axis}, true);
  if (policy == MaskedRow::zero) sum = m.make<SelectOp>(empty, m.scalar(element, 1), sum);
  return m.make<DivOp>(e, sum);
}

Value activationOf(OpMaker& m, Value x, Activation kind) {
  Type element = tensorType(x).getElementType();
  auto c = [&](double v) { return m.scalar(element, v); };
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::silu:
      return m.make<MulOp>(x, m.make<SigmoidOp>(x));
    case Activation::relu:
      return m.make<MaxOp>(x, c(0));
    case Activation::gelu: {
      Value erf = m.make<ErfOp>(m.make<MulOp>(x, c(M_SQRT1_2)));
      return m.make<MulOp>(m.make<MulOp>(x, c(0.5)), m.make<AddOp>(erf, c(1)));
    }
    case Activation::gelu_tanh: {
      // Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
      Value cube = m.make<MulOp>(m.make<MulOp>(x, x), x);
      Value inner = m.make<AddOp>(x, m.make<MulOp>(cube, c(0.044715)));
      Value t = m.make<TanhOp>(m.make<MulOp>(inner, c(std::sqrt(2 / M_PI))));
      return m.make<MulOp>(m.make<MulOp>(x, c(0.5)), m.make<AddOp>(t, c(1)));
    }
  }
  return x;
}

}  // namespace

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Type element = tensorType(getX()).getElementType();
  Value y =
      softmaxOf(m, m.cast(getX(), computeType(element, b)), int64_t(getAxis()), getMaskedRow());
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  auto type = tensorType(getX());
  Type element = type.getElementType(), wide = computeType(element, b);
  Value x = m.cast(getX(), wide);
  Value mean =
      m.make<ReduceMeanOp>(m.make<MulOp>(x, x), ArrayRef<int64_t>{type.getRank() - 1}, true);
  Value inverse =
      m.make<RsqrtOp>(m.make<AddOp>(mean, m.scalar(wide, getEpsilon().convertToDouble())));
  Value y = m.make<MulOp>(x, inverse);
  if (getRounding() == GainRounding::before_gain)
    return SmallVector<Value>{m.make<MulOp>(m.cast(y, element), getGain())};
  return SmallVector<Value>{m.cast(m.make<MulOp>(y, m.cast(getGain(), wide)), element)};
}

FailureOr<SmallVector<Value>> RopeOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  auto type = tensorType(getX());
  Type element = type.getElementType(), wide = tensorType(getCos()).getElementType();
  int64_t last = type.getRank() - 1, half = type.getDimSize(last) / 2;
  Value x = m.cast(getX(), wide), even, odd;
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
    y = m.reshape(joined, dimsOf(type));
  }
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> SiluGateOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Type element = tensorType(getGate()).getElementType(), wide = computeType(element, b);
  Value active = activationOf(m, m.cast(getGate(), wide), getActivation());
  return SmallVector<Value>{m.cast(m.make<MulOp>(active, m.cast(getUp(), wide)), element)};
}

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  auto tq = tensorType(getQ()), tk = tensorType(getK());
  Type element = tq.getElementType(), wide = computeType(element, b), index = b.getI64Type();
  int64_t rank = tq.getRank();
  Value q = m.cast(getQ(), wide), k = m.cast(getK(), wide), v = m.cast(getV(), wide);
  if (rank == 4 && dimOf(tq, 1) != dimOf(tk, 1)) {
    // Query head i reads key head i / group: repeat every key head `group` times in a row.
    int64_t group = tq.getDimSize(1) / tk.getDimSize(1);
    auto repeat = [&](Value t) {
      auto d = dimsOf(tensorType(t));
      Value wideHeads = m.reshape(t, {d[0], d[1], m.dim(1), d[2], d[3]});
      Value copies = m.broadcast(wideHeads, {d[0], d[1], m.dim(group), d[2], d[3]});
      return m.reshape(copies, {d[0], dimOf(tq, 1), d[2], d[3]});
    };
    k = repeat(k);
    v = repeat(v);
  }
  Value scores = m.make<MatmulOp>(q, m.swapLastTwo(k));
  scores = m.make<MulOp>(scores, m.scalar(wide, getScale().convertToDouble()));
  auto dims = dimsOf(tensorType(scores));
  StringAttr queries = dims[rank - 2], keys = dims[rank - 1];
  Value lowest = m.scalar(wide, -INFINITY);
  if (getCausal() != Causal::none) {
    Value i = m.iota({queries, m.dim(1)}, 0, index), j = m.iota({m.dim(1), keys}, 1, index);
    if (getCausal() == Causal::positions) {
      SmallVector<StringAttr> column(rank, m.dim(1));
      column[0] = dims[0];
      i = m.make<AddOp>(m.reshape(m.cast(getPositions(), index), column), i);
    } else if (getCausal() == Causal::bottom_right) {
      // keys - queries, from the sizes: the last elements of two ramps.
      auto sizeOfDim = [&](StringAttr d) -> Value {
        return m.make<ReduceSumOp>(
            m.make<AddOp>(m.make<MulOp>(m.iota({d}, 0, index), m.scalar(index, 0)),
                          m.scalar(index, 1)),
            ArrayRef<int64_t>{0}, false);
      };
      i = m.make<AddOp>(i, m.make<SubOp>(sizeOfDim(keys), sizeOfDim(queries)));
    }
    scores = m.make<SelectOp>(m.compare(Predicate::le, j, i), scores, lowest);
  }
  if (Value mask = getMask()) {
    if (tensorType(mask).getElementType().isInteger(1))
      scores = m.make<SelectOp>(mask, scores, lowest);
    else
      scores = m.make<AddOp>(scores, m.cast(mask, wide));
  }
  Value p = softmaxOf(m, scores, rank - 1, getMaskedRow());
  return SmallVector<Value>{m.cast(m.make<MatmulOp>(p, v), element)};
}

FailureOr<SmallVector<Value>> LinearOp::decompose(OpBuilder& b) {
  // Packed bytes have no elementary reading.
  if (getLayout() == WeightLayout::packed) return failure();
  OpMaker m(b, getLoc());
  Type element = tensorType(getX()).getElementType();
  bool wide = getBias() || getResidual();
  Type sum = wide ? computeType(element, b) : element;
  Value w = getLayout() == WeightLayout::out_in ? m.swapLastTwo(getW()) : Value(getW());
  Value x = getX();
  // A vector times a matrix: matmul wants rank 2.
  bool vector = tensorType(x).getRank() == 1;
  if (vector) x = m.reshape(x, {m.dim(1), dimOf(tensorType(x), 0)});
  Value y = m.make<MatmulOp>(m.cast(x, sum), m.cast(w, sum));
  if (vector) y = m.reshape(y, {dimOf(tensorType(y), 1)});
  if (getBias()) y = m.make<AddOp>(y, m.cast(getBias(), sum));
  if (getResidual()) y = m.make<AddOp>(y, m.cast(getResidual(), sum));
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> EmbeddingOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  return SmallVector<Value>{m.make<GatherOp>(getTable(), getIds(), 0)};
}

}  // namespace lathe
