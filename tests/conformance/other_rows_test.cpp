// SPDX-License-Identifier: Apache-2.0
// A row op's values that are read again, in its own row and in others: what a kernel keeps of one
// row is not taken for another's.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/lathe.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

constexpr int64_t kRows = 5;

// x [rows, n] again, its rows elsewhere.
using Rows = std::function<Tensor(const Tensor& x, const Tensor& ids, int64_t n)>;
const std::vector<std::pair<std::string, Rows>> kReaders{
    {"own", [](const Tensor& x, const Tensor&, int64_t) { return x; }},
    {"reversed", [](const Tensor& x, const Tensor&, int64_t) { return reverse(x, {0}); }},
    {"first", [](const Tensor& x, const Tensor&, int64_t) { return sliceAxis(x, 0, 0, 1); }},
    {"last", [](const Tensor& x, const Tensor&, int64_t) { return sliceAxis(x, 0, kRows - 1, 1); }},
    {"rolled",
     [](const Tensor& x, const Tensor&, int64_t) {
       return concat({sliceAxis(x, 0, 2, kRows - 2), sliceAxis(x, 0, 0, 2)}, 0);
     }},
    {"gathered", [](const Tensor& x, const Tensor& ids, int64_t) { return gather(x, ids, 0); }},
    {"turned back",
     [](const Tensor& x, const Tensor&, int64_t n) {
       return reshape(reverse(reshape(x, {1, kRows, n}), {1}), {kRows, n});
     }},
};
// Values of a row, and a number of the row that is made of them.
const std::vector<std::pair<std::string, std::function<std::pair<Tensor, Tensor>(const Tensor&)>>>
    kRowOps{
        {"exp", [](const Tensor& x) { return std::pair{exp(x), reduceSum(exp(x), {1}, true)}; }},
        {"shifted",
         [](const Tensor& x) {
           const Tensor y = exp(x - reduceMax(x, {1}, true));
           return std::pair{y, reduceSum(y, {1}, true)};
         }},
        {"squares",
         [](const Tensor& x) {
           const Tensor y = x * sigmoid(x);
           return std::pair{y, rsqrt(reduceMean(y * y, {1}, true) + 1e-5)};
         }},
    };

class OtherRows : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, OtherRows, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(OtherRows, AreNotTheOwn) {
  for (int64_t n : {33, 256}) {
    Graph g;
    const Tensor x = g.input("x", DType::F32, {kRows, n}),
                 ids = g.input("ids", DType::I64, {kRows});
    for (const auto& [op, make] : kRowOps)
      for (const auto& [reader, rows] : kReaders) {
        // A factor of its own each, so that no two share their values.
        const auto [y, number] = make(x * (1 + 0.01 * double(op.size() + 10 * reader.size())));
        g.output(op + ", " + reader, y * number + rows(y, ids, n) * 0.5);
      }
    Array values(DType::F32, {kRows, n});
    for (int64_t i = 0; i < values.size(); ++i) values.set(i, double(i * 7919 % 1013) / 500 - 1);
    const Arrays inputs{{"x", values},
                        {"ids", Array::fromInts(std::vector<int64_t>{3, 0, 4, 1, 1}, {kRows})}};
    auto run = [&](CompileOptions options) {
      return Session(compile(g, std::move(options)), {.threads = 1, .device = "host"})
          .run("forward", inputs);
    };
    const Arrays got = run({.backend = GetParam()});
    for (const auto& [name, want] : run({.backend = "reference", .stopAfterRewrite = 0})) {
      ASSERT_TRUE(isFinite(want));
      EXPECT_LE(largestError(got.at(name), want), 1e-5 * largestValue(want)) << name << ", n " << n;
    }
  }
}

}  // namespace
}  // namespace lathe
