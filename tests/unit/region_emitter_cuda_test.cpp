// SPDX-License-Identifier: Apache-2.0
// What only CUDA text has: every schedule of a region, rows over a cluster, random bits.
#include "backends/reference/interpreter_ops.h"
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionCuda : public RegionTest {
 protected:
  // Every schedule that the region has.
  void forEach(
      const std::string& text,
      const std::function<void(RegionKernelUnderTest&, cuda::RegionSchedule::Kind)>& body) {
    std::set<std::string> seen;
    for (size_t i = 0;; ++i) {
      RegionKernelUnderTest k(text, {"cuda", std::nullopt, i});
      const std::string& source = k.printed().kernels[0].kernel.source;
      if (!seen.insert(source).second) return;
      SCOPED_TRACE(source);
      body(k, k.schedule().kind);
    }
  }
};

TEST_F(RegionCuda, TakesSoftmaxUnderEverySchedule) {
  using Kind = cuda::RegionSchedule::Kind;
  for (int64_t n : {33, 1000, 4104, 33000}) {
    const std::string x = "f32[m, " + std::to_string(n) + "]";
    std::set<Kind> kinds;
    forEach("func.func @f(%x: " + x + ") -> " + x +
                " { %0 = lathe.softmax %x axis 1 masked_row zero : " + x + "\n return %0 : " + x +
                " }",
            [&](RegionKernelUnderTest& k, Kind kind) {
              if (kind == Kind::Flat && n > 1000) return;  // every thread would read its row alone
              kinds.insert(kind);
              Array in = floats({3, n}, DType::F32, 8);
              for (int64_t i = 0; i < n; ++i) in.set(n + i, -kInf);
              in.set(5, NAN);
              auto y = k.run({in}, {{"m", 3}});
              double top = -kInf, sum = 0;
              for (int64_t i = 2 * n; i < 3 * n; ++i) top = std::max(top, in.at(i));
              for (int64_t i = 2 * n; i < 3 * n; ++i) sum += std::exp(in.at(i) - top);
              expectNear(
                  y[0],
                  [&](int64_t i) {
                    return i < n ? NAN : i < 2 * n ? 0 : std::exp(in.at(i) - top) / sum;
                  },
                  6e-6, 1e-37);
            });
    EXPECT_TRUE(kinds.count(n > 32768 ? Kind::ClusterPerRow : Kind::WarpPerRow) ||
                kinds.count(Kind::BlockPerRow));
  }
}

TEST_F(RegionCuda, FindsTheGreatestOfALongRow) {
  forEach(
      "func.func @f(%x: f32[m, 33003]) -> i64[m] { %0 = lathe.argmax %x axis 1 : f32[m, 33003]\n"
      " return %0 : i64[m] }",
      [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
        Array x = floats({2, 33003});
        x.set(20001, 9);
        x.set(30002, 9);
        x.set(33003 + 7, 50);
        x.set(33003 + 32111, NAN);
        auto y = k.run({x}, {{"m", 2}});
        EXPECT_EQ(y[0].at(0), 20001);
        EXPECT_EQ(y[0].at(1), 32111);
      });
}

TEST_F(RegionCuda, DrawsTheBitsOfTheReference) {
  for (std::string n : {"1", "7", "64", "257"}) {
    const std::string text = "func.func @f(%s: tensor<i64>) -> i32[3, " + n +
                             "] { %0 = lathe.random_bits %s to <3, " + n +
                             "> : tensor<i64>\n return %0 : i32[3, " + n + "] }";
    forEach(text, [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
      const int64_t key = 0x123456789abcdef;
      auto y = k.run({Array::fromInts(std::vector<int64_t>{key}, {})});
      expectNear(
          y[0],
          [&](int64_t i) {
            auto block =
                reference::philox({uint32_t(i / 4), 0, 0, 0}, {uint32_t(key), uint32_t(key >> 32)});
            return double(int32_t(block[size_t(i % 4)]));
          },
          0);
    });
  }
}

}  // namespace
}  // namespace lathe::test
