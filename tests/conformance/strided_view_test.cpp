// SPDX-License-Identifier: Apache-2.0
// Chains of transposes, slices and reshapes as strides: every element of the view is where its
// strides say that it lies in the base, at every size of the symbols.
#include "lathe/backends/strided_view.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "lathe/lathe.h"
#include "lathe/passes/region_ops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/conformance/function_values.h"
#include "tests/conformance/rewriting.h"

namespace lathe::conformance {
namespace {

using namespace mlir;

class Chain {
 public:
  explicit Chain(uint64_t seed) : random_(seed), graph_("views") {
    const Dim m = graph_.dim("m", 3, 40), n = graph_.dim("n", 3, 40);
    const std::vector<Dims> shapes{{m, n, 2}, {4, m, 3}, {2, 3, 4}, {1, m, 1, 6}, {n, 12}, {m}};
    graph_.entry("forward");
    Tensor x = graph_.input("x", DType::I64, shapes[size_t(number(0, 5))]);
    for (int64_t steps = number(1, 5); steps > 0; --steps) x = step(x);
    graph_.output("y", x);
  }
  const Graph& graph() const { return graph_; }
  bool onlyMoves() const { return !reshapes_; }

 private:
  int64_t number(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
  Tensor step(const Tensor& x) {
    const int64_t kind = number(0, 2);
    if (kind == 0) {
      Axes order;
      for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
      std::shuffle(order.begin(), order.end(), random_);
      // {0, 1} is refused: it is meant to swap.
      return order == Axes{0, 1} ? x : transpose(x, order);
    }
    return kind == 1 ? part(x) : reshaped(x);
  }
  // Of every axis an odd part, of one with a name all but one or two elements in the front.
  Tensor part(const Tensor& x) {
    Dims starts, sizes;
    Axes strides;
    for (const Dim& d : x.shape()) {
      auto count = d.asConstant();
      const int64_t start = number(0, count ? *count - 1 : d.text() == "m" || d.text() == "n");
      const int64_t stride = count ? number(1, 3) : 1;
      starts.push_back(start);
      strides.push_back(stride);
      sizes.push_back(count ? Dim((*count - start + stride - 1) / stride) : d - Dim(start));
    }
    return slice(x, starts, sizes, strides);
  }
  Tensor reshaped(const Tensor& x) {
    reshapes_ = true;
    Dims shape = x.shape();
    const size_t at = size_t(number(0, int64_t(shape.size()) - 1));
    const auto count = shape[at].asConstant();
    const int64_t pair = at + 1 < shape.size() ? number(0, 3) : 0;
    if (pair == 1) {  // two axes whose sizes need not divide each other
      std::swap(shape[at], shape[at + 1]);
    } else if (pair > 1) {
      shape[at] = shape[at] * shape[at + 1];
      shape.erase(shape.begin() + int64_t(at) + 1);
    } else if (count && *count > 1 && *count % 2 == 0) {
      shape[at] = *count / 2;
      shape.insert(shape.begin() + int64_t(at) + number(0, 1), Dim(2));
    } else {
      shape.insert(shape.begin() + int64_t(at), Dim(1));
    }
    return reshape(x, shape);
  }

  std::mt19937_64 random_;
  Graph graph_;
  bool reshapes_ = false;
};

// The places in the base of all elements from `axis` on, in order, at the first ones before it.
std::vector<int64_t> places(const StridedView& view, const Symbols& sizes, size_t axis = 0) {
  std::vector<int64_t> all{view.offset.evaluate(sizes).value()};
  for (size_t i = axis; i < view.sizes.size(); ++i) {
    const int64_t count = view.sizes[i].evaluate(sizes).value(),
                  stride = view.strides[i].evaluate(sizes).value();
    std::vector<int64_t> next;
    for (int64_t at : all)
      for (int64_t k = 0; k < count; ++k) next.push_back(at + k * stride);
    all = std::move(next);
  }
  return all;
}

bool consecutive(const std::vector<int64_t>& places) {
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] != places[0] + int64_t(i)) return false;
  return true;
}

TEST(StridedViews, FindEveryElementOfTheirBase) {
  int views = 0, dense = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Chain chain(seed);
    const Module module = moduleOf(chain.graph());
    auto function = const_cast<Module&>(module)->lookupSymbol<func::FuncOp>("forward");
    const Value y = function.getBody().front().getTerminator()->getOperand(0);
    const StridedView view = viewOf(y);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + textOf(*const_cast<Module&>(module)));
    views += view.base == function.getArgument(0);
    if (chain.onlyMoves()) EXPECT_EQ(view.base, function.getArgument(0));
    std::vector<bool> lieDense(view.sizes.size() + 1, true);
    for (const Symbols& sizes : {Symbols{{"m", 5}, {"n", 7}}, Symbols{{"m", 9}, {"n", 4}}}) {
      auto type = cast<RankedTensorType>(function.getArgument(0).getType());
      Shape shape;
      for (const DimExpr& d : dimExprs(function.getArgument(0)))
        shape.push_back(d.evaluate(sizes).value());
      ASSERT_EQ(int64_t(shape.size()), type.getRank());
      Array x(DType::I64, shape);
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i));
      std::map<Operation*, Array> results;
      const std::vector<Array> got = interpret(
          function, {x}, {}, Precision::OwnDtype,
          [&](Operation* op, const std::vector<Array>& r) { results[op] = r[0]; }, sizes);
      Operation* def = view.base.getDefiningOp();
      const Array& base = def ? results.at(def) : x;
      const std::vector<int64_t> at = places(view, sizes);
      ASSERT_EQ(int64_t(at.size()), got[0].size());
      for (size_t i = 0; i < at.size(); ++i) {
        ASSERT_GE(at[i], 0);
        ASSERT_LT(at[i], base.size());
        ASSERT_EQ(base.at(at[i]), got[0].at(int64_t(i))) << "element " << i;
      }
      for (size_t axis = 0; axis <= view.sizes.size(); ++axis)
        if (!consecutive(places(view, sizes, axis))) lieDense[axis] = false;
    }
    for (size_t axis = 0; axis <= view.sizes.size(); ++axis) {
      EXPECT_EQ(view.denseFrom(axis), lieDense[axis]) << "from axis " << axis;
      dense += view.denseFrom(axis) && axis + 1 < view.sizes.size();
    }
    const ViewTerms terms = view.terms();
    ASSERT_EQ(terms.size(), 1 + 2 * view.sizes.size());
    EXPECT_EQ(terms[0], view.offset);
    for (size_t i = 0; i < view.sizes.size(); ++i) {
      EXPECT_EQ(terms[1 + i], view.sizes[i]);
      EXPECT_EQ(terms[1 + view.sizes.size() + i], view.strides[i]);
    }
  }
  EXPECT_GE(views, 200) << "most chains end at the input";
  EXPECT_GE(dense, 40);
}

// An axis of one element lies anywhere, so that it interrupts no run.
TEST(StridedViews, PassOverAxesOfOne) {
  Graph g;
  const Dim n = g.dim("n", 1, 64);
  const Tensor turned = swapAxes(g.input("x", DType::I64, {1, n, 8}), 0, 1);  // [n, 1, 8]
  g.output("y", reshape(turned, {n * 8}));
  const Module module = moduleOf(g);
  auto function = const_cast<Module&>(module)->lookupSymbol<func::FuncOp>("forward");
  const StridedView view = viewOf(function.getBody().front().getTerminator()->getOperand(0));
  EXPECT_EQ(view.base, function.getArgument(0));
  EXPECT_EQ(view.strides.size(), 1u);
  EXPECT_TRUE(view.denseFrom(0));
}

// The kernels of `forward` on the CPU, but for copies of what is given back as it came.
std::vector<std::string> kernelsOf(const Graph& g) {
  std::vector<std::string> kinds;
  const Program program = compile(g, {.backend = "cpu"});
  for (const Call& call : program.entries.at(0).calls)
    if (call.kind != "copy") kinds.push_back(call.kind);
  return kinds;
}

// Heads of a projection on their way to attention and to the cache are read where they lie; what
// does not lie so is moved first.
TEST(StridedViews, AreReadByKernelsInPlace) {
  using Kinds = std::vector<std::string>;
  auto heads = [](const Tensor& x) { return swapAxes(reshape(x, {1, 3, 2, 4}), 1, 2); };
  auto attended = [&](bool isBack) {
    Graph g;
    const Tensor q = heads(g.input("q", DType::F32, {1, 3, 8})),
                 k = heads(g.input("k", DType::F32, {1, 3, 8})),
                 v = heads(g.input("v", DType::F32, {1, 3, 8}));
    const Tensor y = fused::attention(q, k, v);
    g.output("y", isBack ? reshape(swapAxes(y, 1, 2), {1, 3, 8}) : y);
    return kernelsOf(g);
  };
  EXPECT_EQ(attended(true), Kinds{"attention"});
  EXPECT_EQ(attended(false), Kinds{"attention"});
  auto updated = [&](bool isTurned) {
    Graph g;
    g.state("cache", DType::F32, {1, 2, 8, 4});
    const Tensor x = g.input("x", DType::F32, {1, 3, 8}), at = g.input("at", DType::I64, {1});
    Tensor rows = heads(x);
    if (isTurned) rows = reshape(swapAxes(reshape(x, {1, 1, 6, 4}), 2, 3), {1, 2, 3, 4});
    g.writeState("cache", update(g.readState("cache"), rows, at, 2));
    g.output("y", at);
    return kernelsOf(g);
  };
  EXPECT_EQ(updated(false), Kinds{"update"});
  EXPECT_EQ(updated(true).size(), 2u) << "rows of other elements";
  auto product = [](const Dims& shape, const std::vector<int64_t>& order) {
    Graph g;
    const Tensor a = g.input("a", DType::F32, {3, 4, 4}), b = g.input("b", DType::F32, shape);
    g.output("y", matmul(a, transpose(b, order)));
    return kernelsOf(g);
  };
  EXPECT_EQ(product({3, 4, 4}, {0, 2, 1}), Kinds{"matmul"});
  EXPECT_EQ(product({4, 4, 3}, {2, 1, 0}).size(), 2u);
}

}  // namespace
}  // namespace lathe::conformance
