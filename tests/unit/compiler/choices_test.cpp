// SPDX-License-Identifier: Apache-2.0
// Results that follow from another choice between numbers that are equal within rounding.
#include <gtest/gtest.h>

#include <functional>

#include "frontend/graph_impl.h"
#include "inspect/questions/trial_run.h"
#include "lathe/lathe.h"

namespace lathe {
namespace {

using Change = std::function<void(Array&)>;

// Whether results are taken for right in which `change` changed the first, or that number `which`.
// `record` makes them of x[1, 6] = {3, 1, 3 + 1e-7, 2, 3 - 1e-7, 0.5}, of which a tenth is no
// float.
bool accepts(const std::function<void(Graph&, const Tensor&)>& record, const Change& change,
             size_t which = 0) {
  Graph graph;
  graph.entry("forward");
  record(graph, graph.input("x", DType::F64, {1, 6}));
  TrialOptions options;
  Array x(DType::F64, {1, 6});
  int64_t i = 0;
  for (double v : {3.0, 1.0, 3.0 + 1e-7, 2.0, 3.0 - 1e-7, 0.5}) x.set(i++, v);
  options.inputs["x"] = x;
  mlir::ModuleOp module = graph.impl().finished();
  Trial trial(module, options);
  TrialResults results = trial.run(module, Precision::Float64);
  for (TrialResult& r : results) r.value = r.value.clone();
  change(results.at(which).value);
  const Deviation backend = trial.judgeBackend(results);
  EXPECT_EQ(backend.within, backend.beyond == 0);
  return backend.within;
}

Tensor tenth(const Tensor& x) { return cast(x, DType::F32) * 0.1; }
Change put(std::vector<double> values) {
  return [values](Array& a) {
    for (size_t i = 0; i < values.size(); ++i) a.set(int64_t(i), values[i]);
  };
}

TEST(Choices, TakeEitherOfTwoLargestThatRoundingMakesEqual) {
  auto next = [](Graph& g, const Tensor& x) { g.output("y", argmax(tenth(x), -1)); };
  for (double right : {0, 2, 4}) EXPECT_TRUE(accepts(next, put({right}))) << right;
  for (double wrong : {1, 3, 5, 6, -1}) EXPECT_FALSE(accepts(next, put({wrong}))) << wrong;
  // Down the columns {3, 3 + 1e-7, 3 - 1e-7} and {1, 2, 0.5}.
  auto down = [](Graph& g, const Tensor& x) {
    g.output("y", argmax(reshape(tenth(x), {3, 2}), 0));
  };
  for (double right : {0, 1, 2}) EXPECT_TRUE(accepts(down, put({right, 1}))) << right;
  for (double wrong : {0, 2}) EXPECT_FALSE(accepts(down, put({1, wrong}))) << wrong;
  auto least = [](Graph& g, const Tensor& x) { g.output("y", argmin(neg(tenth(x)), -1)); };
  EXPECT_TRUE(accepts(least, put({4})));
  EXPECT_FALSE(accepts(least, put({3})));
}

TEST(Choices, TakeNoOtherOfExactNumbers) {
  auto next = [](Graph& g, const Tensor& x) { g.output("y", argmax(x, -1)); };
  EXPECT_TRUE(accepts(next, put({2})));
  EXPECT_FALSE(accepts(next, put({0})));
  // A causal mask that hides the diagonal: whole numbers, equal and exact.
  auto mask = [](Graph& g, const Tensor& x) {
    Tensor i = cast(iota(x, {6, 1}, 0), DType::F32), j = cast(iota(x, {1, 6}, 1), DType::F32);
    g.output("y", select(compare(j, i, Compare::le), x, scalarLike(x, 0)));
  };
  EXPECT_TRUE(accepts(mask, [](Array&) {}));
  EXPECT_FALSE(accepts(mask, put({0})));
}

TEST(Choices, FollowAnIndexToWhatItPicks) {
  auto row = [](Graph& g, const Tensor& x) {
    Tensor table = cast(iota(x, {6, 2}, 0), DType::F32) * 7.0 + 0.25;
    g.output("y", gather(table, argmax(tenth(x), -1), 0));
  };
  EXPECT_TRUE(accepts(row, put({0.25, 0.25})));
  EXPECT_TRUE(accepts(row, put({14.25, 14.25})));
  EXPECT_FALSE(accepts(row, put({7.25, 7.25})));
  EXPECT_FALSE(accepts(row, put({0.25, 14.25})));  // of two rows
}

// A row of a table that rounding picks instead of another says nothing of rounding.
TEST(Choices, AreNoMeasureOfRounding) {
  Graph graph;
  graph.entry("forward");
  Tensor y = tenth(graph.input("x", DType::F64, {1, 2}));
  Tensor table = cast(iota(y, {6, 2}, 0), DType::F32) * 7.0 + 0.3;
  graph.output("y", gather(table, argmax(y, -1), 0));
  TrialOptions options;
  options.inputs["x"] = Array(DType::F64, {1, 2});
  options.inputs["x"].set(0, 3);
  options.inputs["x"].set(1, 3 + 1e-7);
  mlir::ModuleOp module = graph.impl().finished();
  EXPECT_EQ(Trial(module, options).allowedOfBackend(0), 1e-5);
}

TEST(Choices, OrderTheLargestEitherWay) {
  auto indices = [](Graph& g, const Tensor& x) { g.output("y", topK(tenth(x), 4).second); };
  EXPECT_TRUE(accepts(indices, put({2, 0, 4, 3})));
  EXPECT_TRUE(accepts(indices, put({4, 0, 2, 3})));
  EXPECT_TRUE(accepts(indices, put({0, 4, 2, 3})));
  EXPECT_FALSE(accepts(indices, put({2, 0, 3, 4})));
  EXPECT_FALSE(accepts(indices, put({2, 2, 4, 3})));
  EXPECT_FALSE(accepts(indices, put({2, 0, 4, 1})));
  auto two = [](Graph& g, const Tensor& x) { g.output("y", topK(tenth(x), 2).second); };
  EXPECT_TRUE(accepts(two, put({4, 2})));
  EXPECT_FALSE(accepts(two, put({4, 3})));
}

// Both places change at once: neither alone is nearer to the difference of what they pick.
TEST(Choices, SwapTwoOfTheLargest) {
  auto rows = [](Graph& g, const Tensor& x) {
    Tensor table = cast(iota(x, {6, 2}, 0), DType::F32) * 7.0 + 0.25;
    Tensor picked = gather(table, topK(tenth(x), 2).second, 0);
    g.output("y", sliceAxis(picked, 1, 0, 1) - sliceAxis(picked, 1, 1, 1) * 2.0);
  };
  EXPECT_TRUE(accepts(rows, put({13.75, 13.75})));
  EXPECT_TRUE(accepts(rows, put({-28.25, -28.25})));
  EXPECT_FALSE(accepts(rows, put({-0.25, -0.25})));  // one element in both places
}

// What the results show is taken over at once, for more rows than there are runs to try.
TEST(Choices, ShownByManyRowsAreTakenTogether) {
  constexpr int64_t kRows = 150;
  auto indices = [](Graph& g, const Tensor& x) {
    g.output("y", topK(broadcast(tenth(x), {kRows, 6}), 2).second);
  };
  EXPECT_TRUE(accepts(indices, [](Array& a) {
    for (int64_t row = 0; row < kRows; ++row) a.set(2 * row, 0), a.set(2 * row + 1, 2);
  }));
}

TEST(Choices, CompareEitherWay) {
  auto smaller = [](Graph& g, const Tensor& x) {
    Tensor y = tenth(x);
    g.output("y", select(compare(y, sliceAxis(y, 1, 0, 1), Compare::lt), y, y + 10.0));
  };
  EXPECT_TRUE(accepts(smaller, [](Array& a) { a.set(2, a.at(2) - 10); }));
  EXPECT_TRUE(accepts(smaller, [](Array& a) { a.set(4, a.at(4) + 10); }));
  EXPECT_FALSE(accepts(smaller, [](Array& a) { a.set(3, a.at(3) + 10); }));
  // One side is exact: that of the other is enough.
  auto exact = [](Graph& g, const Tensor& x) {
    Tensor y = tenth(x) * 10.0 - 3.0;
    g.output("y", select(compare(y, scalarLike(y, 0), Compare::ge), y, y + 10.0));
  };
  for (double by : {10, -10}) {
    const bool hidden = by > 0;
    EXPECT_TRUE(accepts(exact, [=](Array& a) {
      for (int64_t i : {0, 2, 4})
        if ((a.at(i) < 5) == hidden) a.set(i, a.at(i) + by);
    }));
  }
  EXPECT_FALSE(accepts(exact, [](Array& a) { a.set(3, a.at(3) + 10); }));
}

// A number is itself, however it was rounded: beside itself it is compared for NaN.
TEST(Choices, AreNoneOfANumberBesideItself) {
  auto same = [](Graph& g, const Tensor& x) {
    Tensor y = tenth(x);
    g.output("y", select(compare(y, y, Compare::eq), y, y + 10.0));
  };
  EXPECT_TRUE(accepts(same, [](Array&) {}));
  EXPECT_FALSE(accepts(same, [](Array& a) { a.set(0, a.at(0) + 10); }));
}

// Of a number beside a step both sides are right, and nothing else.
TEST(Choices, StepEitherWay) {
  auto check = [](double lower, const std::function<Tensor(const Tensor&)>& step) {
    auto whole = [&](Graph& g, const Tensor& x) { g.output("y", step(tenth(x) * 10.0 - 0.5)); };
    for (double value = 0; value < 7; ++value)
      EXPECT_EQ(accepts(whole, put({value})), value == lower || value == lower + 1)
          << value << " for " << lower;
  };
  check(2, [](const Tensor& x) { return round(x); });
  check(2, [](const Tensor& x) { return floor(x + 0.5); });
  check(3, [](const Tensor& x) { return ceil(x + 0.5); });
  check(2, [](const Tensor& x) { return cast(x + 0.5, DType::I32); });
}

// A number that rounding may carry over zero has either sign, another has its own.
TEST(Choices, HaveEitherSignBesideZero) {
  auto side = [](Graph& g, const Tensor& x) { g.output("y", sign(tenth(x) * 10.0 - 3.0)); };
  for (double right : {-1, 1}) EXPECT_TRUE(accepts(side, put({right}))) << right;
  EXPECT_FALSE(accepts(side, put({2})));
  EXPECT_FALSE(accepts(side, put({1, 1})));
  auto isNone = [](Graph& g, const Tensor& x) {
    g.output("y", cast(tenth(x) * 10.0 - 3.0, DType::Bool));
  };
  for (double right : {0, 1}) EXPECT_TRUE(accepts(isNone, put({right}))) << right;
  EXPECT_FALSE(accepts(isNone, put({1, 0})));
}

// More rows than are tried one by one, of a result that is not the first.
TEST(Choices, AreReadOffTheResultThatShowsThem) {
  auto rows = [](Graph& g, const Tensor& x) {
    g.output("twice", x * 2.0);
    g.output("y", argmax(tenth(broadcast(x, {200, 6})), -1));
  };
  auto all = [](double value) {
    return [=](Array& a) {
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, value);
    };
  };
  EXPECT_TRUE(accepts(rows, all(0), 1));
  EXPECT_TRUE(accepts(rows, all(4), 1));
  EXPECT_FALSE(accepts(rows, all(3), 1));
}

TEST(Choices, AreNoneInStrictModeOnTheInterpreter) {
  Graph graph;
  graph.entry("forward");
  Tensor x = graph.input("x", DType::F32, {1, 8});
  graph.output("y", argmax(x * 0.1, -1));
  TrialOptions options;
  options.compile.pipeline.mode = NumericsMode::Strict;
  Array same(DType::F32, {1, 8});
  for (int64_t i = 0; i < 8; ++i) same.set(i, 3);
  options.inputs["x"] = same;
  mlir::ModuleOp module = graph.impl().finished();
  Trial trial(module, options);
  TrialResults results = trial.run(module, Precision::Float64);
  results[0].value = results[0].value.clone();
  results[0].value.set(0, 5);
  EXPECT_FALSE(trial.compare(results).within);
  EXPECT_TRUE(trial.judgeBackend(results).within);
}

}  // namespace
}  // namespace lathe
