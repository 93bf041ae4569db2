// SPDX-License-Identifier: Apache-2.0
// Scores under a fill: attention as libraries write it, with fills that the dtype holds and fills
// beyond its range, on rows that see all, some and none of the keys. Fused it gives what the graph
// says, fused or not, on every backend.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/lathe.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

constexpr int64_t kQueries = 5, kKeys = 9, kDepth = 8;

Graph attention(DType dtype, double fill, bool adds) {
  Graph g;
  const Tensor q = g.input("q", dtype, {1, 2, kQueries, kDepth}),
               k = g.input("k", dtype, {1, 2, kKeys, kDepth}),
               v = g.input("v", dtype, {1, 2, kKeys, kDepth}),
               hidden = g.input("hidden", DType::Bool, {1, 1, kQueries, kKeys});
  Tensor scores = matmul(q, swapAxes(k, -1, -2)) * 0.25;
  if (adds)
    scores = scores + maskedFill(zerosLike(scores), hidden, fill);
  else
    scores = maskedFill(scores, hidden, fill);
  g.output("y", matmul(nn::softmax(scores, -1), v));
  return g;
}

// Query 0 sees all keys, the last none.
Arrays inputs(DType dtype) {
  Arrays all;
  for (const char* name : {"q", "k", "v"}) {
    const int64_t rows = name[0] == 'q' ? kQueries : kKeys;
    Array a(dtype, {1, 2, rows, kDepth});
    for (int64_t i = 0; i < a.size(); ++i)
      a.set(i, std::round(8 * std::sin(double(i * i % 101 + name[0]))) / 4);
    all[name] = a;
  }
  Array hidden(DType::Bool, {1, 1, kQueries, kKeys});
  for (int64_t i = 0; i < kQueries; ++i)
    for (int64_t j = 0; j < kKeys; ++j)
      hidden.set(i * kKeys + j, i == kQueries - 1 || (i > 0 && (i + j) % 3 == 0));
  all["hidden"] = hidden;
  return all;
}

class MaskFills : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, MaskFills, ::testing::Values(DType::F32, DType::F16, DType::BF16),
                         [](const auto& info) { return std::string(nameOf(info.param)); });

TEST_P(MaskFills, GiveWhatTheGraphSays) {
  const DType dtype = GetParam();
  const double bound = dtype == DType::F32 ? 1e-5 : dtype == DType::F16 ? 4e-3 : 3e-2;
  for (double fill : {-1e4, -65504.0, -1e9, -3.4e38, -std::numeric_limits<double>::infinity()})
    for (bool adds : {false, true}) {
      SCOPED_TRACE("fill " + std::to_string(fill) + (adds ? " added" : " selected"));
      const Graph g = attention(dtype, fill, adds);
      const Arrays given = inputs(dtype);
      Session plain(compile(g, {.backend = "reference", .stopAfterRewrite = 0}));
      const Array want = plain.run("forward", given).at("y");
      for (const char* backend : {"reference", "cpu", "cuda"}) {
        Session session(compile(g, {.backend = backend}), {.device = "host"});
        const Array got = session.run("forward", given).at("y");
        for (int64_t i = 0; i < want.size(); ++i) {
          // The last query of each head sees none. What a sum with a fill leaves of its scores is a
          // matter of its roundings in 16 bits, which a fusion may leave out.
          const bool seesNone = i / kDepth % kQueries == kQueries - 1;
          if (seesNone && adds && dtype != DType::F32 && std::isfinite(want.at(i))) continue;
          ASSERT_TRUE(isNear(got.at(i), want.at(i), bound))
              << backend << (seesNone ? ", a row without keys" : "") << ", element " << i << ": "
              << got.at(i) << ", expected " << want.at(i);
        }
      }
    }
}

}  // namespace
}  // namespace lathe
