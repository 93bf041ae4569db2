// SPDX-License-Identifier: Apache-2.0
// A state whose next value cannot be written in place lives in the arena until it is copied back
// after the last call: nothing that is computed in between may take its place.
#include <gtest/gtest.h>

#include <algorithm>
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

INSTANTIATE_TEST_SUITE_P(Backends, StateStorage, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lathe
