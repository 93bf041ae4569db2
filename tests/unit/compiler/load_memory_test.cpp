// SPDX-License-Identifier: Apache-2.0
// What loading weights needs beside them goes back at its end.
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <lathe/lathe.h>

namespace lathe {
namespace {

// Bytes of this process that no file stands for.
int64_t anonymousBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  return -1;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

TEST(LoadMemory, IsGivenBackOnceWeightsAreBound) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  constexpr int64_t kWidth = 1024, kHidden = 4096, kBytes = 3 * kWidth * kHidden * 4;
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("batch", 1, 8), kWidth});
  g.output("y", nn::SwiGLU(g, "mlp", kWidth, kHidden)(x));  // gate and up become one weight
  Session session(compile(g));
  const int64_t before = anonymousBytes();
  ASSERT_GE(before, 0);
  session.bindRandomWeights(1);
  const int64_t held = anonymousBytes() - before;
  EXPECT_GT(held, kBytes * 9 / 10);
  EXPECT_LT(held, kBytes * 13 / 10) << "the merged weight was held twice";
  EXPECT_EQ(session.run("forward", {{"x", Array(DType::F32, {1, kWidth})}}).at("y").size(), kWidth);
}

TEST(LoadMemory, ValuesBetweenTheKernelsOfLoadGoBackToo) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  constexpr int64_t kWide = 4096, kNarrow = 64, kBetween = kWide * kWide * 4;
  Graph g;
  Tensor x = g.input("x", DType::F32, {g.dim("batch", 1, 8), kWide});
  Tensor a = g.weight("a", DType::F32, {kWide, kNarrow});
  Tensor b = g.weight("b", DType::F32, {kNarrow, kWide});
  Tensor c = g.weight("c", DType::F32, {kWide, kNarrow});
  g.output("y", matmul(x, matmul(matmul(a, b), c)));  // load computes a b, then (a b) c
  Session session(compile(g));
  const int64_t before = anonymousBytes();
  session.bindRandomWeights(1);
  EXPECT_LT(anonymousBytes() - before, kBetween / 2);
  const int64_t bound = anonymousBytes();
  EXPECT_EQ(session.run("forward", {{"x", Array(DType::F32, {1, kWide})}}).at("y").size(), kNarrow);
  // A step that computed the product itself would need as much again.
  EXPECT_LT(anonymousBytes() - bound, kBetween / 2);
}

}  // namespace
}  // namespace lathe
