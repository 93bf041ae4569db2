// SPDX-License-Identifier: Apache-2.0
#pragma once
// One builder function per op of the dialect (docs/ops.md has the pages). Every function records
// one op at the caller's line and throws Error there if the op's constraints do not hold. Negative
// axes count from the back.
#include <optional>
#include <utility>

#include "ir/tensor.h"

namespace lathe {

// --- elementwise; binary ops broadcast as NumPy does
// ------------------------------------------------
Tensor neg(const Tensor& x, LATHE_AT);
Tensor abs(const Tensor& x, LATHE_AT);
Tensor sign(const Tensor& x, LATHE_AT);
Tensor exp(const Tensor& x, LATHE_AT);
Tensor log(const Tensor& x, LATHE_AT);
Tensor sqrt(const Tensor& x, LATHE_AT);
Tensor rsqrt(const Tensor& x, LATHE_AT);
Tensor reciprocal(const Tensor& x, LATHE_AT);
Tensor sin(const Tensor& x, LATHE_AT);
Tensor cos(const Tensor& x, LATHE_AT);
Tensor tanh(const Tensor& x, LATHE_AT);
Tensor erf(const Tensor& x, LATHE_AT);
Tensor sigmoid(const Tensor& x, LATHE_AT);
Tensor floor(const Tensor& x, LATHE_AT);
Tensor ceil(const Tensor& x, LATHE_AT);
Tensor round(const Tensor& x, LATHE_AT);
Tensor logicalNot(const Tensor& x, LATHE_AT);
Tensor isNan(const Tensor& x, LATHE_AT);

Tensor add(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor sub(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor mul(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor div(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor max(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor min(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor pow(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor mod(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor logicalAnd(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor logicalOr(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor bitwiseAnd(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor bitwiseOr(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor bitwiseXor(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor shiftLeft(const Tensor& a, const Tensor& b, LATHE_AT);
Tensor shiftRight(const Tensor& a, const Tensor& b, LATHE_AT);

/// `predicate` is eq, ne, lt, le, gt or ge.
Tensor compare(const Tensor& a, const Tensor& b, std::string_view predicate, LATHE_AT);
Tensor select(const Tensor& condition, const Tensor& a, const Tensor& b, LATHE_AT);
Tensor cast(const Tensor& x, DType dtype, LATHE_AT);
Tensor bitcast(const Tensor& x, DType dtype, LATHE_AT);

/// A scalar of `like`'s dtype in the same graph.
Tensor scalarLike(const Tensor& like, double value, LATHE_AT);

// --- reductions
// -------------------------------------------------------------------------------------
/// At least one axis is named.
using Axes = std::vector<int64_t>;
Tensor reduceSum(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor reduceMean(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor reduceMax(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor reduceMin(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor reduceProd(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor reduceAny(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor reduceAll(const Tensor& x, Axes axes, bool keepDims = false, LATHE_AT);
Tensor argmax(const Tensor& x, int64_t axis, LATHE_AT);
Tensor argmin(const Tensor& x, int64_t axis, LATHE_AT);
Tensor cumsum(const Tensor& x, int64_t axis, LATHE_AT);
/// Values and i64 indices of the k largest along the last axis, descending.
std::pair<Tensor, Tensor> topK(const Tensor& x, int64_t k, LATHE_AT);

// --- shapes
// -----------------------------------------------------------------------------------------
Tensor transpose(const Tensor& x, Axes permutation, LATHE_AT);
/// Exchanges two axes.
Tensor swapAxes(const Tensor& x, int64_t a, int64_t b, LATHE_AT);
Tensor reshape(const Tensor& x, const Dims& shape, LATHE_AT);
Tensor broadcast(const Tensor& x, const Dims& shape, LATHE_AT);
Tensor slice(const Tensor& x, const Dims& starts, const Dims& sizes, Axes strides, LATHE_AT);
/// Elements start, start + stride, ... (`size` of them) of one axis.
Tensor sliceAxis(const Tensor& x, int64_t axis, const Dim& start, const Dim& size,
                 int64_t stride = 1, LATHE_AT);
Tensor concat(const std::vector<Tensor>& inputs, int64_t axis, LATHE_AT);
Tensor pad(const Tensor& x, const Tensor& value, Axes low, Axes high, LATHE_AT);
Tensor reverse(const Tensor& x, Axes axes, LATHE_AT);

// --- contractions
// -----------------------------------------------------------------------------------
/// [..., m, k] x [..., k, n]; leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, LATHE_AT);
/// [n, c, h, w] x [o, c, kh, kw]; padding is top, bottom, left, right.
Tensor convolution(const Tensor& x, const Tensor& w, Axes strides, Axes padding, LATHE_AT);

// --- indices
// ----------------------------------------------------------------------------------------
/// 0, 1, 2, ... along `axis`; `like` only names the graph.
Tensor iota(const Tensor& like, const Dims& shape, int64_t axis, DType dtype = DType::I64,
            LATHE_AT);
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, LATHE_AT);
Tensor update(const Tensor& x, const Tensor& value, const Tensor& positions, int64_t axis,
              LATHE_AT);
Tensor randomBits(const Tensor& seed, const Dims& shape, LATHE_AT);

// --- fused ops, for those who want them recorded directly
// ---------------------------------------------
namespace fused {
/// softmax(softcap * tanh(scale * x / softcap) + mask) over one axis.
struct SoftmaxOptions {
  std::string maskedRow = "nan";  ///< nan, zero, uniform
  double scale = 1;
  double softcap = 0;  ///< 0: none
  Tensor mask = {};    ///< i1 (true = visible) or an added float; optional
};
Tensor softmax(const Tensor& x, int64_t axis, const SoftmaxOptions& options = {}, LATHE_AT);
/// `rounding` is after_gain or before_gain; the gain is optional.
Tensor rmsNorm(const Tensor& x, const Tensor& gain, double epsilon,
               std::string_view rounding = "after_gain", LATHE_AT);
/// Gain and bias are optional.
Tensor layerNorm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon, LATHE_AT);
struct AddNormOptions {
  std::string norm = "rms";             ///< rms, layer
  std::string rounding = "after_gain";  ///< of the rms norm: after_gain, before_gain
  double epsilon = 1e-5;
  Tensor gain = {}, bias = {};
};
/// The sum x + residual, and its norm.
std::pair<Tensor, Tensor> addNorm(const Tensor& x, const Tensor& residual,
                                  const AddNormOptions& options, LATHE_AT);
/// norm(x) * (1 + scale) + shift; `norm` is layer or rms.
Tensor adalnModulate(const Tensor& x, const Tensor& shift, const Tensor& scale, double epsilon,
                     std::string_view norm = "layer", LATHE_AT);
/// x + gate * f
Tensor gatedResidual(const Tensor& x, const Tensor& gate, const Tensor& f, LATHE_AT);
/// `pairing` is interleaved or half; tables of fewer than d/2 angles rotate the first elements.
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, std::string_view pairing,
            LATHE_AT);
struct NormRopeOptions {
  std::string pairing = "half";         ///< half, interleaved
  std::string rounding = "after_gain";  ///< after_gain, before_gain
  double epsilon = 1e-6;
};
/// rope(rms_norm(x))
Tensor normRope(const Tensor& x, const Tensor& gain, const Tensor& cos, const Tensor& sin,
                const NormRopeOptions& options = {}, LATHE_AT);
/// The cache with rope(x) written along `axis` at positions[batch]; normed first if a gain is
/// given.
Tensor ropeAppend(const Tensor& cache, const Tensor& x, const Tensor& gain, const Tensor& cos,
                  const Tensor& sin, const Tensor& positions, int64_t axis,
                  const NormRopeOptions& options = {}, LATHE_AT);
/// `activation` is silu, gelu, gelu_tanh, relu or none.
Tensor siluGate(const Tensor& gate, const Tensor& up, std::string_view activation = "silu",
                LATHE_AT);

struct AttentionOptions {
  double scale = 1;
  double softcap = 0;             ///< 0: none
  Tensor mask = {};               ///< i1 (true = visible) or an added float; optional
  Tensor positions = {};          ///< [batch]; with causal = "positions"
  std::string causal = "none";    ///< none, top_left, bottom_right, positions
  int64_t window = 0;             ///< keys that a query sees, itself included; 0: all
  std::string maskedRow = "nan";  ///< nan, zero, uniform
};
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 LATHE_AT);
struct LinearOptions {
  Tensor bias = {}, residual = {};
  std::string activation = "none";  ///< none, silu, gelu, gelu_tanh, relu
  std::string layout = "out_in";    ///< out_in, in_out
};
Tensor linear(const Tensor& x, const Tensor& w, const LinearOptions& options = {}, LATHE_AT);
struct EmbeddingOptions {
  Tensor positions = {};  ///< added rows; optional
  double scale = 1;       ///< of the table's rows
};
Tensor embedding(const Tensor& ids, const Tensor& table, const EmbeddingOptions& options = {},
                 LATHE_AT);
}  // namespace fused

// --- operators
// --------------------------------------------------------------------------------------
/// A tensor operand together with the caller's line: operators cannot have default arguments.
struct Operand {
  Operand(const Tensor& tensor, LATHE_AT) : tensor(tensor), at(at) {}
  Tensor tensor;
  std::source_location at;
};
inline Tensor operator+(const Operand& a, const Tensor& b) { return add(a.tensor, b, a.at); }
inline Tensor operator-(const Operand& a, const Tensor& b) { return sub(a.tensor, b, a.at); }
inline Tensor operator*(const Operand& a, const Tensor& b) { return mul(a.tensor, b, a.at); }
inline Tensor operator/(const Operand& a, const Tensor& b) { return div(a.tensor, b, a.at); }
inline Tensor operator-(const Operand& x) { return neg(x.tensor, x.at); }
inline Tensor operator+(const Operand& a, double b) {
  return add(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator-(const Operand& a, double b) {
  return sub(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator*(const Operand& a, double b) {
  return mul(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator/(const Operand& a, double b) {
  return div(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator+(double a, const Operand& b) {
  return add(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}
inline Tensor operator-(double a, const Operand& b) {
  return sub(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}
inline Tensor operator*(double a, const Operand& b) {
  return mul(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}
inline Tensor operator/(double a, const Operand& b) {
  return div(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}

}  // namespace lathe
