// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/matmul.h"
#include "runtime/error.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

// 64-byte aligned scratch with guard bytes behind it.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes), data_(bytes + 128, char(0x5a)) {}
  Scratch scratch() { return {start(), bytes_}; }
  char* start() {
    auto at = reinterpret_cast<uintptr_t>(data_.data());
    return data_.data() + (64 - at % 64) % 64;
  }
  bool guardsHold() {
    for (char* p = start() + bytes_; p < data_.data() + data_.size(); ++p)
      if (*p != 0x5a) return false;
    return true;
  }

 private:
  size_t bytes_;
  std::vector<char> data_;
};

// Values of a dtype, kept both as stored and as doubles.
struct Values {
  DType dtype;
  std::vector<float> f32;
  std::vector<uint16_t> narrow;  // bf16 or f16
  std::vector<double> exact;
  const void* data() const {
    return dtype == DType::F32 ? static_cast<const void*>(f32.data()) : narrow.data();
  }
};

uint16_t narrowed(DType dtype, float x) {
  return dtype == DType::BF16 ? floatToBf16(x) : floatToF16(x);
}
float widened(DType dtype, uint16_t bits) {
  return dtype == DType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

Values randomValues(DType dtype, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values v{dtype, {}, {}, {}};
  for (int64_t i = 0; i < count; ++i) {
    float x = normal(random);
    if (dtype == DType::F32) {
      v.f32.push_back(x);
      v.exact.push_back(x);
    } else {
      v.narrow.push_back(narrowed(dtype, x));
      v.exact.push_back(widened(dtype, v.narrow.back()));
    }
  }
  return v;
}

// Sums of k products of unit variance, in f32, then one rounding to the output.
double tolerance(DType out, int64_t k, double expected) {
  double sum = 2e-6 * std::sqrt(double(k) + 1) * 4;
  // Half a step of 16-bit dtypes, and of f32 a few.
  const double step = out == DType::BF16 ? 0x1p-8 : out == DType::F16 ? 0x1p-11 : 1e-6;
  return sum + step * std::abs(expected);
}

struct LinearCase {
  DType dtype, out;
  int64_t m, k, n;
  bool outIn = true, bias = false, residual = false;
  int64_t padding = 0;
  LinearActivation activation = LinearActivation::None;
};

double activated(LinearActivation kind, double x) {
  switch (kind) {
    case LinearActivation::None:
      break;
    case LinearActivation::Relu:
      return std::max(x, 0.0);
    case LinearActivation::Silu:
      return x / (1 + std::exp(-x));
    case LinearActivation::Gelu:
      return x * std::erfc(-x * M_SQRT1_2) / 2;
    case LinearActivation::GeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

void checkLinear(const LinearCase& t, KernelIsa isa, int threads) {
  SCOPED_TRACE(label(isa) + " " + std::string(nameOf(t.dtype)) + "->" + std::string(nameOf(t.out)) +
               " " + std::to_string(t.m) + "x" + std::to_string(t.k) + "x" + std::to_string(t.n) +
               " threads " + std::to_string(threads));
  ThreadPool pool(threads);
  const int64_t lda = t.k + t.padding, ldc = t.n + t.padding;
  Values a = randomValues(t.dtype, t.m * lda + 1, 1), w = randomValues(t.dtype, t.k * t.n + 1, 2);
  Values bias = randomValues(DType::F32, t.n + 1, 3);
  Values residual = randomValues(t.out, t.m * ldc + 1, 4);
  LinearSpec spec;
  spec.weights = {t.dtype, t.k, t.n};
  spec.outDType = t.out;
  spec.hasBias = t.bias;
  spec.activation = t.activation;
  spec.lda = lda;
  spec.ldc = ldc;
  Buffer packed(spec.weights.bytes());
  packWeights(spec.weights, w.data(), t.dtype, t.outIn, packed.start(), pool);
  ASSERT_TRUE(packed.guardsHold());
  Buffer scratch(prepareLinear(spec, threads, isa));
  const float canary = -77.0f;
  std::vector<float> f32(size_t(t.m * ldc + 1), canary);
  std::vector<uint16_t> bf16(size_t(t.m * ldc + 1), floatToBf16(canary));
  LinearArgs args;
  args.m = t.m;
  args.a = a.data();
  args.weights = packed.start();
  args.c = t.out == DType::F32 ? static_cast<void*>(f32.data()) : bf16.data();
  args.bias = bias.data();
  if (t.residual) args.residual = residual.data();
  args.ldr = ldc;
  linear(spec, args, pool, scratch.scratch(), isa);
  EXPECT_TRUE(scratch.guardsHold());
  int64_t wrong = 0;
  for (int64_t i = 0; i < t.m; ++i)
    for (int64_t j = 0; j < ldc; ++j) {
      size_t at = size_t(i * ldc + j);
      double got = t.out == DType::F32 ? f32[at] : bf16ToFloat(bf16[at]);
      double expected = canary;
      if (j < t.n) {
        expected = t.bias ? bias.exact[size_t(j)] : 0;
        for (int64_t k = 0; k < t.k; ++k)
          expected +=
              a.exact[size_t(i * lda + k)] * w.exact[size_t(t.outIn ? j * t.k + k : k * t.n + j)];
        expected = activated(t.activation, expected);
        if (t.residual) expected += residual.exact[at];
      }
      if (!(std::abs(got - expected) <= tolerance(t.out, t.k, expected)) && ++wrong < 4)
        ADD_FAILURE() << "[" << i << ", " << j << "] expected " << expected << ", got " << got;
    }
  EXPECT_EQ(wrong, 0);
}

TEST(Linear, AwkwardShapesOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 2, 3, 4, 5, 31, 33, 257})
        for (auto [k, n] : {std::pair<int64_t, int64_t>{1, 7}, {33, 257}, {257, 1}, {64, 64}})
          checkLinear({dtype, dtype, m, k, n}, isa, 2);
}

TEST(Linear, DeepAndWideShapesOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 7, 130})
        for (auto [k, n] : {std::pair<int64_t, int64_t>{1153, 130}, {96, 1537}})
          checkLinear({dtype, dtype, m, k, n}, isa, 3);
}

TEST(Linear, BiasResidualAndStridedRows) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 33, 140})
        checkLinear({dtype, dtype, m, 65, 97, true, true, true, 9}, isa, 2);
}

// Sums spread over the flat ends of every activation as well as its bend.
TEST(Linear, ActivationsLieBetweenBiasAndResidual) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (LinearActivation kind : {LinearActivation::Relu, LinearActivation::Silu,
                                    LinearActivation::Gelu, LinearActivation::GeluTanh})
        for (int64_t m : {1, 5, 70})
          checkLinear({dtype, dtype, m, 65, 97, true, true, true, 9, kind}, isa, 2);
}

TEST(Linear, F32OutputOfBf16Weights) {
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 40}) checkLinear({DType::BF16, DType::F32, m, 96, 130}, isa, 2);
}

TEST(Linear, WeightsStoredInOut) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      checkLinear({dtype, dtype, 9, 33, 70, false}, isa, 1);
}

TEST(Linear, ThreadCountsBeyondTheWork) {
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 5, 300}) checkLinear({DType::BF16, DType::BF16, m, 40, 65}, isa, 7);
}

TEST(Linear, NoInputsGiveBias) {
  for (KernelIsa isa : tiers()) checkLinear({DType::F32, DType::F32, 5, 0, 9, true, true}, isa, 2);
}

TEST(Linear, ResidualMayBeTheOutput) {
  ThreadPool pool(2);
  for (KernelIsa isa : tiers())
    for (int64_t m : {2, 20}) {
      PackedShape shape{DType::F32, 16, 64};
      std::vector<float> w(16 * 64, 0.5f), a(size_t(m * 16), 1.0f), c(size_t(m * 64), 3.0f);
      Buffer packed(shape.bytes());
      packWeights(shape, w.data(), DType::F32, true, packed.start(), pool);
      LinearSpec spec;
      spec.weights = shape;
      Buffer scratch(prepareLinear(spec, 2, isa));
      LinearArgs args{m, a.data(), packed.start(), c.data(), nullptr, c.data(), 0};
      linear(spec, args, pool, scratch.scratch(), isa);
      for (float x : c) ASSERT_EQ(x, 11.0f) << label(isa);
    }
}

TEST(Linear, NanStaysInItsRow) {
  ThreadPool pool(2);
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {2, 40}) {
        PackedShape shape{dtype, 33, 70};
        std::vector<float> w(33 * 70, 1.0f), c(size_t(m * 70));
        Buffer packed(shape.bytes());
        packWeights(shape, w.data(), DType::F32, true, packed.start(), pool);
        std::vector<float> f32(size_t(m * 33), 1.0f);
        f32[33 + 5] = std::numeric_limits<float>::quiet_NaN();
        std::vector<uint16_t> bf16;
        for (float x : f32) bf16.push_back(floatToBf16(x));
        LinearSpec spec;
        spec.weights = shape;
        Buffer scratch(prepareLinear(spec, 2, isa));
        LinearArgs args;
        args.m = m;
        args.a = dtype == DType::F32 ? static_cast<void*>(f32.data()) : bf16.data();
        args.weights = packed.start();
        args.c = c.data();
        linear(spec, args, pool, scratch.scratch(), isa);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < 70; ++j) {
            float got = c[size_t(i * 70 + j)];
            if (i == 1)
              ASSERT_TRUE(std::isnan(got)) << label(isa);
            else
              ASSERT_EQ(got, 33.0f) << label(isa) << " row " << i;
          }
      }
}

TEST(Linear, SameThreadsSameBits) {
  ThreadPool pool(2);
  const int64_t m = 70, k = 200, n = 300;
  Values a = randomValues(DType::BF16, m * k, 5), w = randomValues(DType::BF16, k * n, 6);
  LinearSpec spec;
  spec.weights = {DType::BF16, k, n};
  Buffer packed(spec.weights.bytes());
  packWeights(spec.weights, w.data(), DType::BF16, true, packed.start(), pool);
  Buffer scratch(prepareLinear(spec, 2));
  std::vector<float> first(size_t(m * n)), again(size_t(m * n));
  LinearArgs args{m, a.data(), packed.start(), first.data()};
  linear(spec, args, pool, scratch.scratch());
  args.c = again.data();
  for (int i = 0; i < 20; ++i) {
    linear(spec, args, pool, scratch.scratch());
    ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * 4), 0);
  }
}

TEST(Linear, SmallScratchIsAnError) {
  ThreadPool pool(2);
  LinearSpec spec;
  spec.weights = {DType::F32, 64, 64};
  std::vector<float> x(64 * 64);
  LinearArgs args{8, x.data(), x.data(), x.data()};
  try {
    linear(spec, args, pool, {}, KernelIsa::of(Isa::Avx2));
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(e.what(),
                 "expected 65536 bytes of scratch for a linear layer, got 0; ask prepareLinear");
  }
}

TEST(Linear, OtherDTypesAreErrors) {
  LinearSpec spec;
  spec.weights = {DType::I8, 4, 4};
  try {
    prepareLinear(spec, 1);
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Unsupported);
    EXPECT_STREQ(e.what(), "expected packed weights of f32 or bf16, got i8");
  }
}

// --- matmul ------------------------------------------------------------------------------------

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

TEST(Matmul, F32FromBf16) {
  for (KernelIsa isa : tiers()) {
    MatmulArgs args = plainArgs(DType::BF16, 33, 64, 31);
    args.outDType = DType::F32;
    checkMatmul(args, isa, 2);
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
  if (machineIsa() < Isa::Avx512) GTEST_SKIP() << "packed weights use no oneDNN below AVX-512";
  LinearSpec spec;
  spec.weights = {DType::F32, 48, 128};
  prepareLinear(spec, 2, {Isa::Avx512, false});
  bool found = false;
  for (const PrimitiveInfo& info : primitiveReport())
    if (info.shape == "f32 256x48x64 packed") {
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
  unsetenv("LATHE_CPU_ISA");
  EXPECT_EQ(detectIsa(), machineIsa());
}

}  // namespace
}  // namespace lathe::cpu
