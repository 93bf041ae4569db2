// SPDX-License-Identifier: Apache-2.0
// Attention and rotary embeddings onto the dialect's own ops; linear attention step by step.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "frontend/onnx/convolved.h"
#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

// [b, s, heads * d] -> [b, heads, s, d]
Tensor splitHeads(Node& n, const Tensor& x, int64_t heads) {
  if (heads < 1) n.fail("expected the number of heads");
  const auto d = x.dim(2).dividedBy(Dim(heads));
  if (!d) n.fail(fmt::format("{} heads do not divide {}", heads, x.dim(2).text()));
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, *d}), {0, 2, 1, 3});
}
Tensor joinHeads(const Tensor& x) {
  const Tensor y = transpose(x, {0, 2, 1, 3});
  return reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
}
// Each head so many times in a row.
Tensor repeatHeads(const Tensor& x, const Dim& times) {
  if (times == Dim(1)) return x;
  const Dims s = x.shape();
  return reshape(broadcast(unsqueeze(x, 2), {s[0], s[1], times, s[2], s[3]}),
                 {s[0], s[1] * times, s[2], s[3]});
}

struct Masks {
  Causal causal = Causal::none;
  int64_t window = 0;
  Tensor visible;  // bool, stretches to [b, h, s, t]
  Tensor bias;     // added
};

// A mask that is shorter than the keys hides those behind its end.
Tensor maskToLength(Node& n, const Tensor& mask, const Dim& keys) {
  const Dim have = mask.dim(-1);
  if (have == keys || have == Dim(1)) return mask;
  const auto more = (keys - have).asConstant();
  if (!more || *more < 0) n.refuse("a mask whose length differs from that of the keys");
  Axes low(size_t(mask.rank()), 0), high = low;
  high.back() = *more;
  return pad(mask, mask.dtype() == DType::Bool ? like(mask, 0) : like(mask, -kInfinity), low, high);
}

Masks masksOf(Node& n, const Tensor& q, const Tensor& k, const Dim& past, bool hasPast) {
  Masks m;
  const Dim s = q.dim(2), t = k.dim(2);
  const bool isCausal = n.attribute("is_causal", 0), hasLengths = n.has(6);
  const int64_t left = n.attribute("left_window_size", -1);
  const int64_t right = n.attribute("right_window_size", -1);
  if (left < -1 || right < -1) n.fail("a window below -1");
  if (n.has(3)) {
    const Tensor mask = maskToLength(n, n.in(3), t);
    if (mask.dtype() == DType::Bool)
      m.visible = mask;
    else
      m.bias = as(mask, q.dtype());
  }
  auto require = [&](const Tensor& condition) {
    m.visible = m.visible.defined() ? logicalAnd(m.visible, condition) : condition;
  };
  // The op's own masks where they are the same, so that no mask is made.
  const bool isAligned = !hasPast || past + s == t;
  const bool named = isCausal && !hasLengths && isAligned && right < 0;
  if (named) {
    m.causal = hasPast ? Causal::bottom_right : Causal::top_left;
    m.window = left >= 0 ? left + 1 : 0;
  } else if (isCausal || left >= 0 || right >= 0) {
    // The place of query i among the keys: i + offset.
    Tensor place = iota(q, {s, 1}, 0), key = iota(q, {1, t}, 1);
    if (hasLengths)
      place = add(place, reshape(sub(n.in(6, DType::I64), n.sizeValue(s)), {q.dim(0), 1, 1, 1}));
    else if (hasPast)
      place = add(place, n.sizeValue(past));
    if (isCausal) require(compare(key, place, Compare::le));
    const Tensor back = sub(place, key);
    if (left >= 0) require(back <= double(left));
    if (right >= 0) require(back >= -double(right));
  }
  if (hasLengths) {
    const Tensor length = reshape(n.in(6, DType::I64), {q.dim(0), 1, 1, 1});
    require(compare(iota(q, {1, t}, 1), length, Compare::lt));
  }
  if (m.bias.defined() && m.visible.defined()) {
    m.bias = select(m.visible, m.bias, like(m.bias, -kInfinity));
    m.visible = {};
  }
  return m;
}

// What the scores are before, within and after the softmax: only where the model asks for them.
Tensor scoresOf(Node& n, const Tensor& q, const Tensor& k, Masks m, double scale, double softcap) {
  const int64_t mode = n.attribute("qk_matmul_output_mode", 0);
  const Dim groups = *q.dim(1).dividedBy(k.dim(1));
  const DType in = wide(q.dtype());
  const double root = std::sqrt(scale);
  const Tensor keys = as(repeatHeads(k, groups), in);
  Tensor y = matmul(as(q, in) * root, transpose(keys, {0, 1, 3, 2}) * root);
  if (mode == 0) return as(y, q.dtype());
  if (softcap > 0) y = tanh(y / softcap) * softcap;
  if (mode == 1) return as(y, q.dtype());
  const Tensor row = iota(q, {q.dim(2), 1}, 0), column = iota(q, {1, k.dim(2)}, 1);
  if (m.causal != Causal::none) {
    Tensor place = row;
    if (m.causal == Causal::bottom_right) place = add(row, n.sizeValue(k.dim(2) - q.dim(2)));
    Tensor sees = compare(column, place, Compare::le);
    if (m.window) sees = logicalAnd(sees, sub(place, column) < double(m.window));
    m.visible = m.visible.defined() ? logicalAnd(m.visible, sees) : sees;
  }
  if (m.bias.defined()) y = add(y, as(m.bias, in));
  if (m.visible.defined()) y = select(m.visible, y, like(y, -kInfinity));
  if (mode == 2) return as(y, q.dtype());
  fused::SoftmaxOptions options;
  options.maskedRow = MaskedRow::zero;
  if (m.bias.defined() || m.visible.defined()) {
    // A row is masked where its mask says so, not where its scores happen to be.
    Tensor hidden = m.bias.defined() ? m.bias == -kInfinity : logicalNot(m.visible);
    if (m.bias.defined() && m.visible.defined()) hidden = logicalOr(hidden, logicalNot(m.visible));
    options.mask = logicalNot(broadcasted(hidden, y.shape()));
  }
  return as(fused::softmax(y, 3, options), q.dtype());
}

void attention(Node& n) {
  n.expectOperands(3);
  Tensor q = n.in(0), k = n.in(1), v = n.in(2);
  const bool isFlat = q.rank() == 3;
  if (isFlat) {
    const int64_t heads = n.attribute("q_num_heads", 0), groups = n.attribute("kv_num_heads", 0);
    q = splitHeads(n, q, heads);
    k = splitHeads(n, k, groups);
    v = splitHeads(n, v, groups);
  }
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) n.fail("expected operands of rank 3 or 4");
  if (!q.dim(1).dividedBy(k.dim(1))) n.fail("the key heads do not divide the query heads");
  const auto depth = q.dim(3).asConstant();
  if (!depth && !n.hasAttribute("scale")) n.refuse("heads of symbolic size");
  double scale = n.real("scale", 0);
  if (!n.hasAttribute("scale")) scale = 1 / std::sqrt(double(*depth));
  const double softcap = n.real("softcap", 0);
  if (n.hasAttribute("softmax_precision")) {
    const DType asked = n.dtypeAttribute("softmax_precision", DType::F32);
    if (asked == DType::F64 && q.dtype() != DType::F64)
      n.refuse("attribute 'softmax_precision': f64 for operands that are not");
  }
  const bool hasPast = n.has(4);
  Dim past(0);
  if (hasPast) {
    const Tensor pastKeys = n.in(4);
    past = pastKeys.dim(2);
    k = concat({pastKeys, k}, 2);
    v = concat({n.in(5), v}, 2);
  }
  if (hasPast && n.has(6)) n.fail("past keys and lengths of padded keys exclude each other");
  const Masks m = masksOf(n, q, k, past, hasPast);
  fused::AttentionOptions options;
  options.mask = m.bias.defined() ? m.bias : m.visible;
  options.scale = scale;
  options.softcap = softcap;
  options.causal = m.causal;
  options.window = m.window;
  options.maskedRow = MaskedRow::zero;
  const Tensor y = fused::attention(q, k, v, options);
  n.set(0, isFlat ? joinHeads(y) : y);
  if (n.wants(1)) n.set(1, k);
  if (n.wants(2)) n.set(2, v);
  if (n.wants(3)) n.set(3, scoresOf(n, q, k, m, scale, softcap));
}

void rotary(Node& n) {
  n.expectOperands(3);
  Tensor x = n.in(0), cosines = n.in(1), sines = n.in(2);
  const bool isFlat = x.rank() == 3;
  if (isFlat) x = splitHeads(n, x, n.attribute("num_heads", 0));
  if (x.rank() != 4) n.fail("expected an operand of rank 3 or 4");
  if (n.has(3)) {
    cosines = gather(cosines, n.in(3), 0);
    sines = gather(sines, n.in(3), 0);
  }
  if (cosines.rank() != 3 || sines.rank() != 3) n.fail("expected tables [batch, sequence, angles]");
  cosines = unsqueeze(cosines, 1);
  sines = unsqueeze(sines, 1);
  const Pairing pairing = n.attribute("interleaved", 0) ? Pairing::interleaved : Pairing::half;
  const int64_t rotated = n.attribute("rotary_embedding_dim", 0);
  if (rotated && !(cosines.dim(-1) * 2 == Dim(rotated)))
    n.fail("the tables do not have half of rotary_embedding_dim angles");
  const Tensor y = fused::rope(x, cosines, sines, pairing);
  n.set(isFlat ? joinHeads(y) : y);
}

// A state [d, e] for each head: decays, takes k v^T in, and is read by q. Unrolled over the steps.
void linearAttention(Node& n) {
  const int64_t heads = n.attribute("q_num_heads", 0), groups = n.attribute("kv_num_heads", 0);
  const std::string rule = n.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta";
  const bool corrects = rule == "delta" || rule == "gated_delta";
  if (rule != "linear" && !decays && !corrects) n.refuse("attribute 'update_rule': got " + rule);
  if (decays != n.has(4) || corrects != n.has(5)) n.fail("operands do not fit update_rule " + rule);
  const DType dtype = n.in(0).dtype();
  const Tensor q = splitHeads(n, n.in(0, DType::F32), heads);
  const Tensor k = splitHeads(n, n.in(1, DType::F32), groups);
  const Tensor v = splitHeads(n, n.in(2, DType::F32), groups);
  const auto steps = q.dim(2).asConstant(), depth = q.dim(3).asConstant();
  if (!steps || *steps > 256 || !depth)
    n.refuse("a sequence of symbolic length or of more than 256 steps");
  const auto repeats = q.dim(1).dividedBy(k.dim(1));
  if (!repeats) n.fail("the key heads do not divide the query heads");
  double scale = n.real("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(double(*depth));
  auto perHead = [&](size_t i, bool perKey) {  // [b, heads or 1, t, 1 or d]
    const Tensor x = n.in(i, DType::F32);
    if (perKey && !(x.dim(2) == Dim(groups))) return splitHeads(n, x, groups);
    return unsqueeze(transpose(x, {0, 2, 1}), -1);
  };
  Tensor decay, beta;
  if (decays) decay = exp(perHead(4, true));
  if (corrects) beta = perHead(5, false);
  DType stateType = dtype;
  Tensor state = broadcasted(like(q, 0), {k.dim(0), k.dim(1), k.dim(3), v.dim(3)});
  if (n.has(3)) {
    stateType = n.in(3).dtype();
    state = n.in(3, DType::F32);
  }
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < *steps; ++i) {
    auto at = [&](const Tensor& x) { return sliceAxis(x, 2, i, 1); };  // [b, h, 1, d]
    const Tensor key = transpose(at(k), {0, 1, 3, 2});
    Tensor value = at(v);
    if (decays) state = mul(state, transpose(at(decay), {0, 1, 3, 2}));
    if (corrects) value = mul(at(beta), sub(value, matmul(at(k), state)));
    state = add(state, mul(key, value));
    rows.push_back(matmul(at(q), repeatHeads(state, *repeats)) * scale);
  }
  if (rows.empty()) n.refuse("a sequence without steps");
  n.set(0, as(joinHeads(rows.size() == 1 ? rows[0] : concat(rows, 2)), dtype));
  n.set(1, as(state, stateType));
}

// A depthwise convolution over the past and the present.
void causalConvolution(Node& n) {
  Tensor x = n.in(0);
  const Tensor w = n.in(1);
  const auto taps = w.rank() == 3 ? w.dim(2).asConstant() : std::nullopt;
  const auto channels = w.dim(0).asConstant();
  if (!taps || *taps < 1 || !channels) n.fail("expected a weight [channels, 1, taps]");
  x = n.has(3) ? concat({n.in(3), x}, 2) : zeroPadded(x, {0, 0, *taps - 1}, {0, 0, 0});
  Windows windows{.kernel = {*taps}, .strides = {1}, .dilations = {1}, .low = {0}, .high = {0}};
  Tensor y = convolved(n, x, w, windows, *channels);
  if (n.has(2)) y = add(y, alongChannels(n.in(2), 3));
  const std::string activation = n.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = mul(y, sigmoid(y));
  else if (activation != "none")
    n.refuse("attribute 'activation': got " + activation);
  n.set(0, y);
  if (n.wants(1)) n.set(1, sliceAxis(x, 2, x.dim(2) - Dim(*taps - 1), *taps - 1));
}

const Lowering kTable[] = {
    {"Attention",
     {"is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
      "right_window_size", "scale", "softcap", "softmax_precision"},
     attention,
     "softmax_precision f64 for other operands"},
    {"CausalConvWithState", {"activation"}, causalConvolution},
    {"LinearAttention",
     {"chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"},
     linearAttention,
     "symbolic lengths, more than 256 steps"},
    {"RotaryEmbedding", {"interleaved", "num_heads", "rotary_embedding_dim"}, rotary}};

}  // namespace

std::span<const Lowering> attentionLowerings() { return kTable; }

}  // namespace lathe::onnx
