// SPDX-License-Identifier: Apache-2.0
#include "ir/ops.h"

#include <algorithm>
#include <cmath>

#include "runtime/error.h"

namespace lathe {
namespace {

using Attributes = std::vector<NamedAttr>;

// The first `required` operands must be there; the others are optional.
Tensor record(std::string_view op, const std::vector<Tensor>& operands,
              const Attributes& attributes, std::source_location at, size_t required = size_t(-1)) {
  for (size_t i = 0; i < std::min(required, operands.size()); ++i)
    if (!operands[i].defined())
      throw Error(ErrorCode::InvalidArgument,
                  std::string(op) + ": expected a tensor, got an empty handle as operand " +
                      std::to_string(i) + "; was it moved or never assigned?",
                  at);
  return operands.at(0).recorder(at)->emit(op, operands, attributes, at);
}

int64_t axisOf(const Tensor& x, int64_t axis, std::source_location at) {
  Recorder* recorder = x.recorder(at);
  if (!recorder) return axis;
  recorder->expectValue(x.id(), at);
  return recorder->axisFromFront(x.id(), axis);
}
Axes axesOf(const Tensor& x, Axes axes, std::source_location at) {
  for (int64_t& a : axes) a = axisOf(x, a, at);
  return axes;
}
// Reducing nothing is what nobody means: PyTorch reduces all axes then.
void expectAxes(std::string_view op, const Axes& axes, std::source_location at) {
  if (axes.empty())
    throw Error(ErrorCode::InvalidArgument,
                std::string(op) + ": no axes are given; name them, or all axes of x for a scalar",
                at);
}
void expectFinite(std::string_view op, std::string_view what, double value,
                  std::source_location at) {
  if (!std::isfinite(value))
    throw Error(
        ErrorCode::InvalidArgument,
        std::string(op) + ": expected a finite " + std::string(what) + ", got " + numberText(value),
        at);
}
Recorder& recorderOf(const Tensor& like, const char* what, std::source_location at) {
  Recorder* recorder = like.recorder(at);
  if (!recorder)
    throw Error(ErrorCode::InvalidArgument,
                std::string(what) +
                    ": expected a tensor, got an empty handle; was it moved or never "
                    "assigned?",
                at);
  recorder->expectValue(like.id(), at);
  return *recorder;
}

}  // namespace

#define LATHE_UNARY(function, op) \
  Tensor function(const Tensor& x, std::source_location at) { return record(op, {x}, {}, at); }
LATHE_UNARY(neg, "lathe.neg")
LATHE_UNARY(abs, "lathe.abs")
LATHE_UNARY(sign, "lathe.sign")
LATHE_UNARY(exp, "lathe.exp")
LATHE_UNARY(log, "lathe.log")
LATHE_UNARY(sqrt, "lathe.sqrt")
LATHE_UNARY(rsqrt, "lathe.rsqrt")
LATHE_UNARY(reciprocal, "lathe.reciprocal")
LATHE_UNARY(sin, "lathe.sin")
LATHE_UNARY(cos, "lathe.cos")
LATHE_UNARY(tanh, "lathe.tanh")
LATHE_UNARY(erf, "lathe.erf")
LATHE_UNARY(sigmoid, "lathe.sigmoid")
LATHE_UNARY(floor, "lathe.floor")
LATHE_UNARY(ceil, "lathe.ceil")
LATHE_UNARY(round, "lathe.round")
LATHE_UNARY(logicalNot, "lathe.logical_not")
LATHE_UNARY(isNan, "lathe.is_nan")
#undef LATHE_UNARY

#define LATHE_BINARY(function, op)                                             \
  Tensor function(const Tensor& a, const Tensor& b, std::source_location at) { \
    return record(op, {a, b}, {}, at);                                         \
  }
LATHE_BINARY(add, "lathe.add")
LATHE_BINARY(sub, "lathe.sub")
LATHE_BINARY(mul, "lathe.mul")
LATHE_BINARY(div, "lathe.div")
LATHE_BINARY(max, "lathe.max")
LATHE_BINARY(min, "lathe.min")
LATHE_BINARY(pow, "lathe.pow")
LATHE_BINARY(mod, "lathe.mod")
LATHE_BINARY(logicalAnd, "lathe.logical_and")
LATHE_BINARY(logicalOr, "lathe.logical_or")
LATHE_BINARY(bitwiseAnd, "lathe.bitwise_and")
LATHE_BINARY(bitwiseOr, "lathe.bitwise_or")
LATHE_BINARY(bitwiseXor, "lathe.bitwise_xor")
LATHE_BINARY(shiftLeft, "lathe.shift_left")
LATHE_BINARY(shiftRight, "lathe.shift_right")
LATHE_BINARY(matmul, "lathe.matmul")
#undef LATHE_BINARY

Tensor compare(const Tensor& a, const Tensor& b, std::string_view predicate,
               std::source_location at) {
  return record("lathe.compare", {a, b},
                {{"predicate", Keyword{"predicate", std::string(predicate)}}}, at);
}
Tensor select(const Tensor& condition, const Tensor& a, const Tensor& b, std::source_location at) {
  return record("lathe.select", {condition, a, b}, {}, at);
}
Tensor cast(const Tensor& x, DType dtype, std::source_location at) {
  return record("lathe.cast", {x}, {{"dtype", dtype}}, at);
}
Tensor bitcast(const Tensor& x, DType dtype, std::source_location at) {
  return record("lathe.bitcast", {x}, {{"dtype", dtype}}, at);
}
Tensor scalarLike(const Tensor& like, double value, std::source_location at) {
  return recorderOf(like, "scalarLike", at).scalar(value, like.id(), at);
}

#define LATHE_REDUCE(function, op)                                                        \
  Tensor function(const Tensor& x, Axes axes, bool keepDims, std::source_location at) {   \
    expectAxes(op, axes, at);                                                             \
    return record(op, {x}, {{"axes", axesOf(x, axes, at)}, {"keep_dims", keepDims}}, at); \
  }
LATHE_REDUCE(reduceSum, "lathe.reduce_sum")
LATHE_REDUCE(reduceMean, "lathe.reduce_mean")
LATHE_REDUCE(reduceMax, "lathe.reduce_max")
LATHE_REDUCE(reduceMin, "lathe.reduce_min")
LATHE_REDUCE(reduceProd, "lathe.reduce_prod")
LATHE_REDUCE(reduceAny, "lathe.reduce_any")
LATHE_REDUCE(reduceAll, "lathe.reduce_all")
#undef LATHE_REDUCE

#define LATHE_AXIS_OP(function, op)                                         \
  Tensor function(const Tensor& x, int64_t axis, std::source_location at) { \
    return record(op, {x}, {{"axis", axisOf(x, axis, at)}}, at);            \
  }
LATHE_AXIS_OP(argmax, "lathe.argmax")
LATHE_AXIS_OP(argmin, "lathe.argmin")
LATHE_AXIS_OP(cumsum, "lathe.cumsum")
#undef LATHE_AXIS_OP

std::pair<Tensor, Tensor> topK(const Tensor& x, int64_t k, std::source_location at) {
  Tensor values = record("lathe.top_k", {x}, {{"k", k}}, at);
  return {values, Tensor(values.recorder(), values.id() + 1)};
}

Tensor transpose(const Tensor& x, Axes permutation, std::source_location at) {
  return record("lathe.transpose", {x}, {{"permutation", axesOf(x, permutation, at)}}, at);
}
Tensor swapAxes(const Tensor& x, int64_t a, int64_t b, std::source_location at) {
  int64_t rank = x.rank(at);
  Axes permutation;
  for (int64_t i = 0; i < rank; ++i) permutation.push_back(i);
  if (a < -rank || b < -rank || a >= rank || b >= rank)
    throw Error(ErrorCode::InvalidArgument,
                "swapAxes: axes " + std::to_string(a) + " and " + std::to_string(b) +
                    " are not both inside rank " + std::to_string(rank),
                at);
  std::swap(permutation[size_t(a < 0 ? a + rank : a)], permutation[size_t(b < 0 ? b + rank : b)]);
  return transpose(x, permutation, at);
}
Tensor reshape(const Tensor& x, const Dims& shape, std::source_location at) {
  return record("lathe.reshape", {x}, {{"shape", shape}}, at);
}
Tensor broadcast(const Tensor& x, const Dims& shape, std::source_location at) {
  return record("lathe.broadcast", {x}, {{"shape", shape}}, at);
}
Tensor slice(const Tensor& x, const Dims& starts, const Dims& sizes, Axes strides,
             std::source_location at) {
  return record("lathe.slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"strides", strides}},
                at);
}
Tensor sliceAxis(const Tensor& x, int64_t axis, const Dim& start, const Dim& size, int64_t stride,
                 std::source_location at) {
  Dims sizes = x.shape(at), starts(sizes.size(), Dim(0));
  Axes strides(sizes.size(), 1);
  int64_t i = axisOf(x, axis, at);
  if (i < 0 || i >= int64_t(sizes.size()))
    throw Error(ErrorCode::InvalidArgument,
                "sliceAxis: axis " + std::to_string(axis) + " is outside rank " +
                    std::to_string(sizes.size()),
                at);
  starts[size_t(i)] = start;
  sizes[size_t(i)] = size;
  strides[size_t(i)] = stride;
  return slice(x, starts, sizes, strides, at);
}
Tensor concat(const std::vector<Tensor>& inputs, int64_t axis, std::source_location at) {
  if (inputs.empty()) throw Error(ErrorCode::InvalidArgument, "concat of nothing", at);
  return record("lathe.concat", inputs, {{"axis", axisOf(inputs[0], axis, at)}}, at);
}
Tensor pad(const Tensor& x, const Tensor& value, Axes low, Axes high, std::source_location at) {
  return record("lathe.pad", {x, value}, {{"low", low}, {"high", high}}, at);
}
Tensor reverse(const Tensor& x, Axes axes, std::source_location at) {
  return record("lathe.reverse", {x}, {{"axes", axesOf(x, axes, at)}}, at);
}
Tensor convolution(const Tensor& x, const Tensor& w, Axes strides, Axes padding,
                   std::source_location at) {
  return record("lathe.convolution", {x, w}, {{"strides", strides}, {"padding", padding}}, at);
}

Tensor iota(const Tensor& like, const Dims& shape, int64_t axis, DType dtype,
            std::source_location at) {
  return recorderOf(like, "iota", at)
      .emit("lathe.iota", {}, {{"shape", shape}, {"axis", axis}, {"dtype", dtype}}, at);
}
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, std::source_location at) {
  return record("lathe.gather", {x, indices}, {{"axis", axisOf(x, axis, at)}}, at);
}
Tensor update(const Tensor& x, const Tensor& value, const Tensor& positions, int64_t axis,
              std::source_location at) {
  return record("lathe.update", {x, value, positions}, {{"axis", axisOf(x, axis, at)}}, at);
}
Tensor randomBits(const Tensor& seed, const Dims& shape, std::source_location at) {
  return record("lathe.random_bits", {seed}, {{"shape", shape}}, at);
}

namespace fused {

Tensor softmax(const Tensor& x, int64_t axis, const SoftmaxOptions& options,
               std::source_location at) {
  return record("lathe.softmax", {x, options.mask},
                {{"axis", axisOf(x, axis, at)},
                 {"scale", options.scale},
                 {"softcap", options.softcap},
                 {"masked_row", Keyword{"masked_row", options.maskedRow}}},
                at, 1);
}
static NamedAttr roundingAttr(std::string_view rounding) {
  return {"rounding", Keyword{"rounding", std::string(rounding)}};
}
static NamedAttr pairingAttr(std::string_view pairing) {
  return {"pairing", Keyword{"pairing", std::string(pairing)}};
}
static NamedAttr normAttr(std::string_view norm) {
  return {"norm", Keyword{"norm", std::string(norm)}};
}
Tensor rmsNorm(const Tensor& x, const Tensor& gain, double epsilon, std::string_view rounding,
               std::source_location at) {
  return record("lathe.rms_norm", {x, gain}, {{"epsilon", epsilon}, roundingAttr(rounding)}, at, 1);
}
Tensor layerNorm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon,
                 std::source_location at) {
  return record("lathe.layer_norm", {x, gain, bias}, {{"epsilon", epsilon}}, at, 1);
}
std::pair<Tensor, Tensor> addNorm(const Tensor& x, const Tensor& residual,
                                  const AddNormOptions& options, std::source_location at) {
  Tensor sum =
      record("lathe.add_norm", {x, residual, options.gain, options.bias},
             {normAttr(options.norm), {"epsilon", options.epsilon}, roundingAttr(options.rounding)},
             at, 2);
  return {sum, Tensor(sum.recorder(), sum.id() + 1)};
}
Tensor adalnModulate(const Tensor& x, const Tensor& shift, const Tensor& scale, double epsilon,
                     std::string_view norm, std::source_location at) {
  return record("lathe.adaln_modulate", {x, shift, scale}, {normAttr(norm), {"epsilon", epsilon}},
                at);
}
Tensor gatedResidual(const Tensor& x, const Tensor& gate, const Tensor& f,
                     std::source_location at) {
  return record("lathe.gated_residual", {x, gate, f}, {}, at);
}
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, std::string_view pairing,
            std::source_location at) {
  return record("lathe.rope", {x, cos, sin}, {pairingAttr(pairing)}, at);
}
Tensor normRope(const Tensor& x, const Tensor& gain, const Tensor& cos, const Tensor& sin,
                const NormRopeOptions& options, std::source_location at) {
  return record(
      "lathe.norm_rope", {x, gain, cos, sin},
      {pairingAttr(options.pairing), {"epsilon", options.epsilon}, roundingAttr(options.rounding)},
      at);
}
Tensor ropeAppend(const Tensor& cache, const Tensor& x, const Tensor& gain, const Tensor& cos,
                  const Tensor& sin, const Tensor& positions, int64_t axis,
                  const NormRopeOptions& options, std::source_location at) {
  for (const Tensor& t : {cos, sin, positions})
    if (!t.defined())
      throw Error(ErrorCode::InvalidArgument,
                  "lathe.rope_append: expected tables and positions, got an empty handle", at);
  return record("lathe.rope_append", {cache, x, gain, cos, sin, positions},
                {{"axis", axisOf(cache, axis, at)},
                 pairingAttr(options.pairing),
                 {"epsilon", options.epsilon},
                 roundingAttr(options.rounding)},
                at, 2);
}
Tensor siluGate(const Tensor& gate, const Tensor& up, std::string_view activation,
                std::source_location at) {
  return record("lathe.silu_gate", {gate, up},
                {{"activation", Keyword{"activation", std::string(activation)}}}, at);
}
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 std::source_location at) {
  expectFinite("lathe.attention", "scale", options.scale, at);
  return record("lathe.attention", {q, k, v, options.mask, options.positions},
                {{"scale", options.scale},
                 {"softcap", options.softcap},
                 {"causal", Keyword{"causal", options.causal}},
                 {"window", options.window},
                 {"masked_row", Keyword{"masked_row", options.maskedRow}}},
                at, 3);
}
Tensor linear(const Tensor& x, const Tensor& w, const LinearOptions& options,
              std::source_location at) {
  return record("lathe.linear", {x, w, options.bias, options.residual},
                {{"activation", Keyword{"activation", options.activation}},
                 {"layout", Keyword{"weight_layout", options.layout}}},
                at, 2);
}
Tensor embedding(const Tensor& ids, const Tensor& table, const EmbeddingOptions& options,
                 std::source_location at) {
  expectFinite("lathe.embedding", "scale", options.scale, at);
  return record("lathe.embedding", {ids, table, options.positions}, {{"scale", options.scale}}, at,
                2);
}

}  // namespace fused
}  // namespace lathe
