// SPDX-License-Identifier: Apache-2.0
// Values that are used twice, one behind the other: as many ways lead through the graph as two to
// the number of them, and nothing may walk them one by one. A test that does never ends.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lathe/backends/backend.h"
#include "lathe/inspect/graph_diff.h"
#include "lathe/inspect/why_not.h"
#include "lathe/lathe.h"

namespace lathe {
namespace {

// As many ways as 2^64, or 2^24 where the sanitizer would keep gigabytes of them.
#if defined(__has_feature)
constexpr int kLinks = __has_feature(thread_sanitizer) ? 24 : 64;
#else
constexpr int kLinks = 64;
#endif

struct Chain {
  const char* name;
  /// From f32 [rows, 32].
  std::function<Tensor(Graph& g, const Tensor& x)> build;
};
void PrintTo(const Chain& c, std::ostream* os) { *os << c.name; }

// `link` of itself, so many times.
Tensor chained(Tensor y, const std::function<Tensor(const Tensor& y)>& link) {
  for (int i = 0; i < kLinks; ++i) y = link(y);
  return y;
}

const Chain kChains[] = {
    {"squares", [](Graph&, const Tensor& x) { return chained(x, [](auto& y) { return y * y; }); }},
    {"residuals",
     [](Graph&, const Tensor& x) {
       return chained(x, [](auto& y) { return (y + y * 0.01) * 0.5; });
     }},
    {"choices",
     [](Graph&, const Tensor& x) {
       return chained(
           x, [](auto& y) { return select(compare(y, y * 0.5, Compare::gt), y, exp(y) * 0.5); });
     }},
    {"products",
     [](Graph& g, const Tensor& x) {
       const Tensor w = g.weight("w", DType::F32, {32, 32});
       return chained(x, [&](auto& y) { return (y + tanh(matmul(y, w))) * 0.5; });
     }},
    {"maxima",
     [](Graph&, const Tensor& x) {
       return chained(x, [](auto& y) { return (y - reduceMax(y, {-1}, true)) * 0.5; });
     }},
    {"pieces",
     [](Graph&, const Tensor& x) {
       return chained(x, [](auto& y) {
         const Tensor low = sliceAxis(y, -1, 0, 16), high = sliceAxis(y, -1, 16, 16);
         return concat({high + low * 0.5, low}, -1) * 0.6;
       });
     }},
    {"casts",
     [](Graph&, const Tensor& x) {
       return chained(x, [](auto& y) {
         const Tensor narrow = cast(y, DType::BF16);
         return cast(narrow + narrow, DType::F32) * 0.5;
       });
     }},
    {"weights",
     [](Graph& g, const Tensor& x) {
       const Tensor w = chained(g.weight("w", DType::F32, {32, 32}),
                                [](auto& y) { return (y + swapAxes(y, 0, 1)) * 0.5; });
       return matmul(x, swapAxes(w, 0, 1));
     }},
    {"indices",
     [](Graph& g, const Tensor& x) {
       const Tensor ids =
           chained(g.arange(32), [](auto& i) { return max(i, div(i + i, scalarLike(i, 2))); });
       return gather(x, ids, 1);
     }},
    {"masks",
     [](Graph& g, const Tensor& x) {
       const Tensor place = reshape(g.arange(32), {1, 32});
       const Tensor first = compare(place, reshape(g.arange(32), {32, 1}), Compare::le);
       const Tensor mask =
           chained(first, [](auto& m) { return logicalAnd(m, logicalOr(m, logicalNot(m))); });
       const Tensor q = reshape(x, {1, 1, x.dim(0), 32});
       const Tensor keys = g.weight("keys", DType::F32, {1, 1, 32, 32});
       const Tensor scores = matmul(q, swapAxes(keys, -1, -2));
       const Tensor row = sliceAxis(mask, 0, 31, 1);
       const Tensor hidden = select(row, scores, scalarLike(scores, -INFINITY));
       return reshape(matmul(nn::softmax(hidden, -1), keys), {x.dim(0), 32});
     }},
};

class ReusedValues : public ::testing::TestWithParam<Chain> {
 protected:
  static Graph graph() {
    Graph g;
    const Tensor x = g.input("x", DType::F32, {g.dim("rows", 1, 8), 32});
    g.output("y", GetParam().build(g, x));
    return g;
  }
};

TEST_P(ReusedValues, AreCompiledForEveryBackend) {
  const Graph g = graph();
  Array x(DType::F32, {3, 32});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, 0.25 + 0.007 * double(i));
  Array want;
  for (const std::string& backend : backendNames()) {
    SCOPED_TRACE(backend);
    Session session(compile(g, {.backend = backend}), {.device = backend == "cuda" ? "host" : ""});
    session.bindRandomWeights(3);
    const Array y = session.run("forward", {{"x", x}}).at("y");
    if (!want.defined()) want = y.clone();
    for (int64_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y.at(i), want.at(i), 1e-3 * (1 + std::abs(want.at(i)))) << i;
  }
}

TEST_P(ReusedValues, AreExplained) {
  const Graph g = graph();
  whyNot(g);
  EXPECT_TRUE(diff(g, graph()).equal);
  EXPECT_TRUE(diff(g, graph(), {.stage = "fused"}).equal);
}

INSTANTIATE_TEST_SUITE_P(Chains, ReusedValues, ::testing::ValuesIn(kChains),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
