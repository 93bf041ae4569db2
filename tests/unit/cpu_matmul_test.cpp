// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/matmul.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/primitives.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cpu_matmul_values.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

// A product's operands, and its result in doubles by plain loops.
struct Product {
  MatmulArgs args;
  int64_t items = 1;
  Values a, b;
  std::vector<double> expected;  // [items, m, n]
};

Product makeProduct(MatmulArgs args) {
  Product p;
  int64_t aSize = args.m * args.aRowStride + args.k * args.aColStride + 1;
  int64_t bSize = args.k * args.bRowStride + args.n * args.bColStride + 1;
  for (int d = 0; d < args.batchDims; ++d) {
    p.items *= args.batch[size_t(d)];
    aSize += args.batch[size_t(d)] * args.aBatchStrides[size_t(d)];
    bSize += args.batch[size_t(d)] * args.bBatchStrides[size_t(d)];
  }
  for (int64_t d = args.batchDims - 1, size = args.m * args.n; d >= 0; --d) {
    args.cBatchStrides[size_t(d)] = size;
    size *= args.batch[size_t(d)];
  }
  args.cRowStride = args.n;
  p.args = args;
  p.a = randomValues(args.dtype, aSize, 7);
  p.b = randomValues(args.dtype, bSize, 8);
  for (int64_t item = 0; item < p.items; ++item) {
    int64_t rest = item, a0 = 0, b0 = 0;
    for (int d = args.batchDims - 1; d >= 0; --d) {
      int64_t index = rest % args.batch[size_t(d)];
      rest /= args.batch[size_t(d)];
      a0 += index * args.aBatchStrides[size_t(d)];
      b0 += index * args.bBatchStrides[size_t(d)];
    }
    for (int64_t i = 0; i < args.m; ++i)
      for (int64_t j = 0; j < args.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < args.k; ++k)
          sum += p.a.exact[size_t(a0 + i * args.aRowStride + k * args.aColStride)] *
                 p.b.exact[size_t(b0 + k * args.bRowStride + j * args.bColStride)];
        p.expected.push_back(sum);
      }
  }
  return p;
}

void checkProduct(const Product& p, KernelIsa isa, ThreadPool& pool) {
  MatmulArgs args = p.args;
  const std::string what = label(isa) + " " + std::string(nameOf(args.dtype)) + " " +
                           std::to_string(p.items) + "x" + std::to_string(args.m) + "x" +
                           std::to_string(args.k) + "x" + std::to_string(args.n) + " threads " +
                           std::to_string(pool.threads());
  std::vector<float> f32(p.expected.size());
  std::vector<uint16_t> narrow(f32.size());
  args.a = p.a.data();
  args.b = p.b.data();
  args.c = args.outDType == DType::F32 ? static_cast<void*>(f32.data()) : narrow.data();
  try {
    Buffer scratch(matmulScratchBytes(args, pool.threads(), isa));
    matmul(args, pool, scratch.scratch(), isa);
    EXPECT_TRUE(scratch.guardsHold()) << what;
  } catch (const Error& e) {
    FAIL() << what << ": " << e.what();
  }
  for (size_t at = 0; at < p.expected.size(); ++at) {
    const double got = args.outDType == DType::F32 ? f32[at] : widened(args.outDType, narrow[at]);
    ASSERT_NEAR(got, p.expected[at], tolerance(args.outDType, args.k, p.expected[at]))
        << what << " element " << at;
  }
}

void checkMatmul(const MatmulArgs& args, KernelIsa isa, int threads) {
  ThreadPool pool(threads);
  checkProduct(makeProduct(args), isa, pool);
}

MatmulArgs plainArgs(DType dtype, int64_t m, int64_t k, int64_t n) {
  MatmulArgs args;
  args.dtype = args.outDType = dtype;
  args.m = m;
  args.k = k;
  args.n = n;
  args.aRowStride = k;
  args.bRowStride = n;
  return args;
}

// The caller's own parallel code has as many threads behind a product as in front of it.
TEST(Matmul, LeavesTheCallersOpenMpTeamAsItWas) {
  auto* get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (!get || !set) GTEST_SKIP() << "oneDNN runs without OpenMP";
  const int before = get();
  for (int team : {1, 3}) {
    set(team);
    checkMatmul(plainArgs(DType::F32, 65, 66, 67), KernelIsa::of(Isa::Avx2), 1);
    EXPECT_EQ(get(), team);
  }
  set(before);
}

TEST(Matmul, AwkwardShapes) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {0, 1, 31, 257})
        for (int64_t k : {0, 1, 33})
          for (int64_t n : {0, 1, 33, 257}) checkMatmul(plainArgs(dtype, m, k, n), isa, 2);
}

TEST(Matmul, TransposedOperands) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16}) {
      MatmulArgs args = plainArgs(dtype, 31, 33, 65);
      args.aRowStride = 1;
      args.aColStride = 31;
      args.bRowStride = 1;
      args.bColStride = 33;
      checkMatmul(args, isa, 2);
    }
}

TEST(Matmul, StridesWithoutAUnitAndBroadcastRows) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16}) {
      MatmulArgs args = plainArgs(dtype, 31, 33, 40);
      args.aRowStride = 70;
      args.aColStride = 2;
      checkMatmul(args, isa, 2);
      args = plainArgs(dtype, 31, 33, 40);
      args.bRowStride = 0;
      checkMatmul(args, isa, 2);
    }
}

TEST(Matmul, BroadcastBatch) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16}) {
      MatmulArgs args = plainArgs(dtype, 17, 20, 33);
      args.batchDims = 2;
      args.batch = {3, 2};
      args.aBatchStrides = {0, 17 * 20};
      args.bBatchStrides = {20 * 33, 0};
      checkMatmul(args, isa, 2);
    }
}

// Results that are wider than the operands, by oneDNN and by loops.
TEST(Matmul, BatchesOfWidenedResults) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::BF16, DType::F16})
      for (auto [m, k, n] : {std::array<int64_t, 3>{17, 20, 33}, {2, 3, 2}}) {
        MatmulArgs args = plainArgs(dtype, m, k, n);
        args.outDType = DType::F32;
        args.batchDims = 1;
        args.batch = {3};
        args.aBatchStrides = {m * k};
        args.bBatchStrides = {k * n};
        checkMatmul(args, isa, 2);
      }
}

// Shares of the threads are whole vectors, which may be more than there are rows or columns.
TEST(Matmul, NarrowResultsOnSeveralThreads) {
  std::vector<std::unique_ptr<ThreadPool>> pools;
  for (int threads : {1, 2, 4}) pools.push_back(std::make_unique<ThreadPool>(threads));
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (int64_t batch : {1, 2})
      for (int64_t k : {3, 256})
        for (int64_t m = 1; m <= 17; ++m)
          for (int64_t n = 2; n <= 17; ++n) {
            MatmulArgs args = plainArgs(dtype, m, k, n);
            args.batchDims = 1;
            args.batch = {batch};
            args.aBatchStrides = {m * k};
            args.bBatchStrides = {k * n};
            const Product product = makeProduct(args);
            for (KernelIsa isa : tiers())
              for (auto& pool : pools) checkProduct(product, isa, *pool);
          }
}

TEST(Matmul, NarrowTransposedResultsOnSeveralThreads) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (int64_t m : {1, 3, 16, 17})
      for (int64_t n : {2, 7, 15, 17}) {
        MatmulArgs args = plainArgs(dtype, m, 256, n);
        args.aRowStride = 1;
        args.aColStride = m;
        args.bRowStride = 1;
        args.bColStride = 256;
        const Product product = makeProduct(args);
        ThreadPool pool(3);
        for (KernelIsa isa : tiers()) checkProduct(product, isa, pool);
      }
}

TEST(Matmul, WideOutputIsSplitByColumns) {
  for (KernelIsa isa : tiers()) checkMatmul(plainArgs(DType::F32, 3, 64, 1000), isa, 3);
}

// What a thread stages tells how large its part is: fewer items than threads are taken apart.
TEST(Matmul, FewItemsAreTakenApart) {
  auto staged = [](int64_t items, int threads) {
    MatmulArgs args = plainArgs(DType::F16, 512, 64, 64);
    args.batchDims = 1;
    args.batch[0] = items;
    return matmulScratchBytes(args, threads) / size_t(threads);
  };
  EXPECT_EQ(staged(2, 8), staged(1, 4));
  EXPECT_EQ(staged(3, 4), staged(1, 2));
  EXPECT_LT(staged(2, 8), staged(2, 2));
}

TEST(Matmul, F32FromBf16) {
  for (KernelIsa isa : tiers()) {
    MatmulArgs args = plainArgs(DType::BF16, 33, 64, 31);
    args.outDType = DType::F32;
    checkMatmul(args, isa, 2);
  }
}

// Exact sums: what is left is the one rounding, by plain loops, in oneDNN and after it.
TEST(Matmul, ResultsAreRoundedToNearestEven) {
  ThreadPool pool(2);
  for (DType dtype : {DType::BF16, DType::F16})
    for (KernelIsa isa : tiers())
      for (auto [m, n] : {std::pair<int64_t, int64_t>{3, 5}, {40, 33}, {7, 300}}) {
        const int64_t k = 8;
        MatmulArgs args = plainArgs(dtype, m, k, n);
        const Values a = integerValues(dtype, m * k, 31), b = integerValues(dtype, k * n, 32);
        std::vector<uint16_t> c(size_t(m * n));
        args.cRowStride = n;
        args.a = a.data();
        args.b = b.data();
        args.c = c.data();
        Buffer scratch(matmulScratchBytes(args, 2, isa));
        matmul(args, pool, scratch.scratch(), isa);
        int inexact = 0;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t d = 0; d < k; ++d)
              sum += a.exact[size_t(i * k + d)] * b.exact[size_t(d * n + j)];
            const uint16_t want = narrowed(dtype, float(sum));
            inexact += widened(dtype, want) != sum;
            ASSERT_EQ(c[size_t(i * n + j)], want)
                << label(isa) << " " << nameOf(dtype) << " [" << i << ", " << j << "]: " << sum;
          }
        EXPECT_GT(inexact, m * n / 10);
      }
}

// In place, as copies in f32 and by plain loops: operands that end with a page, all of zeros.
TEST(Matmul, NothingIsReadBehindTheOperands) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::I32})
      for (int64_t m : {1, 9, 33})
        for (bool transposed : {false, true}) {
          MatmulArgs args = plainArgs(dtype, m, 35, 67);
          if (transposed) {
            args.aRowStride = args.bRowStride = 1;
            args.aColStride = m;
            args.bColStride = args.k;
          }
          args.cRowStride = args.n;
          EndOfPages a(size_t(m * args.k) * sizeOf(dtype)),
              b(size_t(args.k * args.n) * sizeOf(dtype));
          std::vector<char> c(size_t(m * args.n) * sizeOf(dtype), char(0x7f));
          args.a = a.start();
          args.b = b.start();
          args.c = c.data();
          ThreadPool pool(2);
          Buffer scratch(matmulScratchBytes(args, 2, isa));
          matmul(args, pool, scratch.scratch(), isa);
          EXPECT_TRUE(scratch.guardsHold() && c == std::vector<char>(c.size(), 0))
              << label(isa) << " " << nameOf(dtype) << " " << m;
        }
}

TEST(Matmul, IntegersWrap) {
  ThreadPool pool(1);
  const std::vector<int32_t> a{2'000'000'000, 1}, b{2, 5};
  int32_t c = 0;
  MatmulArgs args = plainArgs(DType::I32, 1, 2, 1);
  args.a = a.data();
  args.b = b.data();
  args.c = &c;
  matmul(args, pool, {});
  EXPECT_EQ(c, int32_t(4'000'000'005u));
  const std::vector<int64_t> a64{int64_t(1) << 62, 3}, b64{4, 7};
  int64_t c64 = 0;
  args.dtype = args.outDType = DType::I64;
  args.a = a64.data();
  args.b = b64.data();
  args.c = &c64;
  matmul(args, pool, {});
  EXPECT_EQ(c64, 21);
}

// [2, 3] x [3, 2], every other element of what lies in memory; sums leave the dtype's range.
template <class T>
void checkWholeNumbers(DType dtype) {
  const int64_t m = 2, k = 3, n = 2;
  std::vector<T> a(size_t(2 * m * k), T(99)), b(size_t(2 * k * n), T(77)),
      c(size_t(m * n + 1), T(5));
  for (int64_t i = 0; i < m * k; ++i) a[size_t(2 * i)] = T(-3 + 50 * i);
  for (int64_t i = 0; i < k * n; ++i) b[size_t(2 * i)] = T(7 - 3 * i);
  MatmulArgs args = plainArgs(dtype, m, k, n);
  args.a = a.data();
  args.b = b.data();
  args.c = c.data();
  args.aRowStride = 2 * k;
  args.aColStride = 2;
  args.bRowStride = 2 * n;
  args.bColStride = 2;
  args.cRowStride = n;
  ThreadPool pool(1);
  matmul(args, pool, {});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      uint64_t sum = 0;
      for (int64_t q = 0; q < k; ++q)
        sum += uint64_t(int64_t(a[size_t(2 * (i * k + q))])) *
               uint64_t(int64_t(b[size_t(2 * (q * n + j))]));
      EXPECT_EQ(c[size_t(i * n + j)], T(sum)) << nameOf(dtype) << " [" << i << ", " << j << "]";
    }
  EXPECT_EQ(c.back(), T(5));
}

TEST(Matmul, WholeNumbersOfEveryWidth) {
  checkWholeNumbers<int64_t>(DType::I64);
  checkWholeNumbers<int32_t>(DType::I32);
  checkWholeNumbers<int16_t>(DType::I16);
  checkWholeNumbers<int8_t>(DType::I8);
  checkWholeNumbers<uint8_t>(DType::U8);
}

TEST(Matmul, F16AndF64) {
  ThreadPool pool(2);
  const int64_t m = 20, k = 30, n = 40;
  std::vector<uint16_t> a(size_t(m * k), floatToF16(0.5f)), b(size_t(k * n), floatToF16(3.0f));
  std::vector<uint16_t> c(size_t(m * n));
  MatmulArgs args = plainArgs(DType::F16, m, k, n);
  args.a = a.data();
  args.b = b.data();
  args.c = c.data();
  args.cRowStride = n;
  Buffer scratch(matmulScratchBytes(args, 2));
  matmul(args, pool, scratch.scratch());
  for (uint16_t x : c) ASSERT_EQ(f16ToFloat(x), 45.0f);
  std::vector<double> a64(size_t(m * k), 0.1), b64(size_t(k * n), 1.0), c64(size_t(m * n));
  args.dtype = args.outDType = DType::F64;
  args.a = a64.data();
  args.b = b64.data();
  args.c = c64.data();
  matmul(args, pool, {});
  for (double x : c64) ASSERT_NEAR(x, 3.0, 1e-14);
}

TEST(Matmul, UnsupportedDTypeIsAnError) {
  MatmulArgs args = plainArgs(DType::Bool, 2, 2, 2);
  try {
    matmulScratchBytes(args, 1);
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Unsupported);
    EXPECT_STREQ(e.what(), "expected a matmul of numbers, got bool; cast the operands");
  }
}

TEST(Matmul, PrimitivesAreReported) {
  if (!cpuFeatures().avx512Bf16) GTEST_SKIP() << "packed weights use oneDNN with AVX512_BF16 alone";
  LinearSpec spec;
  spec.weights = {DType::BF16, 48, 128};
  prepareLinear(spec, 2, KernelIsa::of(Isa::Avx512));
  bool found = false;
  for (const PrimitiveInfo& info : primitiveReport())
    if (info.shape.starts_with("bf16 256x48x64 packed")) {
      found = true;
      EXPECT_FALSE(info.slow) << info.impl;
      EXPECT_EQ(info.impl.substr(0, 4), "brg:");
    }
  EXPECT_TRUE(found);
}

TEST(CpuFeatures, TierNamesAndOrder) {
  EXPECT_EQ(nameOf(Isa::Avx2), "avx2");
  EXPECT_LT(Isa::Avx2, Isa::Amx);
  EXPECT_LE(KernelIsa::current().tier, machineIsa());
  EXPECT_FALSE(cpuFeatures().names().empty());
}

TEST(CpuFeatures, EnvironmentLowersTheTier) {
  setenv("LATHE_CPU_ISA", "avx2", 1);
  EXPECT_EQ(detectIsa(), Isa::Avx2);
  setenv("LATHE_CPU_ISA", "sse9", 1);
  try {
    detectIsa();
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(e.what()).find(
                  "expected LATHE_CPU_ISA to be avx2, avx512 or amx, got \"sse9\""),
              std::string::npos);
  }
  for (Isa higher : {Isa::Avx512, Isa::Amx}) {
    if (higher <= machineIsa()) continue;
    const std::string name(nameOf(higher));
    setenv("LATHE_CPU_ISA", name.c_str(), 1);
    try {
      detectIsa();
      ADD_FAILURE() << "nothing thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_EQ(e.what(), "expected LATHE_CPU_ISA to be at most this machine's tier " +
                              std::string(nameOf(machineIsa())) + ", got " + name + "; unset it");
    }
  }
  unsetenv("LATHE_CPU_ISA");
  EXPECT_EQ(detectIsa(), machineIsa());
}

}  // namespace
}  // namespace lathe::cpu
