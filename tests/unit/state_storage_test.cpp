// SPDX-License-Identifier: Apache-2.0
// A state whose next value cannot be written in place lives in the arena until it is copied back
// after the last call: nothing that is computed in between may take its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lathe/lathe.h"

namespace lathe {
namespace {

constexpr int64_t kSize = 24;
using Matrix = std::vector<double>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(kSize * kSize);
  for (int64_t i = 0; i < kSize; ++i)
    for (int64_t k = 0; k < kSize; ++k)
      for (int64_t j = 0; j < kSize; ++j)
        c[size_t(i * kSize + j)] += a[size_t(i * kSize + k)] * b[size_t(k * kSize + j)];
  return c;
}

// A permutation with signs: products with it are exact in every dtype.
Matrix signedPermutation(int64_t salt) {
  Matrix m(kSize * kSize);
  for (int64_t i = 0; i < kSize; ++i)
    m[size_t(i * kSize + (7 * i + salt) % kSize)] = (i + salt) % 3 ? 1 : -1;
  return m;
}

class StateStorage : public ::testing::TestWithParam<const char*> {};

TEST_P(StateStorage, OutlivesTemporariesOfItsSizeThatComeAfterIt) {
  Graph g;
  g.state("kept", DType::F32, {kSize, kSize});
  const Tensor x = g.input("x", DType::F32, {kSize, kSize});
  g.writeState("kept", matmul(swapAxes(g.readState("kept"), 0, 1) + x, x));
  Tensor y = x;
  for (int i = 1; i <= 4; ++i) y = matmul(y + double(i), x);
  g.output("y", y);
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});

  Matrix kept(kSize * kSize);
  for (int64_t run = 0; run < 3; ++run) {
    const Matrix given = signedPermutation(run);
    Array x(DType::F32, {kSize, kSize});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, given[size_t(i)]);
    const Array y = session.run("forward", {{"x", x}}).at("y");
    Matrix sum = given, chain = given;
    for (int64_t i = 0; i < kSize; ++i)
      for (int64_t j = 0; j < kSize; ++j) sum[size_t(i * kSize + j)] += kept[size_t(j * kSize + i)];
    kept = product(sum, given);
    for (int i = 1; i <= 4; ++i) {
      for (double& e : chain) e += i;
      chain = product(chain, given);
    }
    const Array state = session.state("kept");
    for (int64_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(state.at(i), kept[size_t(i)]) << "run " << run << " element " << i;
      ASSERT_EQ(y.at(i), chain[size_t(i)]) << "run " << run << " element " << i;
    }
  }
}

// An output of an entry point that only reads a state may have its name: the state stays.
TEST_P(StateStorage, StaysBesideAnOutputOfItsName) {
  Graph g;
  g.state("v", DType::F32, {3});
  for (const char* entry : {"write", "read"}) {
    g.entry(entry);
    const bool writes = entry == std::string("write");
    const Tensor v = g.readState("v") + g.input("x", DType::F32, {3});
    if (writes) g.writeState("v", v * 2);
    g.output(writes ? "sum" : "v", v);
  }
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  const Array one = Array::fromFloats(std::vector<float>{1, 2, 3}, {3});
  double state = 0;  // in units of `one`
  for (const char* entry : {"read", "write", "read", "read", "write", "write", "read"}) {
    const bool writes = entry == std::string("write");
    const Array v = session.run(entry, {{"x", one}}).at(writes ? "sum" : "v");
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(v.at(i), (state + 1) * one.at(i)) << entry;
    if (writes) state = 2 * (state + 1);
    const Array kept = session.state("v");
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(kept.at(i), state * one.at(i)) << entry;
  }
}

// Each next value is made of another state: in place they would overwrite what the others read.
TEST_P(StateStorage, StatesThatTakeEachOthersValues) {
  Graph g;
  for (const char* name : {"a", "b", "c"}) g.state(name, DType::F32, {kSize});
  const Tensor x = g.input("x", DType::F32, {kSize});
  const Tensor a = g.readState("a"), b = g.readState("b"), c = g.readState("c");
  g.writeState("a", b + x);
  g.writeState("b", c);
  g.writeState("c", a - x);
  g.output("y", a + b * 2.0 + c * 4.0);
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  double states[3] = {};
  for (int run = 1; run <= 4; ++run) {
    Array x(DType::F32, {kSize});
    for (int64_t i = 0; i < kSize; ++i) x.set(i, run);
    const Array y = session.run("forward", {{"x", x}}).at("y");
    const double wanted = states[0] + 2 * states[1] + 4 * states[2];
    const double next[3] = {states[1] + run, states[2], states[0] - run};
    std::copy(next, next + 3, states);
    for (int64_t i = 0; i < kSize; ++i) {
      ASSERT_EQ(y.at(i), wanted) << "run " << run;
      for (int s = 0; s < 3; ++s)
        ASSERT_EQ(session.state(std::string(1, char('a' + s))).at(i), states[s])
            << "run " << run << " state " << s;
    }
  }
}

Array numbered(Shape shape, double first) {
  Array a(DType::F32, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, first + double(i));
  return a;
}

// The next value of `b` is `a` with a row more: it must not be written over `a`.
TEST_P(StateStorage, AnUpdateOfOneStateIsTheNextValueOfAnother) {
  Graph g;
  for (const char* name : {"a", "b"}) g.state(name, DType::F32, {1, 4, 3});
  const Tensor row = g.input("row", DType::F32, {1, 1, 3}), at = g.input("at", DType::I64, {1});
  g.output("before", g.readState("b"));
  g.writeState("b", update(g.readState("a"), row, at, 1));
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  session.run("forward", {{"row", numbered({1, 1, 3}, 1)},
                          {"at", Array::fromInts(std::vector<int64_t>{2}, {1})}});
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(session.state("a").at(i), 0) << i;
    EXPECT_EQ(session.state("b").at(i), i / 3 == 2 ? 1 + i % 3 : 0) << i;
  }
}

// Rows 0 and 1 of a state become its rows 1 and 2: what is read is overwritten.
TEST_P(StateStorage, AnUpdateByAPartOfTheSameState) {
  Graph g;
  g.state("kept", DType::F32, {1, 4, 3});
  const Tensor at = g.input("at", DType::I64, {1}), all = g.input("all", DType::F32, {1, 4, 3});
  g.writeState("kept", update(g.readState("kept"), all, at, 1));
  g.entry("shift");
  const Tensor kept = g.readState("kept");
  g.writeState("kept", update(kept, sliceAxis(kept, 1, 0, 2), g.input("at", DType::I64, {1}), 1));
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  auto position = [](int64_t p) { return Array::fromInts(std::vector<int64_t>{p}, {1}); };
  session.run("forward", {{"all", numbered({1, 4, 3}, 1)}, {"at", position(0)}});
  session.run("shift", {{"at", position(1)}});
  const double wanted[] = {1, 2, 3, 1, 2, 3, 4, 5, 6, 10, 11, 12};
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(session.state("kept").at(i), wanted[i]) << i;
}

// New rows that lie apart, and elements of a row that do, in what they are a part of.
TEST_P(StateStorage, AnUpdateByRowsThatLieApart) {
  Graph g;
  for (const char* name : {"parts", "steps", "turned"}) g.state(name, DType::F32, {1, 4, 2, 3});
  const Tensor at = g.input("at", DType::I64, {1}),
               wide = g.input("wide", DType::F32, {1, 2, 2, 6}),
               turned = g.input("across", DType::F32, {1, 2, 3, 2});
  g.writeState("parts", update(g.readState("parts"), sliceAxis(wide, 3, 2, 3), at, 1));
  g.writeState("steps", update(g.readState("steps"), sliceAxis(wide, 3, 0, 3, 2), at, 1));
  g.writeState("turned", update(g.readState("turned"), swapAxes(turned, 2, 3), at, 1));
  g.state("merged", DType::F32, {1, 4, 6});
  const Tensor rows = reshape(sliceAxis(wide, 3, 2, 3), {1, 2, 6});
  g.writeState("merged", update(g.readState("merged"), rows, at, 1));
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  session.run("forward", {{"wide", numbered({1, 2, 2, 6}, 1)},
                          {"across", numbered({1, 2, 3, 2}, 1)},
                          {"at", Array::fromInts(std::vector<int64_t>{1}, {1})}});
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t token = i / 6 - 1, row = i / 3 % 2, c = i % 3;
    const bool isNew = token >= 0 && token < 2;
    const int64_t wideRow = (token * 2 + row) * 6 + 1;
    EXPECT_EQ(session.state("parts").at(i), isNew ? wideRow + 2 + c : 0) << i;
    EXPECT_EQ(session.state("merged").at(i), isNew ? wideRow + 2 + c : 0) << i;
    EXPECT_EQ(session.state("steps").at(i), isNew ? wideRow + 2 * c : 0) << i;
    EXPECT_EQ(session.state("turned").at(i), isNew ? token * 6 + c * 2 + row + 1 : 0) << i;
  }
}

// What a kernel makes of a state element by element out of order is not written over what it reads.
TEST_P(StateStorage, ANextValueThatItsKernelReadsOutOfOrder) {
  constexpr int64_t kSide = 6;
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> next;
  };
  for (const Case& c : std::vector<Case>{
           {"transposed", [](const Tensor& x) { return swapAxes(x, 0, 1); }},
           {"reversed", [](const Tensor& x) { return reverse(x, {0}); }},
           {"moved on",
            [](const Tensor& x) {
              return concat({sliceAxis(x, 0, kSide - 1, 1), sliceAxis(x, 0, 0, kSide - 1)}, 0);
            }},
           {"multiplied", [](const Tensor& x) { return matmul(x, swapAxes(x, 0, 1)); }},
           {"a sum of all before", [](const Tensor& x) { return cumsum(x, 0); }},
           {"off its mean", [](const Tensor& x) { return x - reduceMean(x, {0, 1}, true); }},
           {"beside its turn", [](const Tensor& x) { return x * 2.0 + swapAxes(x, 0, 1); }}}) {
    SCOPED_TRACE(c.name);
    Graph g, plain;
    g.state("kept", DType::F32, {kSide, kSide});
    g.writeState("kept", c.next(g.readState("kept")));
    plain.output("y", c.next(plain.input("x", DType::F32, {kSide, kSide})));
    const Array before = numbered({kSide, kSide}, 1);
    Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
    session.setState("kept", before);
    session.run("forward", {});
    const Array want =
        Session(compile(plain, {.backend = "reference"})).run("forward", {{"x", before}}).at("y");
    for (int64_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(session.state("kept").at(i), want.at(i), 1e-5 * std::abs(want.at(i))) << i;
  }
}

// What becomes the next value of one state may be the old one of another, or made of it.
TEST_P(StateStorage, StatesTakeTheValuesOfOthers) {
  constexpr int64_t side = 4;
  struct Case {
    const char* name;
    std::function<void(Graph& g, const Tensor& a, const Tensor& b, const Tensor& x)> write;
    std::function<void(double& a, double& b, double x)> next;
  };
  for (const Case& c : {Case{"traded",
                             [](Graph& g, const Tensor& a, const Tensor& b, const Tensor&) {
                               g.writeState("a", b);
                               g.writeState("b", a);
                             },
                             [](double& a, double& b, double) { std::swap(a, b); }},
                        {"made of one that stays",
                         [](Graph& g, const Tensor& a, const Tensor&, const Tensor&) {
                           g.writeState("b", a + 1.0);
                         },
                         [](double& a, double& b, double) { b = a + 1; }},
                        {"traded and changed",
                         [](Graph& g, const Tensor& a, const Tensor& b, const Tensor&) {
                           g.writeState("a", b * 2.0);
                           g.writeState("b", a + 1.0);
                         },
                         [](double& a, double& b, double) {
                           std::swap(a, b);
                           a *= 2, b += 1;
                         }},
                        {"moved on",
                         [](Graph& g, const Tensor& a, const Tensor&, const Tensor& x) {
                           g.writeState("a", x);
                           g.writeState("b", a);
                         },
                         [](double& a, double& b, double x) { b = a, a = x; }}}) {
    SCOPED_TRACE(c.name);
    Graph g;
    g.state("a", DType::F32, {side, side});
    g.state("b", DType::F32, {side, side});
    const Tensor x = g.input("x", DType::F32, {side, side});
    const Tensor a = g.readState("a"), b = g.readState("b");
    g.output("y", a + b + x);
    c.write(g, a, b, x);
    Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
    Array first = numbered({side, side}, 1), second = numbered({side, side}, 7);
    session.setState("a", first);
    session.setState("b", second);
    for (int run = 0; run < 3; ++run) {
      const Array given = numbered({side, side}, 100 * (run + 1));
      const Array y = session.run("forward", {{"x", given}}).at("y");
      const Array nowA = session.state("a"), nowB = session.state("b");
      for (int64_t i = 0; i < first.size(); ++i) {
        double wantA = first.at(i), wantB = second.at(i);
        ASSERT_EQ(y.at(i), wantA + wantB + given.at(i)) << "run " << run;
        c.next(wantA, wantB, given.at(i));
        ASSERT_EQ(nowA.at(i), wantA) << "run " << run;
        ASSERT_EQ(nowB.at(i), wantB) << "run " << run;
        first.set(i, wantA);
        second.set(i, wantB);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, StateStorage, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe
