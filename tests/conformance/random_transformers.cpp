// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/random_transformers.h"

#include <cmath>
#include <random>

#include "lathe/ir/ops.h"

namespace lathe::conformance {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed), g_("random_transformer") {}

  Graph make() {
    batch_ = coin() ? g_.dim("batch", 1, 3) : Dim(number(1, 2));
    seq_ = coin() ? g_.dim("seq", 2, 9) : Dim(number(2, 6));
    heads_ = number(1, 4);
    groups_ = heads_ % 2 == 0 && coin() ? heads_ / 2 : (rarely() ? 1 : heads_);
    depth_ = 2 * number(2, 4);
    width_ = heads_ * depth_;
    wide_ = coin() ? DType::F32 : DType::BF16;
    g_.entry("forward");
    Tensor x = start();
    const int64_t layers = number(1, 2);
    for (int64_t i = 0; i < layers; ++i) x = layer(x);
    finish(x);
    return std::move(g_);
  }

 private:
  int64_t number(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
  bool coin() { return number(0, 1) != 0; }
  bool rarely() { return number(0, 9) == 0; }
  // A mistake that makes a near miss; a graph has few of them.
  bool wrong() { return number(0, 24) == 0; }

  Tensor weight(const std::string& name, const Shape& shape) {
    return g_.weight("w" + std::to_string(weights_++) + "." + name, wide_, shape);
  }
  Tensor f32(const Tensor& x) { return x.dtype() == DType::F32 ? x : cast(x, DType::F32); }
  Tensor own(const Tensor& x) { return x.dtype() == wide_ ? x : cast(x, wide_); }
  Tensor keep(const Tensor& t) {
    if (number(0, 40) == 0 && outputs_ < 3) g_.output("seen" + std::to_string(outputs_++), t);
    return t;
  }
  Tensor plus(const Tensor& a, const Tensor& b) { return coin() ? a + b : b + a; }
  Tensor times(const Tensor& a, const Tensor& b) { return coin() ? a * b : b * a; }

  Tensor start() {
    if (coin()) return g_.input("x", wide_, {batch_, seq_, width_});
    const int64_t vocabulary = 11;
    Tensor ids = g_.input("ids", coin() ? DType::I64 : DType::I32, {batch_, seq_});
    table_ = g_.weight("table", wide_, {vocabulary, width_});
    Tensor x = gather(table_, ids, 0);
    if (coin()) x = x * std::sqrt(double(width_));
    if (coin()) {
      Tensor positions = g_.weight("positions", wide_, {16, width_});
      x = plus(x, gather(positions, iota(x, {seq_}, 0), 0));
    }
    return x;
  }

  // --- norms
  Tensor mean(const Tensor& x) {
    const Axes axes{wrong() ? x.rank() - 2 : x.rank() - 1};
    const double size = double(width(x));
    switch (number(0, 2)) {
      case 0:
        return reduceMean(x, axes, true);
      case 1:
        return reduceSum(x, axes, true) / size;
      default:
        return reduceSum(x, axes, true) * (1 / size);
    }
  }
  static int64_t width(const Tensor& x) { return *x.dim(-1).asConstant(); }
  Tensor square(const Tensor& x) { return coin() ? x * x : pow(x, scalarLike(x, wrong() ? 4 : 2)); }
  Tensor divideByRoot(const Tensor& x, const Tensor& squares) {
    Tensor m = mean(squares);
    Tensor shifted = coin() ? m + 1e-5 : 1e-5 + m;
    switch (number(0, 3)) {
      case 0:
        return times(x, rsqrt(shifted));
      case 1:
        return x / sqrt(shifted);
      case 2:
        return times(x, reciprocal(sqrt(shifted)));
      default:
        return times(x, 1.0 / sqrt(shifted));
    }
  }
  // Without gain.
  Tensor normalized(const Tensor& x, bool layerNorm) {
    if (!layerNorm) return divideByRoot(x, square(x));
    if (wrong()) {  // E[x^2] - E[x]^2 is no layer norm of ours
      Tensor m = mean(x);
      return (x - m) * rsqrt(abs(mean(square(x)) - m * m) + 1.0);
    }
    Tensor centered = x - mean(x);
    return divideByRoot(centered, square(centered));
  }
  Tensor norm(const Tensor& x) {
    const bool layerNorm = coin();
    const int64_t n = width(x);
    Tensor y = keep(normalized(f32(x), layerNorm));
    const bool late = coin();
    if (!late) y = own(y);
    if (!rarely()) y = times(y, late ? f32(weight("gain", {n})) : weight("gain", {n}));
    if (layerNorm && coin()) {
      Tensor bias = weight("bias", {n});
      y = plus(y, late ? f32(bias) : bias);
    }
    return own(y);
  }

  // --- linear
  Tensor linear(const Tensor& x, int64_t out, const std::string& name) {
    const int64_t in = width(x);
    const bool turned = coin();
    Tensor w = weight(name, turned ? Shape{out, in} : Shape{in, out});
    if (rarely()) w = w * 0.5;
    Tensor y = matmul(x, turned ? transpose(w, {1, 0}) : w);
    if (coin()) y = plus(y, weight(name + ".bias", {out}));
    return keep(y);
  }

  // --- activations
  Tensor silu(const Tensor& x) {
    switch (number(0, 3)) {
      case 0:
        return times(x, sigmoid(x));
      case 1:
        return x / (coin() ? 1.0 + exp(-x) : exp(-x) + 1.0);
      case 2:
        return times(x, 1.0 / (1.0 + exp(-x)));
      default:
        return times(x, sigmoid(x * (wrong() ? 1.702 : 1.0)));
    }
  }
  Tensor gelu(const Tensor& x) {
    Tensor e = erf(coin() ? x * M_SQRT1_2 : x / M_SQRT2);
    return coin() ? times(x * 0.5, e + 1.0) : times(x, (1.0 + e) * 0.5);
  }
  Tensor geluTanh(const Tensor& x) {
    Tensor cube = coin() ? x * x * x : pow(x, scalarLike(x, 3));
    Tensor t = tanh((x + cube * 0.044715) * std::sqrt(2 / M_PI));
    return times(x * 0.5, 1.0 + t);
  }
  Tensor activation(const Tensor& x) {
    // A GELU's constants rounded to bf16 would be another function.
    if (x.dtype() != DType::F32) return own(activation(f32(x)));
    switch (number(0, 3)) {
      case 0:
        return silu(x);
      case 1:
        return gelu(x);
      case 2:
        return geluTanh(x);
      default:
        return max(x, scalarLike(x, wrong() ? 1 : 0));
    }
  }
  Tensor mlp(const Tensor& x) {
    const int64_t hidden = number(2, 5) * 4;
    Tensor gate = linear(x, hidden, "gate");
    Tensor active = activation(gate);
    Tensor y = coin() ? times(active, linear(x, hidden, "up")) : active;
    return linear(y, width_, "down");
  }

  // --- rotary embedding of [b, h, s, d]
  Tensor rope(const Tensor& x) {
    const int64_t d = width(x), rotated = d >= 8 && coin() ? d / 2 : d, half = rotated / 2;
    Array frequencies(DType::F32, {half});
    for (int64_t i = 0; i < half; ++i)
      frequencies.set(i, std::pow(10000.0, -double(i) / double(half)));
    Tensor p = cast(iota(x, {seq_, 1}, 0), DType::F32);
    Tensor angles = p * g_.constant(frequencies);
    Tensor c = cos(angles), s = sin(angles);
    Tensor y = f32(x), rest;
    if (rotated < d) {
      rest = sliceAxis(y, -1, rotated, d - rotated);
      y = sliceAxis(y, -1, 0, rotated);
    }
    switch (number(0, 2)) {
      case 0: {
        Tensor a = sliceAxis(y, -1, 0, half), b = sliceAxis(y, -1, half, half);
        Tensor first = times(a, c) - times(b, s);
        Tensor second = wrong() ? times(a, s) - times(b, c) : plus(times(a, s), times(b, c));
        y = concat({first, second}, -1);
        break;
      }
      case 1: {
        Tensor a = sliceAxis(y, -1, 0, half, 2), b = sliceAxis(y, -1, 1, half, 2);
        Dims pair = a.shape();
        pair.push_back(1);
        Tensor first = reshape(times(a, c) - times(b, s), pair);
        Tensor second = reshape(plus(times(b, c), times(a, s)), pair);
        y = reshape(concat({first, second}, -1), y.shape());
        break;
      }
      default: {
        Tensor a = sliceAxis(y, -1, 0, half), b = sliceAxis(y, -1, half, half);
        Tensor turned = concat({-b, a}, -1);
        y = plus(times(y, concat({c, c}, -1)), times(turned, concat({s, s}, -1)));
      }
    }
    if (rest.defined()) y = concat({y, rest}, -1);
    return own(y);
  }

  // --- attention
  // [b, s, n d] as [b, n, s, d].
  Tensor split(const Tensor& x, const Dim& length, int64_t heads) {
    Tensor y = reshape(x, {batch_, length, heads, depth_});
    if (wrong() && heads == depth_) return transpose(y, {0, 3, 1, 2});
    return coin() ? transpose(y, {0, 2, 1, 3}) : swapAxes(y, 1, 2);
  }
  Tensor repeated(const Tensor& x, const Dim& length) {
    const int64_t times = heads_ / groups_;
    if (times == 1) return x;
    if (wrong()) {  // k0 k1 k0 k1 is another grouping
      return concat(std::vector<Tensor>(size_t(times), x), 1);
    }
    Tensor one = reshape(x, {batch_, groups_, 1, length, depth_});
    return reshape(broadcast(one, {batch_, groups_, times, length, depth_}),
                   {batch_, heads_, length, depth_});
  }
  Tensor visible(const Tensor& like, const Dim& keys) {
    Tensor i = iota(like, {seq_, 1}, 0), j = iota(like, {1, keys}, 1);
    switch (number(0, 4)) {
      case 0:
        if (!wrong()) return compare(j, i, Compare::le);
        emptyRows_ = true;  // the first query sees nothing
        return compare(j, i, Compare::lt);
      case 1:
        return compare(i, j, Compare::ge);
      case 2:
        return logicalNot(compare(j, i, Compare::gt));
      case 3:
        return compare(j, i + 1.0, Compare::lt);
      default:
        return compare(i - j, scalarLike(i, 0), Compare::ge);
    }
  }
  Tensor masked(Tensor scores, const Dim& keys) {
    const double lowest = wrong() ? -1e9 : -INFINITY;
    auto hide = [&](const Tensor& mask) {
      if (coin()) return select(mask, scores, scalarLike(scores, lowest));
      if (coin()) return select(logicalNot(mask), scalarLike(scores, lowest), scores);
      return plus(scores, select(mask, scalarLike(scores, 0), scalarLike(scores, lowest)));
    };
    const int64_t kind = number(0, 5);
    if (kind == 1 || kind == 2) {
      Tensor mask = visible(scores, keys);
      if (kind == 2 && coin()) {
        Tensor i = iota(scores, {seq_, 1}, 0), j = iota(scores, {1, keys}, 1);
        mask = logicalAnd(mask, compare(j, i - 2.0, Compare::gt));
      }
      scores = hide(mask);
    }
    if (kind == 2 || kind == 3) {
      const bool perKey = coin();
      Tensor mask = input(perKey ? "mask" : "pairs", DType::Bool,
                          perKey ? Dims{batch_, 1, 1, keys} : Dims{seq_, keys});
      scores = hide(mask);
      emptyRows_ = true;
    }
    if (kind == 4) {
      Tensor bias = input("bias", DType::F32, {heads_, seq_, keys});
      scores = plus(scores, scores.dtype() == DType::F32 ? bias : own(bias));
    }
    return scores;
  }
  Tensor softmax(const Tensor& x) {
    const int64_t axis = wrong() ? x.rank() - 2 : x.rank() - 1;
    Tensor e = exp(x - reduceMax(x, {axis}, true));
    Tensor p = e / reduceSum(e, {axis}, true);
    // A NaN that comes in with the scores is no empty row: fusions may tell them apart, which
    // passes/fuse_softmax.mlir holds.
    if (coin() || hasNan_) {
      hasNan_ |= emptyRows_;
      return p;
    }
    return select(isNan(p), scalarLike(p, 0), p);
  }
  Tensor attention(const Tensor& x) {
    const bool cross = number(0, 3) == 0;
    const Dim keys = cross ? Dim(5) : seq_;
    const Tensor source = cross ? input("context", wide_, {batch_, keys, width_}) : x;
    Tensor q, k, v;
    if (!cross && coin()) {  // one projection for all three
      const int64_t narrow = groups_ * depth_;
      Tensor all = linear(x, width_ + 2 * narrow, "qkv");
      q = sliceAxis(all, -1, 0, width_);
      k = sliceAxis(all, -1, width_, narrow);
      v = sliceAxis(all, -1, width_ + narrow, narrow);
    } else {
      q = linear(x, width_, "q");
      k = linear(source, groups_ * depth_, "k");
      v = linear(source, groups_ * depth_, "v");
    }
    q = split(q, seq_, heads_);
    k = split(k, keys, groups_);
    v = split(v, keys, groups_);
    if (rarely()) q = norm(q), k = norm(k);
    if (!cross && coin()) q = rope(q), k = rope(k);
    k = repeated(k, keys);
    v = repeated(v, keys);
    const bool wide = coin();
    if (wide) q = f32(q), k = f32(k);
    const double scale = 1 / std::sqrt(double(depth_));
    const int64_t placement = number(0, 4);
    if (placement == 0) q = q * scale;
    if (placement == 1) q = q * std::sqrt(scale), k = k * std::sqrt(scale);
    Tensor scores = matmul(q, wrong() && keys == Dim(depth_) ? k : swapAxes(k, 2, 3));
    if (placement == 2) scores = scores * scale;
    if (placement == 3) scores = scores / std::sqrt(double(depth_));
    if (rarely()) scores = tanh(scores / 30.0) * 30.0;
    emptyRows_ = false;
    scores = masked(keep(scores), keys);
    Tensor p = keep(softmax(f32(scores)));
    Tensor y = wide ? own(matmul(p, f32(v))) : matmul(own(p), v);
    y = reshape(coin() ? transpose(y, {0, 2, 1, 3}) : swapAxes(y, 1, 2), {batch_, seq_, width_});
    return rarely() ? y : linear(y, width_, "o");
  }
  // An input that several places may read: once per name and shape.
  Tensor input(const std::string& name, DType dtype, const Dims& shape) {
    for (auto& [known, tensor] : inputs_)
      if (known == name && tensor.shape() == shape) return tensor;
    const std::string unique = name + "." + std::to_string(inputs_.size());
    inputs_.emplace_back(name, g_.input(unique, dtype, shape));
    return inputs_.back().second;
  }

  // --- blocks
  Tensor residual(const Tensor& x, const Tensor& f) {
    if (!rarely()) return plus(x, f);
    Tensor gate = reshape(linear(input("condition", wide_, {batch_, width_}), width_, "gate"),
                          {batch_, 1, width_});
    return plus(x, times(gate, f));
  }
  Tensor modulated(const Tensor& x) {
    Tensor c = input("condition", wide_, {batch_, width_});
    auto part = [&](const char* name) {
      return reshape(linear(c, width_, name), {batch_, 1, width_});
    };
    Tensor shift = part("shift"), scale = part("scale");
    Tensor y = normalized(f32(x), true);
    if (coin()) return own(plus(times(y, 1.0 + f32(scale)), f32(shift)));
    return plus(times(own(y), scale + 1.0), shift);
  }
  Tensor layer(const Tensor& x) {
    switch (number(0, 2)) {
      case 0: {  // pre-norm
        Tensor y = residual(x, attention(norm(x)));
        return residual(y, mlp(norm(y)));
      }
      case 1: {  // post-norm
        Tensor y = norm(residual(x, attention(x)));
        return norm(residual(y, mlp(y)));
      }
      default: {  // modulated
        Tensor y = residual(x, attention(modulated(x)));
        return residual(y, mlp(modulated(y)));
      }
    }
  }
  void finish(Tensor x) {
    if (coin()) x = norm(x);
    Tensor head =
        table_.defined() && coin() ? matmul(x, transpose(table_, {1, 0})) : linear(x, 13, "head");
    if (auto length = seq_.asConstant(); length && coin())
      head = sliceAxis(head, 1, *length - 1, 1);
    g_.output("logits", head);
    if (coin()) g_.output("next", argmax(coin() ? softmax(f32(head)) : head, -1));
  }

  std::mt19937_64 random_;
  Graph g_;
  Dim batch_, seq_;
  int64_t heads_ = 1, groups_ = 1, depth_ = 2, width_ = 2;
  DType wide_ = DType::F32;
  Tensor table_;
  std::vector<std::pair<std::string, Tensor>> inputs_;
  int weights_ = 0, outputs_ = 0;
  bool emptyRows_ = false, hasNan_ = false;
};

}  // namespace

Graph randomTransformer(uint64_t seed) { return Maker(seed).make(); }

}  // namespace lathe::conformance
