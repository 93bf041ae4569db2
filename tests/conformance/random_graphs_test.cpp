// SPDX-License-Identifier: Apache-2.0
// Random graphs on every backend against the reference in float64. All values are small whole
// numbers, which every dtype holds and every order of a sum gives exactly, so results are equal and
// not merely close.
//
//   random_graphs_test SEED COUNT    tries other graphs than the suite does
#include <gtest/gtest.h>

#include <random>

#include "lathe/backends/backend.h"
#include "lathe/lathe.h"
#include "tests/conformance/seeds.h"
#include "tests/depth.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

constexpr double kLargest = 8;

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed), graph_("random") {
    m_ = graph_.dim("m", 1, 40);
    n_ = graph_.dim("n", 1, 70);
    graph_.entry("forward");
    for (int i = 0; i < 3; ++i) input();
    const Dims kept = randomShape();
    graph_.state("kept", DType::F32, kept);
    Tensor state = graph_.readState("kept");
    add(state);
    const int64_t steps = number(4, 22);
    for (int64_t i = 0; i < steps; ++i) grow();
    graph_.writeState("kept", clamp(state + clamp(fit(pick(), kept))));
    for (int i = 0; i < 3; ++i) output("y" + std::to_string(i), i ? pick() : values_.back());
  }

  const Graph& graph() const { return graph_; }
  const Arrays& weights() const { return weights_; }

  Arrays inputs(int64_t m, int64_t n) {
    Arrays all;
    for (auto& [name, dtype, shape] : inputs_) {
      Shape sizes;
      for (const Dim& d : shape) sizes.push_back(d.evaluate({{"m", m}, {"n", n}}).value());
      all[name] = data(sizes, dtype);
    }
    return all;
  }

 private:
  int64_t number(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
  const Tensor& pick() {
    // Recent values more often: deeper graphs.
    const int64_t last = int64_t(values_.size()) - 1;
    return values_[size_t(number(0, 2) ? number(std::max<int64_t>(0, last - 3), last)
                                       : number(0, last))];
  }
  Dim randomDim() {
    const std::vector<Dim> choices{m_, n_, 1, 2, 3, 4, 8, 17, 33};
    return choices[size_t(number(0, int64_t(choices.size()) - 1))];
  }
  Dims randomShape() {
    Dims shape;
    for (int64_t rank = number(0, 3); rank > 0; --rank) shape.push_back(randomDim());
    return shape;
  }
  Array data(const Shape& shape, DType dtype = DType::F32) {
    Array a(dtype, shape);
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(number(-3, 3)));
    return a;
  }
  void add(const Tensor& t) {
    if (t.rank() <= 4) values_.push_back(t);
  }
  DType randomDType() {
    const DType choices[] = {DType::F32, DType::F32, DType::BF16,
                             DType::F16, DType::I32, DType::I8};
    return choices[number(0, 5)];
  }
  // Another order of the same elements, or some of them: of any dtype.
  Tensor moved(const Tensor& x) {
    if (!x.rank()) return x;
    const int64_t kind = number(0, 3);
    return kind == 0 ? permuted(x) : kind == 1 ? reshaped(x) : kind == 2 ? part(x) : x;
  }
  // Kernels read and write other dtypes than they compute in, and through views.
  void input() {
    const std::string name = "x" + std::to_string(inputs_.size());
    const Dims shape = randomShape();
    const DType dtype = randomDType();
    inputs_.push_back({name, dtype, shape});
    Tensor x = moved(moved(graph_.input(name, dtype, shape)));
    add(dtype == DType::F32 ? x : cast(x, DType::F32));
  }
  void output(const std::string& name, const Tensor& x) {
    const DType dtype = randomDType();
    graph_.output(name, moved(dtype == DType::F32 ? x : cast(clamp(x), dtype)));
  }
  Tensor clamp(const Tensor& t) {
    return min(max(t, scalarLike(t, -kLargest)), scalarLike(t, kLargest));
  }
  // A value of `shape` that is made of `t`: its largest element where it cannot be broadcast.
  Tensor fit(const Tensor& t, const Dims& shape) {
    const Dims from = t.shape();
    bool fits = from.size() <= shape.size();
    for (size_t i = 0; fits && i < from.size(); ++i) {
      const Dim& to = shape[shape.size() - from.size() + i];
      fits = from[i] == to || from[i] == Dim(1);
    }
    if (fits) return broadcast(t, shape);
    Axes all;
    for (int64_t i = 0; i < t.rank(); ++i) all.push_back(i);
    return broadcast(clamp(reduceMax(t, all)), shape);
  }
  int64_t axisOf(const Tensor& t) { return number(0, t.rank() - 1); }
  bool small(const Dims& shape) {
    int64_t symbols = 0, count = 1;
    for (const Dim& d : shape) {
      if (auto c = d.asConstant())
        count *= *c;
      else
        symbols += int64_t(d.text().size() > 3 ? 2 : 1);
    }
    return symbols <= 2 && count <= 600;
  }

  Tensor unary(const Tensor& x) {
    switch (number(0, 11)) {
      case 0:
        return neg(x);
      case 1:
        return abs(x);
      case 2:
        return sign(x);
      case 3:
        return round(tanh(x) * 4);
      case 4:
        return round(exp(min(x, scalarLike(x, 2))));
      case 5:
        return round(sigmoid(x) * 6);
      case 6:
        return round(rsqrt(abs(x) + 1) * 5.3);
      case 7:
        return floor(x * 0.5);
      case 8:
        return cast(cast(clamp(x), DType::BF16), DType::F32);
      case 9:
        return cast(cast(x, DType::I32), DType::F32);
      case 10:
        return round(sin(x) * 4.1);
      default:
        return cast(cast(clamp(x), DType::F16) * 2, DType::F32);
    }
  }
  Tensor binary(const Tensor& a, const Tensor& b) {
    switch (number(0, 7)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return max(a, b);
      case 4:
        return min(a, b);
      case 5:
        return select(compare(a, b, number(0, 1) ? Compare::lt : Compare::eq), a, b + 1);
      case 6:
        return cast(compare(a, b, Compare::ge), DType::F32);
      default:
        return cast(bitwiseXor(cast(a, DType::I64), cast(b, DType::I64)), DType::F32);
    }
  }
  Tensor reduction(const Tensor& x) {
    Axes axes;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (number(0, 1)) axes.push_back(i);
    if (axes.empty()) axes.push_back(x.rank() - 1);
    const bool keep = number(0, 1);
    switch (number(0, 8)) {
      case 0:
        return reduceSum(x, axes, keep);
      case 1:
        return round(reduceMean(x, axes, keep) * 3.07);
      case 2:
        return reduceMax(x, axes, keep);
      case 3:
        return reduceMin(x, axes, keep);
      case 4:
        return cast(reduceAny(compare(x, scalarLike(x, 2), Compare::gt), axes, keep), DType::F32);
      case 5:
        return reduceProd(sign(x), axes, keep);
      case 6:
        return cast(reduceAll(compare(x, scalarLike(x, -2), Compare::ge), axes, keep), DType::F32);
      default: {
        Tensor at = cast(number(0, 1) ? argmax(x, axes[0]) : argmin(x, axes[0]), DType::F32);
        return at - floor(at * 0.125) * 8;
      }
    }
  }
  Tensor permuted(const Tensor& x) {
    Axes p;
    for (int64_t i = 0; i < x.rank(); ++i) p.push_back(i);
    std::shuffle(p.begin(), p.end(), random_);
    // {0, 1} is refused: it is meant to swap.
    return p == Axes{0, 1} ? x : transpose(x, p);
  }
  Tensor reshaped(const Tensor& x) {
    Dims shape = x.shape();
    if (shape.size() >= 2 && number(0, 2)) {
      const size_t at = size_t(number(0, int64_t(shape.size()) - 2));
      const Dim a = shape[at], b = shape[at + 1];
      if (number(0, 1)) {  // the same elements in rows of another length
        shape[at] = b;
        shape[at + 1] = a;
      } else {
        shape[at] = a * b;
        shape.erase(shape.begin() + int64_t(at) + 1);
      }
    } else {
      shape.insert(shape.begin() + number(0, int64_t(shape.size())), Dim(1));
    }
    return reshape(x, shape);
  }
  Tensor part(const Tensor& x) {
    const int64_t axis = axisOf(x);
    if (auto size = x.dim(axis).asConstant()) {
      const int64_t start = number(0, *size - 1), stride = number(1, 2);
      return sliceAxis(x, axis, start, number(1, (*size - 1 - start) / stride + 1), stride);
    }
    return sliceAxis(x, axis, number(0, 1) ? x.dim(axis) - Dim(1) : Dim(0), 1);
  }
  Tensor padded(const Tensor& x) {
    Axes low, high;
    for (int64_t i = 0; i < x.rank(); ++i)
      low.push_back(number(0, 2)), high.push_back(number(0, 2));
    return pad(x, scalarLike(x, double(number(-2, 2))), low, high);
  }
  Tensor gathered(const Tensor& x) {
    const int64_t axis = axisOf(x);
    Dims count{number(0, 1) ? Dim(number(1, 9)) : m_};
    Tensor index = iota(x, count, 0);
    if (auto size = x.dim(axis).asConstant())
      return gather(x, mod(index * 5, scalarLike(index, double(*size))), axis);
    return gather(x, index * 0, axis);
  }
  Tensor product(const Tensor& x) {
    const Dims shape = x.shape();
    const Dim k = shape.back();
    Tensor b;
    if (auto size = k.asConstant(); size && number(0, 1)) {
      const std::string name = "w" + std::to_string(weights_.size());
      const Shape w{number(1, 20), *size};
      weights_[name] = data(w);
      b = graph_.weight(name, DType::F32, w);
      if (number(0, 1)) b = b * 2 - 1;
      b = swapAxes(b, 0, 1);
    } else {
      b = swapAxes(x, shape.size() - 1, shape.size() - 2);
    }
    return matmul(x, b);
  }

  // Whole numbers as such: what floats do not have, and through dtypes that no input has.
  Tensor wholes(const Tensor& x) {
    const Tensor i = cast(x, number(0, 1) ? DType::I32 : DType::I64);
    auto whole = [&](int64_t v) { return scalarLike(i, double(v)); };
    switch (number(0, 8)) {
      case 0:
        return cast(mod(i, whole(number(0, 1) ? 3 : -3)), DType::F32);
      case 1:
        return cast(div(i, whole(number(0, 1) ? 2 : -3)), DType::F32);
      case 2:
        return cast(shiftLeft(i, whole(number(0, 3))), DType::F32);
      case 3:
        return cast(shiftRight(abs(i), whole(number(0, 3))), DType::F32);
      case 4:
        return cast(bitwiseAnd(i, whole(number(-4, 7))), DType::F32);
      case 5:
        return cast(bitwiseOr(i, whole(number(-4, 7))), DType::F32);
      case 6:
        return cast(cast(abs(clamp(x)), DType::U8), DType::F32);
      case 7:
        return cast(cast(x, DType::Bool), DType::F32);
      default:
        return cast(cast(x, DType::F64) * 0.5, DType::F32);
    }
  }
  // Values, or their places, of the largest of rows; equal ones in the order of their places.
  Tensor largest(const Tensor& x) {
    const int64_t most = std::min<int64_t>(x.dim(-1).asConstant().value_or(1), 5);
    const auto [values, places] = topK(x, number(1, most));
    if (number(0, 1)) return values;
    const Tensor at = cast(places, DType::F32);
    return at - floor(at * 0.125) * 8;
  }
  // Rows of another value at a place of its own for each element of the first axis.
  Tensor updated(const Tensor& x) {
    const int64_t axis = number(1, x.rank() - 1);
    const int64_t size = x.dim(axis).asConstant().value_or(1);
    const int64_t count = number(1, size);
    const DType dtype = number(0, 1) ? DType::I64 : DType::I32;
    Tensor at = iota(x, {x.dim(0)}, 0, dtype);
    at = mod(at * number(1, 3), scalarLike(at, double(size - count + 1)));
    return update(x, sliceAxis(neg(x) + 1, axis, 0, count), at, axis);
  }
  // Rows that choose one of several weights.
  Tensor grouped(const Tensor& x) {
    const auto k = x.dim(-1).asConstant();
    if (!k) return unary(x);
    const std::string name = "w" + std::to_string(weights_.size());
    const bool inOut = number(0, 1);
    const int64_t groups = number(1, 4), n = number(1, 20);
    const Shape shape{groups, inOut ? *k : n, inOut ? n : *k};
    weights_[name] = data(shape);
    Dims rows = x.shape();
    rows.pop_back();
    Tensor chosen = iota(x, rows, number(0, int64_t(rows.size()) - 1), DType::I64);
    chosen = mod(chosen * number(1, 3), scalarLike(chosen, double(groups)));
    return fused::groupedLinear(x, graph_.weight(name, DType::F32, shape), chosen,
                                inOut ? WeightLayout::in_out : WeightLayout::out_in);
  }

  Tensor candidate() {
    const Tensor x = pick();
    switch (number(0, 20)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
        return binary(x, fit(pick(), x.shape()));
      case 3:
        return binary(fit(pick(), x.shape()), x);
      case 4:
        return binary(x, x.rank() >= 2 && x.dim(-1) == x.dim(-2) ? swapAxes(x, -1, -2) : x);
      case 5:
        return x.rank() ? reduction(x) : unary(x);
      case 6:
        return x.rank() ? x - reduceMax(x, {axisOf(x)}, true) : unary(x);
      case 7:
        return permuted(x);
      case 8:
        return reshaped(x);
      case 9:
        return x.rank() ? part(x) : unary(x);
      case 10: {
        const Tensor other = fit(pick(), x.shape());
        return x.rank() ? concat({x, other}, axisOf(x)) : other;
      }
      case 11:
        return padded(x);
      case 12:
        return x.rank() ? reverse(x, {axisOf(x)}) : unary(x);
      case 13:
        return x.rank() ? gathered(x) : unary(x);
      case 14:
        return x.rank() >= 2 ? product(x) : unary(x);
      case 15:
        return wholes(x);
      case 16:
        return x.rank() ? largest(x) : wholes(x);
      case 17:
        return x.rank() >= 2 ? updated(x) : wholes(x);
      case 18:
        return x.rank() >= 2 ? grouped(x) : unary(x);
      case 19: {
        if (x.rank() < 2) return wholes(x);
        const int64_t diagonal = number(-2, 2);
        return number(0, 1) ? tril(x, diagonal) : triu(x, diagonal);
      }
      default: {
        if (!x.rank()) return unary(x);
        const int64_t axis = axisOf(x);
        if (number(0, 2) == 0) return cumsum(x, axis);
        return round((number(0, 1) ? nn::softmax(x, axis) : fused::softmax(x, axis)) * 6.37);
      }
    }
  }
  void grow() {
    Tensor t = candidate();
    if (!small(t.shape())) return;
    add(number(0, 3) ? clamp(t) : t);
  }

  std::mt19937_64 random_;
  Graph graph_;
  Dim m_, n_;
  std::vector<Tensor> values_;
  struct Input {
    std::string name;
    DType dtype;
    Dims shape;
  };
  std::vector<Input> inputs_;
  Arrays weights_;
};

std::string differenceOf(const std::string& backend, uint64_t seed) {
  RandomGraph made(seed);
  Session tested(compile(made.graph(), {.backend = backend}), {.threads = 2, .device = "host"});
  Session oracle(
      compile(made.graph(), {.backend = "reference", .backendOptions = {.float64 = true}}));
  for (Session* session : {&tested, &oracle})
    session->bindWeights([&](const std::string& name) { return made.weights().at(name); });
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 17}, {40, 70}}) {
    const std::string where = "m=" + std::to_string(m) + " n=" + std::to_string(n) + " ";
    tested.resetStates();
    oracle.resetStates();
    for (int call = 0; call < 2; ++call) {
      const Arrays inputs = made.inputs(m, n);
      const Arrays got = tested.run("forward", inputs), want = oracle.run("forward", inputs);
      for (auto& [name, value] : got)
        if (std::string d = firstDifference(value, want.at(name), {}); !d.empty())
          return where + name + ": " + d;
      if (std::string d = firstDifference(tested.state("kept"), oracle.state("kept"), {});
          !d.empty())
        return where + "state: " + d;
    }
  }
  return "";
}

Seeds seeds{1, test::inDepth() ? 150 : 60};

TEST(RandomGraphs, AgreeWithTheReference) {
  for (const std::string& backend : backendNames()) {
    if (backend == "reference") continue;
    // Kernels of the host take a compiler's run each.
    const uint64_t step = backend == "cuda" ? 5 : 1;
    for (uint64_t seed = seeds.first; seed < seeds.end(); seed += step) {
      SCOPED_TRACE(backend + ", graph " + std::to_string(seed));
      try {
        EXPECT_EQ(differenceOf(backend, seed), "");
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace lathe::conformance

int main(int argc, char** argv) {
  return lathe::conformance::runWithSeeds(argc, argv, lathe::conformance::seeds);
}
