// SPDX-License-Identifier: Apache-2.0
// Functions that record several ops give what PyTorch's functions of the same names give, on the
// interpreter and on the CPU.
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lathe/lathe.h>

namespace lathe {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

Array floats(const Values& values, const Shape& shape, DType dtype = DType::F32) {
  Array a(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) a.set(int64_t(i), values[i]);
  return a;
}
Array ints(const Values& values, const Shape& shape) { return floats(values, shape, DType::I64); }

struct Result {
  Shape shape;
  Values values;
};

// Inputs become graph inputs a, b, ...; a symbolic first axis where asked for.
using Record = std::function<Tensor(const std::vector<Tensor>&)>;
Result run(const std::string& backend, const std::vector<Array>& inputs, const Record& record,
           std::optional<int64_t> symbolicAxis = {}) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  std::vector<Tensor> tensors;
  Arrays arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name(1, char('a' + i));
    Dims dims(inputs[i].shape().begin(), inputs[i].shape().end());
    if (symbolicAxis) dims[size_t(*symbolicAxis)] = n;
    tensors.push_back(g.input(name, inputs[i].dtype(), dims));
    arrays[name] = inputs[i];
  }
  g.output("y", record(tensors));
  Session session(compile(g, {.backend = backend}));
  const Array y = session.run("forward", arrays).at("y");
  Result result{y.shape(), {}};
  for (int64_t i = 0; i < y.size(); ++i) result.values.push_back(y.at(i));
  return result;
}

// Sizes as numbers, and with a symbol in front.
void expect(const std::vector<Array>& inputs, const Record& record, const Shape& shape,
            const Values& values, std::optional<int64_t> symbolicAxis = {}) {
  for (const char* backend : {"reference", "cpu"}) {
    SCOPED_TRACE(backend);
    const Result got = run(backend, inputs, record, symbolicAxis);
    EXPECT_EQ(got.shape, shape);
    ASSERT_EQ(got.values.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i]))
        EXPECT_TRUE(std::isnan(got.values[i])) << i << " is " << got.values[i];
      else if (std::isinf(values[i]))
        EXPECT_EQ(got.values[i], values[i]) << i;
      else
        EXPECT_NEAR(got.values[i], values[i], 1e-5 * (1 + std::abs(values[i]))) << i;
    }
  }
}
void expectBoth(const std::vector<Array>& inputs, const Record& record, const Shape& shape,
                const Values& values) {
  expect(inputs, record, shape, values);
  expect(inputs, record, shape, values, 0);
}

const Array kSix = floats({0, 1, 2, 3, 4, 5}, {2, 3});

using T = const std::vector<Tensor>&;

TEST(ComposedShapes, ReshapeFindsTheSizeThatIsLeftOpen) {
  auto shapeOf = [](const std::function<Tensor(Tensor, Dim, Dim)>& record) {
    Graph g;
    const Dim b = g.dim("b", 1, 8), s = g.dim("s", 1, 8);
    return record(g.input("x", DType::F32, {b, s + 1, 12}), b, s).shape();
  };
  Graph g;
  const Dim b = g.dim("b", 1, 8), s = g.dim("s", 1, 8);
  EXPECT_EQ(shapeOf([](Tensor x, Dim, Dim) { return reshape(x, {-1, 12}); }),
            (Dims{b * (s + 1), 12}));
  EXPECT_EQ(shapeOf([](Tensor x, Dim b, Dim) { return reshape(x, {b, -1}); }),
            (Dims{b, (s + 1) * 12}));
  EXPECT_EQ(shapeOf([](Tensor x, Dim b, Dim s) { return reshape(x, {b, s + 1, 3, -1}); }),
            (Dims{b, s + 1, 3, 4}));
  EXPECT_EQ(shapeOf([](Tensor x, Dim, Dim s) { return reshape(x, {-1, s + 1, 6}); }),
            (Dims{b * 2, s + 1, 6}));
  expectBoth({kSix}, [](T t) { return reshape(t[0], {-1}); }, {6}, {0, 1, 2, 3, 4, 5});
}

TEST(ComposedShapes, SqueezeUnsqueezeFlatten) {
  expectBoth({kSix}, [](T t) { return squeeze(unsqueeze(t[0], 1), 1); }, {2, 3},
             {0, 1, 2, 3, 4, 5});
  expectBoth({kSix}, [](T t) { return squeeze(unsqueeze(unsqueeze(t[0], -1), 0)); }, {2, 3},
             {0, 1, 2, 3, 4, 5});
  expectBoth({kSix}, [](T t) { return unsqueeze(t[0], -2); }, {2, 1, 3}, {0, 1, 2, 3, 4, 5});
  expectBoth({kSix}, [](T t) { return flatten(unsqueeze(t[0], 2), 1); }, {2, 3},
             {0, 1, 2, 3, 4, 5});
  // Both ends of what an axis may be, counted from the front and from the back.
  expectBoth({kSix}, [](T t) { return unsqueeze(t[0], -3); }, {1, 2, 3}, {0, 1, 2, 3, 4, 5});
  expectBoth({kSix}, [](T t) { return unsqueeze(t[0], 2); }, {2, 3, 1}, {0, 1, 2, 3, 4, 5});
  expectBoth({kSix}, [](T t) { return squeeze(unsqueeze(t[0], 0), -3); }, {2, 3},
             {0, 1, 2, 3, 4, 5});
  const Array cube = floats({0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2});
  expectBoth({cube}, [](T t) { return flatten(t[0], 0, -2); }, {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expectBoth({cube}, [](T t) { return flatten(t[0], -2, -1); }, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  expectBoth({cube}, [](T t) { return flatten(t[0], 1, 1); }, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  // As PyTorch: a number becomes a vector of one.
  expect({floats({7}, {})}, [](T t) { return flatten(t[0]); }, {1}, {7});
}

TEST(ComposedShapes, SplitChunkStack) {
  const Array row = floats({0, 1, 2, 3, 4, 5, 6}, {1, 7});
  auto lastOf = [](const std::vector<Tensor>& parts) { return parts.back(); };
  expect({row}, [&](T t) { return lastOf(split(t[0], 3, 1)); }, {1, 1}, {6});
  expect({row}, [&](T t) { return split(t[0], 3, -1)[1]; }, {1, 3}, {3, 4, 5});
  expect({row}, [&](T t) { return splitSizes(t[0], {2, 5}, 1)[1]; }, {1, 5}, {2, 3, 4, 5, 6});
  expect({row}, [&](T t) { return split(t[0], 7, 1)[0]; }, {1, 7}, {0, 1, 2, 3, 4, 5, 6});
  expect({row}, [&](T t) { return split(t[0], 9, 1)[0]; }, {1, 7}, {0, 1, 2, 3, 4, 5, 6});
  expect({row}, [&](T t) { return splitSizes(t[0], {0, 7, 0}, -1)[1]; }, {1, 7},
         {0, 1, 2, 3, 4, 5, 6});
  expect({row}, [&](T t) { return lastOf(chunk(t[0], 7, 1)); }, {1, 1}, {6});
  // As PyTorch: 7 in 4 pieces are 2, 2, 2, 1; in 5 pieces, 2, 2, 2, 1 too.
  expect({row}, [&](T t) { return lastOf(chunk(t[0], 5, 1)); }, {1, 1}, {6});
  Graph g;
  EXPECT_EQ(chunk(g.input("x", DType::F32, {7}), 5).size(), 4u);
  // Of nothing one piece, which has nothing.
  const std::vector<Tensor> none = split(g.input("none", DType::F32, {3, 0}), 2, 1);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].shape(), (Dims{3, 0}));
  const Dim b = g.dim("b", 1, 8);
  EXPECT_EQ(splitSizes(g.input("z", DType::F32, {b * 2}), {b, b})[1].shape(), Dims{b});
  expectBoth({kSix, kSix}, [](T t) { return stack({t[0], t[1] + 10.0}, 1); }, {2, 2, 3},
             {0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15});
  expect({kSix, kSix}, [](T t) { return stack({t[0], t[1] + 10.0}, -3); }, {2, 2, 3},
         {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
  expectBoth({kSix, kSix}, [](T t) { return stack({t[0], t[1] + 10.0}, -1); }, {2, 3, 2},
             {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15});
}

TEST(ComposedShapes, ValuesFromNothing) {
  expectBoth({kSix}, [](T t) { return t[0] + full(t[0], {3}, 7) + ones(t[0], {1, 3}); }, {2, 3},
             {8, 9, 10, 11, 12, 13});
  expectBoth({kSix}, [](T t) { return zerosLike(t[0]) - onesLike(t[0]); }, {2, 3}, Values(6, -1));
  Graph g;
  g.output("y", g.full({2}, 0.5) + g.ones({2}) + g.zeros({2}) + g.arange(2, DType::F32));
  Session session(compile(g, {.backend = "reference"}));
  const Array y = session.run("forward", Arrays()).at("y");
  EXPECT_EQ(y.at(0), 1.5);
  EXPECT_EQ(y.at(1), 2.5);
}

TEST(ComposedShapes, OneHot) {
  expectBoth({ints({2, 0, 5}, {3})}, [](T t) { return oneHot(t[0], 3); }, {3, 3},
             {0, 0, 1, 1, 0, 0, 0, 0, 0});
  Graph g;
  Tensor ids = g.input("i", DType::I32, {2});
  EXPECT_EQ(oneHot(ids, 4).dtype(), DType::I64);
  EXPECT_EQ(oneHot(ids, 4, DType::BF16).dtype(), DType::BF16);
}

TEST(ComposedValues, ComparisonsGiveBools) {
  auto asInts = [](const Tensor& mask) { return cast(mask, DType::I64); };
  expectBoth({kSix}, [&](T t) { return asInts(t[0] == 2.0); }, {2, 3}, {0, 0, 1, 0, 0, 0});
  expectBoth({kSix}, [&](T t) { return asInts(t[0] != t[0] * 2.0); }, {2, 3}, {0, 1, 1, 1, 1, 1});
  expectBoth({kSix}, [&](T t) { return asInts(t[0] < 2); }, {2, 3}, {1, 1, 0, 0, 0, 0});
  expectBoth({kSix}, [&](T t) { return asInts(2 <= t[0]); }, {2, 3}, {0, 0, 1, 1, 1, 1});
  expectBoth({kSix}, [&](T t) { return asInts((t[0] > 1.0) & (t[0] <= 3.0)); }, {2, 3},
             {0, 0, 1, 1, 0, 0});
  expectBoth({kSix}, [&](T t) { return asInts(!(t[0] >= 1.0) | (t[0] == t[0] * 0.0 + 4.0)); },
             {2, 3}, {1, 0, 0, 0, 1, 0});
}

TEST(ComposedValues, WhereMaskedFillClamp) {
  expectBoth({kSix}, [](T t) { return where(t[0] < 2.0, t[0], -1.0); }, {2, 3},
             {0, 1, -1, -1, -1, -1});
  expectBoth({kSix}, [](T t) { return where(t[0] < 2.0, 9.0, t[0]); }, {2, 3}, {9, 9, 2, 3, 4, 5});
  expectBoth({kSix}, [](T t) { return maskedFill(t[0], t[0] > 3.0, -kInf); }, {2, 3},
             {0, 1, 2, 3, -kInf, -kInf});
  expectBoth({kSix}, [](T t) { return clamp(t[0], 1, 3); }, {2, 3}, {1, 1, 2, 3, 3, 3});
  expectBoth({kSix}, [](T t) { return clamp(t[0], {}, 2); }, {2, 3}, {0, 1, 2, 2, 2, 2});
  // PyTorch: the upper bound wins, NaN stays.
  expect({floats({0, kNan}, {2})}, [](T t) { return clamp(t[0], 5, 2); }, {2}, {2, kNan});
}

TEST(ComposedValues, Triangles) {
  const Array x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  expect({x}, [](T t) { return tril(t[0]); }, {3, 3}, {1, 0, 0, 4, 5, 0, 7, 8, 9});
  expect({x}, [](T t) { return triu(t[0]); }, {3, 3}, {1, 2, 3, 0, 5, 6, 0, 0, 9});
  expect({x}, [](T t) { return tril(t[0], -1); }, {3, 3}, {0, 0, 0, 4, 0, 0, 7, 8, 0});
  expect({x}, [](T t) { return triu(t[0], 1); }, {3, 3}, {0, 2, 3, 0, 0, 6, 0, 0, 0});
  expectBoth({kSix}, [](T t) { return tril(stack({t[0], t[0]}, 1), 1); }, {2, 2, 3},
             {0, 1, 0, 0, 1, 2, 3, 4, 0, 3, 4, 5});
}

TEST(ComposedValues, LogSumExpNeitherOverflowsNorGivesNan) {
  const Array x = floats({1000, 1000, -kInf, -kInf, 0, kInf, kNan, 0}, {4, 2});
  const double two = std::log(2.0);
  expectBoth({x}, [](T t) { return logsumexp(t[0], {1}); }, {4}, {1000 + two, -kInf, kInf, kNan});
  expectBoth({x}, [](T t) { return logsumexp(t[0], {-1}, true); }, {4, 1},
             {1000 + two, -kInf, kInf, kNan});
}

TEST(ComposedValues, VarianceIsDividedByTheCountLessOne) {
  expectBoth({kSix}, [](T t) { return var(t[0], {1}); }, {2}, {1, 1});
  expectBoth({kSix}, [](T t) { return var(t[0], {0, 1}); }, {}, {3.5});
  expectBoth({kSix}, [](T t) { return var(t[0], {0}, true, 0); }, {1, 3}, {2.25, 2.25, 2.25});
  expectBoth({kSix}, [](T t) { return var(t[0], {1}, false, 2); }, {2}, {2, 2});
  // Where no count is left: infinite, never negative.
  expectBoth({kSix}, [](T t) { return var(t[0], {1}, false, 3); }, {2}, {kInf, kInf});
  expectBoth({kSix}, [](T t) { return var(t[0], {1}, true, 5); }, {2, 1}, {kInf, kInf});
  // One element: 0 / 0, as in PyTorch.
  expectBoth({floats({4}, {1})}, [](T t) { return var(t[0], {0}); }, {}, {kNan});
}

TEST(ComposedIndices, SortKeepsTiesAndPutsNanLast) {
  const Array x = floats({3, 1, kNan, 1, 2}, {1, 5});
  expect({x}, [](T t) { return sort(t[0]).first; }, {1, 5}, {1, 1, 2, 3, kNan});
  expectBoth({x}, [](T t) { return argsort(t[0]); }, {1, 5}, {1, 3, 4, 0, 2});
  expectBoth({x}, [](T t) { return argsort(t[0], -1, true); }, {1, 5}, {2, 0, 4, 1, 3});
  // Equal numbers keep their order in both directions, NaN is the largest.
  const Array equal = floats({2, kNan, 1, 2, kNan, 1}, {2, 3});
  expectBoth({equal}, [](T t) { return argsort(t[0], 1); }, {2, 3}, {2, 0, 1, 2, 0, 1});
  expectBoth({equal}, [](T t) { return argsort(t[0], 1, true); }, {2, 3}, {1, 0, 2, 1, 0, 2});
  expect({equal}, [](T t) { return argsort(t[0], 0); }, {2, 3}, {0, 0, 0, 1, 1, 1});
  expect({equal}, [](T t) { return argsort(t[0], -2, true); }, {2, 3}, {0, 0, 0, 1, 1, 1});
  const double least = -9223372036854775808.0;
  expect({ints({0, least, -1}, {3, 1})}, [](T t) { return sort(t[0], 0).first; }, {3, 1},
         {least, -1, 0});
}

TEST(ComposedIndices, TakeAlongAxis) {
  const Array at = ints({2, 0, 1, 1}, {2, 2});
  expectBoth({kSix, at}, [](T t) { return takeAlongAxis(t[0], t[1], 1); }, {2, 2}, {2, 0, 4, 4});
  expect({kSix, ints({1, 0, 1}, {1, 3})}, [](T t) { return takeAlongAxis(t[0], t[1], 0); }, {1, 3},
         {3, 1, 5});
}

TEST(ComposedIndices, OfThirtyTwoBitsAndAlongTheFirstAxis) {
  const Array at = floats({2, 0, 1, 1}, {2, 2}, DType::I32);
  expectBoth({kSix, at}, [](T t) { return takeAlongAxis(t[0], t[1], -1); }, {2, 2}, {2, 0, 4, 4});
  expectBoth({kSix, at, floats({10, 20, 30, 40}, {2, 2})},
             [](T t) { return scatterAdd(t[0], t[1], t[2], 1); }, {2, 3}, {20, 1, 12, 3, 74, 5});
  // Two for one place are added, and the last of them stays.
  const Array same = ints({1, 1, 1}, {1, 3}), by = floats({7, 8, 9}, {1, 3});
  expect({kSix, same, by}, [](T t) { return scatterAdd(t[0], t[1], t[2], 0); }, {2, 3},
         {0, 1, 2, 10, 12, 14});
  expect({kSix, ints({1, 1, 0, 1, 1, 0}, {2, 3}), floats({1, 2, 3, 4, 5, 6}, {2, 3})},
         [](T t) { return scatter(t[0], t[1], t[2], -2); }, {2, 3}, {0, 1, 6, 4, 5, 5});
}

TEST(ComposedIndices, ScatterTakesTheLastAndScatterAddAll) {
  const Array at = ints({2, 2, 0, 1}, {2, 2}), by = floats({10, 20, 30, 40}, {2, 2});
  expectBoth({kSix, at, by}, [](T t) { return scatter(t[0], t[1], t[2], 1); }, {2, 3},
             {0, 1, 20, 30, 40, 5});
  expectBoth({kSix, at, by}, [](T t) { return scatterAdd(t[0], t[1], t[2], -1); }, {2, 3},
             {0, 1, 32, 33, 44, 5});
  expect({kSix, ints({1, 0, 1}, {1, 3}), floats({7, 8, 9}, {1, 3})},
         [](T t) { return scatter(t[0], t[1], t[2], 0); }, {2, 3}, {0, 8, 2, 7, 4, 9});
}

// Without an index everything stays as it was, as in PyTorch.
TEST(ComposedIndices, NoIndexIsNone) {
  const Array at = ints({}, {2, 0}), by = floats({}, {2, 0});
  expect({kSix, at, by}, [](T t) { return scatter(t[0], t[1], t[2], 1) + 0.0; }, {2, 3},
         {0, 1, 2, 3, 4, 5});
  expect({kSix, at, by}, [](T t) { return scatterAdd(t[0], t[1], t[2], 1) + 0.0; }, {2, 3},
         {0, 1, 2, 3, 4, 5});
  expect({kSix, at}, [](T t) { return takeAlongAxis(t[0], t[1], 1); }, {2, 0}, {});
}

TEST(ComposedIndices, AnIndexOutsideIsAnErrorOfTheRun) {
  for (const char* backend : {"reference", "cpu"})
    for (double index : {3.0, -1.0}) {
      const std::vector<Array> inputs = {kSix, ints({0, index}, {2, 1}), floats({1, 2}, {2, 1})};
      const std::vector<Record> records = {
          [](T t) { return takeAlongAxis(t[0], t[1], 1); },
          [](T t) { return scatter(t[0], t[1], t[2], 1); },
          [](T t) { return scatterAdd(t[0], t[1], t[2], 1); },
      };
      for (const Record& record : records)
        EXPECT_THROW(run(backend, inputs, record), Error) << backend << " " << index;
    }
}

// What two operands share and nothing else has is summed by their product, not behind it.
TEST(Einsum, SharedAxesAreThoseOfAMatmul) {
  auto textOf = [](const char* equation, const Dims& a, const Dims& b, const Dims& c) {
    Graph g;
    std::vector<Tensor> operands{g.input("a", DType::F32, a), g.input("b", DType::F32, b)};
    if (!c.empty()) operands.push_back(g.input("c", DType::F32, c));
    g.output("y", einsum(equation, operands));
    return g.text();
  };
  for (const std::string& text : {textOf("ij,jk->ik", {2, 3}, {3, 4}, {}),
                                  textOf("bhqd,bhkd->bhqk", {1, 2, 5, 4}, {1, 2, 3, 4}, {}),
                                  textOf("ij,jk,kl->il", {2, 3}, {3, 4}, {4, 5})}) {
    EXPECT_THAT(text, testing::HasSubstr("lathe.matmul"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("reduce_sum")));
  }
}

TEST(Einsum, ProductsSumsAndOrders) {
  const Array a = kSix, b = floats({1, 0, 2, 0, 1, 3}, {3, 2});
  expect({a, b}, [](T t) { return einsum("ij,jk->ik", {t[0], t[1]}); }, {2, 2}, {4, 6, 16, 15});
  expect({a, b}, [](T t) { return einsum("ij,jk", {t[0], t[1]}); }, {2, 2}, {4, 6, 16, 15});
  expect({a, b}, [](T t) { return einsum("ij,jk->ki", {t[0], t[1]}); }, {2, 2}, {4, 16, 6, 15});
  expectBoth({a}, [](T t) { return einsum("ij->ji", {t[0]}); }, {3, 2}, {0, 3, 1, 4, 2, 5});
  expectBoth({a}, [](T t) { return einsum("ij->", {t[0]}); }, {}, {15});
  expectBoth({a, a}, [](T t) { return einsum("ij, ij -> i", {t[0], t[1]}); }, {2}, {5, 50});
  expectBoth({a, a}, [](T t) { return einsum("ij,ij->ij", {t[0], t[1]}); }, {2, 3},
             {0, 1, 4, 9, 16, 25});
  expect({a, b}, [](T t) { return einsum("Ij,jK->KI", {t[0], t[1]}); }, {2, 2}, {4, 16, 6, 15});
  const Array v = floats({1, 2}, {2});
  expect({v, v}, [](T t) { return einsum("i,j->ij", {t[0], t[1]}); }, {2, 2}, {1, 2, 2, 4});
  // A scalar has no letters, in the last place neither.
  expect({v, floats({3}, {})}, [](T t) { return einsum("i,->i", {t[0], t[1]}); }, {2}, {3, 6});
  expect({v, v, v}, [](T t) { return einsum("i,i,j->j", {t[0], t[1], t[2]}); }, {2}, {5, 10});
  expect({ints({1, 2}, {2}), ints({3, 4}, {2})}, [](T t) { return einsum("i,i->", {t[0], t[1]}); },
         {}, {11});
}

TEST(Einsum, Diagonals) {
  const Array a = floats({0, 1, 2, 3, 4, 5, 6, 7, 8}, {3, 3});
  expect({a}, [](T t) { return einsum("ii->i", {t[0]}); }, {3}, {0, 4, 8});
  expect({a}, [](T t) { return einsum("ii", {t[0]}); }, {}, {12});
  const Array v = floats({1, 2, 3}, {3});
  expect({a, v}, [](T t) { return einsum("ii,i->i", {t[0], t[1]}); }, {3}, {0, 8, 24});
  // The two axes need not be neighbours, and three may be one.
  const Array cube = floats({0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2});
  expect({cube}, [](T t) { return einsum("iji->ji", {t[0]}); }, {2, 2}, {0, 5, 2, 7});
  expect({cube}, [](T t) { return einsum("iii->i", {t[0]}); }, {2}, {0, 7});
  // The first axis is a symbol here.
  expectBoth({cube}, [](T t) { return einsum("bii->b", {t[0]}); }, {2}, {3, 11});
}

TEST(Einsum, Ellipses) {
  const Array a = floats({0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2}), b = floats({1, 2}, {2});
  expect({a, b}, [](T t) { return einsum("...i,i->...", {t[0], t[1]}); }, {2, 2}, {2, 8, 14, 20});
  expectBoth({a}, [](T t) { return einsum("...ij->...ji", {t[0]}); }, {2, 2, 2},
             {0, 2, 1, 3, 4, 6, 5, 7});
  // Without an arrow the axes below the ellipsis come first.
  expectBoth({a}, [](T t) { return einsum("i...", {t[0]}); }, {2, 2, 2}, {0, 4, 1, 5, 2, 6, 3, 7});
  // It may stand for nothing.
  expect({b, b}, [](T t) { return einsum("...i,...i->...", {t[0], t[1]}); }, {}, {5});
  // The shorter lies along the last axes of the longer, and a size of 1 is repeated.
  const Array column = floats({1, 10}, {2, 1});
  expect({a, b}, [](T t) { return einsum("i...,...->i...", {t[0], t[1]}); }, {2, 2, 2},
         {0, 2, 2, 6, 4, 10, 6, 14});
  expect({column, a}, [](T t) { return einsum("...,i...->...i", {t[0], t[1]}); }, {2, 2, 2},
         {0, 4, 1, 5, 20, 60, 30, 70});
  const Array rows = floats({1, 2}, {1, 2}), matrix = floats({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  expect({rows, matrix}, [](T t) { return einsum("...d,...kd->...k", {t[0], t[1]}); }, {2, 2},
         {5, 11, 17, 23});
  // Each of the two is repeated along one axis.
  expect({column, rows}, [](T t) { return einsum("...,...->...", {t[0], t[1]}); }, {2, 2},
         {1, 2, 10, 20});
  // The first operand is the one that is repeated, in front of a product and of a sum of three.
  const Array first = floats({1, 2, 3, 4}, {1, 2, 2});
  expect({first, a}, [](T t) { return einsum("...ij,...jk->...ik", {t[0], t[1]}); }, {2, 2, 2},
         {4, 7, 8, 15, 16, 19, 36, 43});
  expect({first, a, b}, [](T t) { return einsum("...ij,...jk,k->...i", {t[0], t[1], t[2]}); },
         {2, 2}, {18, 38, 54, 122});
  expect({rows, column}, [](T t) { return einsum("...,...->...", {t[0], t[1]}); }, {2, 2},
         {1, 2, 10, 20});
  // Of size 1 everywhere it stays.
  const Array one = floats({1, 2, 3, 4}, {1, 2, 2}), row = floats({1, 2}, {1, 2});
  expect({one, one}, [](T t) { return einsum("...ij,...jk->...ik", {t[0], t[1]}); }, {1, 2, 2},
         {7, 10, 15, 22});
  expect({row, row}, [](T t) { return einsum("...,...->...", {t[0], t[1]}); }, {1, 2}, {1, 4});
}

// What PyTorch gives.
TEST(Operators, RemaindersHaveTheSignOfTheDivisor) {
  const Array n = ints({7, -7, 7, -7, 6, -6, 0, 5}, {8}),
              d = ints({3, 3, -3, -3, 3, -3, 5, 0}, {8});
  expectBoth({n, d}, [](T t) { return t[0] % t[1]; }, {8}, {1, 2, -2, -1, 0, 0, 0, 0});
  expectBoth({n}, [](T t) { return t[0] % 3; }, {8}, {1, 2, 1, 2, 0, 0, 0, 2});
  expectBoth({n}, [](T t) { return t[0] % -3; }, {8}, {-2, -1, -2, -1, 0, 0, 0, -1});
  expectBoth({ints({2, -2, 3}, {3})}, [](T t) { return 7 % t[0]; }, {3}, {1, -1, 1});
  const Array x = floats({7.5, -7.5, 7.5, -7.5, 6, kInf, 1, 5, -5}, {9});
  const Array y = floats({2, 2, -2, -2, 3, 2, 0, kInf, kInf}, {9});
  expectBoth({x, y}, [](T t) { return t[0] % t[1]; }, {9},
             {1.5, 0.5, -0.5, -1.5, 0, kNan, kNan, 5, kInf});
  expectBoth({floats({1, -1}, {2})}, [](T t) { return t[0] % 0.75; }, {2}, {0.25, 0.5});
}

TEST(Operators, AnAssignmentMakesAHandleOfTheResult) {
  expectBoth({kSix, kSix},
             [](T t) {
               Tensor x = t[0];
               const Tensor before = x;
               x += t[1];
               x *= 3;
               x -= before;
               x /= 2.0;
               x %= 4;
               return stack({before, x}, 2);  // `before` is still what it was
             },
             {2, 3, 2}, {0, 0, 1, 2.5, 2, 1, 3, 3.5, 4, 2, 5, 0.5});
}

TEST(Operators, AnAssignmentNamesTheCallersLine) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {2}), y = g.input("y", DType::F32, {3});
  const unsigned line = __LINE__ + 2;
  try {
    x += y;
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.line(), line);
  }
  EXPECT_EQ(x.shape(), Dims{2});  // and changes nothing
}

TEST(Operators, NumbersBesideFunctionsTakeTheTensorsDtype) {
  const Array x = floats({-1, 2, 3, kNan}, {4});
  expectBoth({x}, [](T t) { return pow(t[0], 2); }, {4}, {1, 4, 9, kNan});
  expectBoth({x}, [](T t) { return pow(2, t[0]); }, {4}, {0.5, 4, 8, kNan});
  expectBoth({x}, [](T t) { return pow(0.25, t[0]); }, {4}, {4, 0.0625, 0.015625, kNan});
  expectBoth({x}, [](T t) { return pow(10, t[0]); }, {4}, {0.1, 100, 1000, kNan});
  expectBoth({ints({-1, 3}, {2})}, [](T t) { return pow(2, cast(t[0], DType::F32)); }, {2},
             {0.5, 8});
  expectBoth({floats({-1, 3}, {2}, DType::I32)}, [](T t) { return pow(2, cast(t[0], DType::F32)); },
             {2}, {0.5, 8});
  expectBoth({floats({-1, 3}, {2}, DType::F64)}, [](T t) { return pow(10, pow(2, t[0])); }, {2},
             {std::sqrt(10), 1e8});
  expectBoth({ints({7, -7}, {2})}, [](T t) { return div(t[0], 2); }, {2}, {3, -3});
  expectBoth({x}, [](T t) { return max(t[0], 0); }, {4}, {0, 2, 3, kNan});
  expectBoth({x}, [](T t) { return min(t[0], 2.5); }, {4}, {-1, 2, 2.5, kNan});
  Graph g;
  EXPECT_EQ(max(g.input("i", DType::I64, {2}), 3).dtype(), DType::I64);
  EXPECT_EQ(pow(g.input("h", DType::BF16, {2}), 2).dtype(), DType::BF16);
}

TEST(Einsum, AttentionOverSymbols) {
  Values q, k;
  for (int i = 0; i < 2 * 2 * 3 * 2; ++i) {
    q.push_back(i % 5 - 2);
    k.push_back(i % 7 - 3);
  }
  Values expected;
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          double sum = 0;
          for (int d = 0; d < 2; ++d)
            sum +=
                q[size_t(((b * 3 + i) * 2 + h) * 2 + d)] * k[size_t(((b * 2 + h) * 3 + j) * 2 + d)];
          expected.push_back(sum);
        }
  expectBoth(
      {floats(q, {2, 3, 2, 2}), floats(k, {2, 2, 3, 2})},
      [](T t) { return einsum("bqhd,bhkd->bhqk", {t[0], t[1]}); }, {2, 2, 3, 3}, expected);
}

}  // namespace
}  // namespace lathe
