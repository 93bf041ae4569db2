// SPDX-License-Identifier: Apache-2.0
// The meaning of every fused op, as the elementary ops it stands for; the norms and the rotary
// embedding are in decompose_norms.cpp.
#include "ir/op_builder.h"

using namespace mlir;

namespace lathe {
namespace {

Value softmaxOf(OpMaker& m, Value x, int64_t axis, MaskedRow policy) {
  Type element = tensorType(x).getElementType();
  Value top = m.make<ReduceMaxOp>(x, ArrayRef<int64_t>{axis}, true);
  Value empty;
  if (policy != MaskedRow::nan) {
    // -inf - (-inf) is NaN: shift a fully masked row by 0, so that its exponentials are 0.
    empty = m.compare(Compare::eq, top, m.scalar(element, -INFINITY));
    top = m.make<SelectOp>(empty, m.scalar(element, 0), top);
  }
  Value e = m.make<ExpOp>(m.make<SubOp>(x, top));
  if (policy == MaskedRow::uniform) e = m.make<SelectOp>(empty, m.scalar(element, 1), e);
  Value sum = m.make<ReduceSumOp>(e, ArrayRef<int64_t>{axis}, true);
  if (policy == MaskedRow::zero) sum = m.make<SelectOp>(empty, m.scalar(element, 1), sum);
  return m.make<DivOp>(e, sum);
}

// softcap * tanh(scale * x / softcap), without what is 1 or none.
Value capped(OpMaker& m, Value x, const APFloat& scale, const APFloat& softcap) {
  Type element = tensorType(x).getElementType();
  double factor = scale.convertToDouble(), cap = softcap.convertToDouble();
  if (factor != 1) x = m.make<MulOp>(x, m.scalar(element, factor));
  if (cap == 0) return x;
  Value t = m.make<TanhOp>(m.make<DivOp>(x, m.scalar(element, cap)));
  return m.make<MulOp>(t, m.scalar(element, cap));
}

// -inf where a boolean mask is false; a float mask is added.
Value masked(OpMaker& m, Value x, Value mask) {
  Type element = tensorType(x).getElementType();
  if (tensorType(mask).getElementType().isInteger(1))
    return m.make<SelectOp>(mask, x, m.scalar(element, -INFINITY));
  return m.make<AddOp>(x, m.cast(mask, element));
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
  Type element = tensorType(getX()).getElementType(), wide = computeType(element);
  Value x = capped(m, m.cast(getX(), wide), getScale(), getSoftcap());
  if (getMask()) x = masked(m, x, getMask());
  if (!isPlain()) {
    // What comes first is elementwise; the rest is the plain softmax.
    auto plain = m.make<SoftmaxOp>(x, Value(), getAxisAttr(), b.getF64FloatAttr(1),
                                   b.getF64FloatAttr(0), getMaskedRowAttr());
    return SmallVector<Value>{m.cast(plain, element)};
  }
  Value y = softmaxOf(m, x, int64_t(getAxis()), getMaskedRow());
  return SmallVector<Value>{m.cast(y, element)};
}

FailureOr<SmallVector<Value>> GluOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Type element = tensorType(getGate()).getElementType(), wide = computeType(element);
  Value active = activationOf(m, m.cast(getGate(), wide), getActivation());
  return SmallVector<Value>{m.cast(m.make<MulOp>(active, m.cast(getUp(), wide)), element)};
}

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  auto tq = tensorType(getQ()), tk = tensorType(getK());
  Type element = tq.getElementType(), wide = computeType(element), index = b.getI64Type();
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
  scores = capped(m, scores, getScale(), getSoftcap());
  auto dims = dimsOf(tensorType(scores));
  StringAttr queries = dims[rank - 2], keys = dims[rank - 1];
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
    scores = masked(m, scores, m.compare(Compare::le, j, i));
    if (int64_t window = int64_t(getWindow())) {
      Value first = m.make<SubOp>(i, m.scalar(index, double(window)));
      scores = masked(m, scores, m.compare(Compare::gt, j, first));
    }
  }
  if (getMask()) scores = masked(m, scores, getMask());
  Value p = softmaxOf(m, scores, rank - 1, getMaskedRow());
  return SmallVector<Value>{m.cast(m.make<MatmulOp>(p, v), element)};
}

FailureOr<SmallVector<Value>> PagedAttentionOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  // [blocks, g, m, d] by a table [b, n]: [b, n, g, m, d], then [b, g, n m, d].
  auto gathered = [&](Value blocks) {
    Value chosen = m.make<GatherOp>(blocks, getTable(), 0);
    auto d = dimsOf(tensorType(chosen));
    Value byHead = m.transpose(chosen, {0, 2, 1, 3, 4});
    return m.reshape(byHead, {d[0], d[2], m.dim(exprOf(d[1]) * exprOf(d[3])), d[4]});
  };
  Value keys = gathered(getK()), values = gathered(getV());
  auto causal = CausalAttr::get(b.getContext(), Causal::positions);
  return SmallVector<Value>{m.make<AttentionOp>(getQ(), keys, values, getMask(), getPositions(),
                                                getScaleAttr(), getSoftcapAttr(), causal,
                                                getWindowAttr(), getMaskedRowAttr())};
}

FailureOr<SmallVector<Value>> LinearOp::decompose(OpBuilder& b) {
  // Packed bytes have no elementary reading.
  if (getLayout() == WeightLayout::packed) return failure();
  OpMaker m(b, getLoc());
  Type element = tensorType(getX()).getElementType();
  const bool wide =
      getBias() || getResidual() || getUnrounded() || getActivation() != Activation::none;
  Type sum = wide ? computeType(element) : element;
  Value w = getLayout() == WeightLayout::out_in ? m.swapLastTwo(getW()) : Value(getW());
  Value x = getX();
  // A vector times a matrix: matmul wants rank 2.
  bool vector = tensorType(x).getRank() == 1;
  if (vector) x = m.reshape(x, {m.dim(1), dimOf(tensorType(x), 0)});
  Value y = m.make<MatmulOp>(m.cast(x, sum), m.cast(w, sum));
  if (vector) y = m.reshape(y, {dimOf(tensorType(y), 1)});
  if (getBias()) y = m.make<AddOp>(y, m.cast(getBias(), sum));
  y = activationOf(m, y, getActivation());
  if (getResidual()) y = m.make<AddOp>(y, m.cast(getResidual(), sum));
  return SmallVector<Value>{m.cast(y, tensorType(getY()).getElementType())};
}

FailureOr<SmallVector<Value>> GroupedLinearOp::decompose(OpBuilder& b) {
  // Packed bytes have no elementary reading.
  if (getLayout() == WeightLayout::packed) return failure();
  OpMaker m(b, getLoc());
  const bool outIn = getLayout() == WeightLayout::out_in;
  auto dims = dimsOf(tensorType(getX()));
  dims.insert(outIn ? dims.end() : dims.end() - 1, m.dim(1));
  // Unrounded in the width of the sums.
  const Type element = tensorType(getY()).getElementType();
  Value x = m.cast(m.reshape(getX(), dims), element);
  Value chosen = m.cast(m.make<GatherOp>(getW(), getIndices(), 0), element);
  Value y = outIn ? m.make<MatmulOp>(chosen, x) : m.make<MatmulOp>(x, chosen);
  return SmallVector<Value>{m.reshape(y, dimsOf(tensorType(getY())))};
}

FailureOr<SmallVector<Value>> EmbeddingOp::decompose(OpBuilder& b) {
  OpMaker m(b, getLoc());
  Value y = m.make<GatherOp>(getTable(), getIds(), 0);
  double scale = getScale().convertToDouble();
  if (scale == 1 && !getPositions()) return SmallVector<Value>{y};
  Type element = tensorType(y).getElementType(), wide = computeType(element);
  y = m.cast(y, wide);
  if (scale != 1) y = m.make<MulOp>(y, m.scalar(wide, scale));
  if (getPositions()) y = m.make<AddOp>(y, m.cast(getPositions(), wide));
  return SmallVector<Value>{m.cast(y, element)};
}

}  // namespace lathe
