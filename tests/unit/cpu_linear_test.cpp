// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lathe/runtime/error.h"
#include "tests/closeness.h"
#include "tests/unit/cpu_matmul_values.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

struct LinearCase {
  DType dtype, out;
  int64_t m, k, n;
  bool outIn = true, bias = false, residual = false;
  int64_t padding = 0, residualPadding = 0;
  Activation activation = Activation::none;
};

double activated(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      break;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return x * std::erfc(-x * M_SQRT1_2) / 2;
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

void checkLinear(const LinearCase& t, KernelIsa isa, int threads) {
  SCOPED_TRACE(label(isa) + " " + std::string(nameOf(t.dtype)) + "->" + std::string(nameOf(t.out)) +
               " " + std::to_string(t.m) + "x" + std::to_string(t.k) + "x" + std::to_string(t.n) +
               " threads " + std::to_string(threads));
  ThreadPool pool(threads);
  const int64_t lda = t.k + t.padding, ldc = t.n + t.padding, ldr = ldc + t.residualPadding;
  Values a = randomValues(t.dtype, t.m * lda + 1, 1), w = randomValues(t.dtype, t.k * t.n + 1, 2);
  Values bias = randomValues(DType::F32, t.n + 1, 3);
  Values residual = randomValues(t.out, t.m * ldr + 1, 4);
  LinearSpec spec;
  spec.weights = {t.dtype, t.k, t.n};
  spec.outDType = t.out;
  spec.hasBias = t.bias;
  spec.activation = t.activation;
  spec.lda = lda;
  spec.ldc = ldc;
  Buffer packed(spec.weights.bytes());
  packWeights(spec.weights, w.data(), t.dtype, t.outIn, packed.start(), pool, isa);
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
  args.ldr = ldr;
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
        if (t.residual) expected += residual.exact[size_t(i * ldr + j)];
      }
      if (!isNear(got, expected, tolerance(t.out, t.k, expected)) && ++wrong < 4)
        ADD_FAILURE() << "[" << i << ", " << j << "] expected " << expected << ", got " << got;
    }
  EXPECT_EQ(wrong, 0);
}

TEST(Linear, AwkwardShapesOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 16, 25, 31, 33, 257})
        for (auto [k, n] : {std::pair<int64_t, int64_t>{1, 7}, {33, 257}, {257, 1}, {64, 64}})
          checkLinear({dtype, dtype, m, k, n}, isa, 2);
}

TEST(Linear, DeepAndWideShapesOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 7, 130})
        for (auto [k, n] : {std::pair<int64_t, int64_t>{1153, 130}, {2600, 70}, {96, 1537}})
          checkLinear({dtype, dtype, m, k, n}, isa, 3);
}

// Slices of K of unequal length, of which one has too few steps to store four rows at each; as many
// K blocks as let a long chunk of rows stay in the cache, and one more; one worker and several, to
// whom rows are dealt otherwise.
TEST(Linear, ChunksOfRowsOnTiles) {
  for (KernelIsa isa : tiers())
    for (int64_t k : {480, 1024, 1056})
      for (int threads : {1, 8})
        if (isa.arithmetic == Bf16Arithmetic::Tiles && isa.tier == Isa::Amx)
          checkLinear({DType::BF16, DType::BF16, 521, k, 70, true, true, true, 2, 1}, isa, threads);
}

// Rows are widened some hundreds at a time: the later ones have results of their own.
TEST(Linear, MoreRowsThanAreWidenedAtATime) {
  for (KernelIsa isa : tiers())
    for (DType out : {DType::F32, DType::BF16})
      for (int64_t m : {512, 513, 1100})
        checkLinear({DType::BF16, out, m, 33, 70, true, true, true, 2, 1}, isa, 2);
}

// Sums that wait in memory for the next part of K (of 1280 elements at most), of more panels than
// are kept at a time (8) and of two chunks of rows (of 256).
TEST(Linear, TilesKeepSumsOfPartsOfK) {
  for (KernelIsa isa : tiers()) {
    if (isa.tier != Isa::Amx) continue;
    checkLinear({DType::BF16, DType::BF16, 40, 2600, 1217}, isa, 2);
    checkLinear({DType::BF16, DType::BF16, 290, 1312, 577, true, true, true}, isa, 1);
    checkLinear({DType::BF16, DType::F32, 290, 1312, 577}, isa, 3);
  }
}

TEST(Linear, BiasResidualAndStridedRows) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 33, 140})
        for (int64_t more : {0, 5})
          checkLinear({dtype, dtype, m, 65, 97, true, true, true, 9, more}, isa, 2);
}

// Sums spread over the flat ends of every activation as well as its bend.
TEST(Linear, ActivationsLieBetweenBiasAndResidual) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (Activation kind :
           {Activation::relu, Activation::silu, Activation::gelu, Activation::gelu_tanh})
        for (int64_t m : {1, 5, 70})
          checkLinear({dtype, dtype, m, 65, 97, true, true, true, 9, 0, kind}, isa, 2);
}

TEST(Linear, F32OutputOfBf16Weights) {
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 40}) checkLinear({DType::BF16, DType::F32, m, 96, 130}, isa, 2);
}

// Exact sums: what is left is the one rounding, by the panels, oneDNN's and the tiles' stores.
TEST(Linear, ResultsAreRoundedToNearestEven) {
  const int64_t k = 8, n = 70;
  ThreadPool pool(2);
  const Values w = integerValues(DType::BF16, k * n, 21), bias = integerValues(DType::BF16, n, 22);
  LinearSpec spec;
  spec.weights = {DType::BF16, k, n};
  spec.outDType = spec.biasDType = DType::BF16;
  spec.hasBias = true;
  Buffer packed(spec.weights.bytes());
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 2, 3, 4, 5, 8, 40}) {
      packWeights(spec.weights, w.data(), DType::BF16, true, packed.start(), pool, isa);
      const Values a = integerValues(DType::BF16, m * k, 23);
      const Values residual = integerValues(DType::BF16, m * n, 24);
      std::vector<uint16_t> c(size_t(m * n));
      Buffer scratch(prepareLinear(spec, 2, isa));
      LinearArgs args{m, a.data(), packed.start(), c.data(), bias.data(), residual.data(), n};
      linear(spec, args, pool, scratch.scratch(), isa);
      int inexact = 0;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = bias.exact[size_t(j)] + residual.exact[size_t(i * n + j)];
          for (int64_t d = 0; d < k; ++d)
            sum += a.exact[size_t(i * k + d)] * w.exact[size_t(j * k + d)];
          const uint16_t want = floatToBf16(float(sum));
          inexact += bf16ToFloat(want) != sum;
          ASSERT_EQ(c[size_t(i * n + j)], want)
              << label(isa) << " [" << i << ", " << j << "] of " << m << " rows: " << sum;
        }
      EXPECT_GT(inexact, m * n / 2);
    }
}

// Products that are 0 leave the bias: what a processor's own rounding takes for 0, and what it must
// not change.
TEST(Linear, SubnormalNumbersAndNanAreRounded) {
  using Limits = std::numeric_limits<float>;
  const int64_t k = 8, n = 70;
  const float least = std::ldexp(1.0f, -133);  // of bf16
  std::vector<float> bias(size_t(n), 1.0f);
  const float kinds[] = {least,         0.5f * least,       -1.5f * least,
                         2.5f * least,  0.6f * least,       Limits::denorm_min(),
                         1.1e-38f,      -1.17e-38f,         Limits::min(),
                         Limits::max(), Limits::infinity(), -Limits::infinity(),
                         1.00390625f,   1.01171875f,        -3.3e-39f};
  for (size_t i = 0; i < std::size(kinds); ++i) bias[i] = bias[69 - i] = kinds[i];
  bias[32] = Limits::quiet_NaN();
  ThreadPool pool(2);
  LinearSpec spec;
  spec.weights = {DType::BF16, k, n};
  spec.outDType = DType::BF16;
  spec.hasBias = true;
  const std::vector<uint16_t> zeros(size_t(40 * std::max(k, n)));
  Buffer packed(spec.weights.bytes());
  packWeights(spec.weights, zeros.data(), DType::BF16, true, packed.start(), pool,
              KernelIsa::current());
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 5, 40}) {
      std::vector<uint16_t> c(size_t(m * n));
      Buffer scratch(prepareLinear(spec, 2, isa));
      linear(spec, {m, zeros.data(), packed.start(), c.data(), bias.data()}, pool,
             scratch.scratch(), isa);
      for (int64_t i = 0; i < m * n; ++i) {
        const float x = bias[size_t(i % n)];
        if (std::isnan(x))
          EXPECT_TRUE(std::isnan(bf16ToFloat(c[size_t(i)])));
        else
          EXPECT_EQ(c[size_t(i)], floatToBf16(x)) << label(isa) << " of " << m << " rows: " << x;
      }
    }
}

// Panels are dealt out to threads and, within a thread, to streams, of which there are as many as
// the machine reads fastest: from 1 to 9 panels every way of dealing leaves an odd stream. Rows
// that end within a block of K are not read to its end.
TEST(Linear, NothingIsReadBehindTheWeights) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int threads : {1, 2})
        for (int64_t panels = 1; panels <= 9; ++panels)
          for (int64_t m : {1, 9}) {
            const int64_t k = panels % 2 ? 64 : 67, n = panels * kPanelColumns;
            ThreadPool pool(threads);
            LinearSpec spec;
            spec.weights = {dtype, k, n};
            const Values a = integerValues(dtype, m * k, 31), w = integerValues(dtype, k * n, 32);
            const size_t ofRows = size_t(m * k) * sizeOf(dtype);
            EndOfPages packed(spec.weights.bytes()), rows(ofRows);
            std::memcpy(rows.start(), a.data(), ofRows);
            packWeights(spec.weights, w.data(), dtype, true, packed.start(), pool, isa);
            Buffer scratch(prepareLinear(spec, threads, isa));
            std::vector<float> c(size_t(m * n));
            LinearArgs args{m, rows.start(), packed.start(), c.data()};
            linear(spec, args, pool, scratch.scratch(), isa);
            double last = 0;
            for (int64_t d = 0; d < k; ++d)
              last += a.exact[size_t((m - 1) * k + d)] * w.exact[size_t((n - 1) * k + d)];
            EXPECT_EQ(c.back(), last) << label(isa) << " " << panels << " panels, " << m << " rows";
          }
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
      packWeights(shape, w.data(), DType::F32, true, packed.start(), pool, isa);
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
        packWeights(shape, w.data(), DType::F32, true, packed.start(), pool, isa);
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

// Rounding to bf16 adds to the lower half, which would carry out of a NaN of nothing but ones.
TEST(Linear, ANanOfAllBitsIsRoundedToOne) {
  for (KernelIsa isa : tiers())
    for (uint32_t bits : {0x7fffffffu, 0xffffffffu}) {
      ThreadPool pool(1);
      LinearSpec spec;
      spec.weights = {DType::BF16, 32, 20};
      spec.outDType = DType::BF16;
      spec.hasBias = true;
      const Values a = integerValues(DType::BF16, 2 * 32, 5),
                   w = integerValues(DType::BF16, 640, 6);
      std::vector<float> bias(20, 0.0f);
      std::memcpy(&bias[3], &bits, 4);
      Buffer packed(spec.weights.bytes()), scratch(prepareLinear(spec, 1, isa));
      packWeights(spec.weights, w.data(), DType::BF16, true, packed.start(), pool, isa);
      std::vector<uint16_t> c(40);
      LinearArgs args{2, a.data(), packed.start(), c.data()};
      args.bias = bias.data();
      linear(spec, args, pool, scratch.scratch(), isa);
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_EQ(std::isnan(bf16ToFloat(c[i])), i % 20 == 3) << label(isa) << " " << i;
    }
}

TEST(Linear, SameThreadsSameBits) {
  ThreadPool pool(2);
  const int64_t m = 70, k = 200, n = 300;
  Values a = randomValues(DType::BF16, m * k, 5), w = randomValues(DType::BF16, k * n, 6);
  LinearSpec spec;
  spec.weights = {DType::BF16, k, n};
  Buffer packed(spec.weights.bytes());
  packWeights(spec.weights, w.data(), DType::BF16, true, packed.start(), pool,
              KernelIsa::current());
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

// Where products are f32's, every element is a sum over K from its first to its last, whatever the
// number of rows.
TEST(Linear, RowsOfPromptsAreThoseOfSingleRowsInF32) {
  ThreadPool pool(2);
  std::vector<std::pair<KernelIsa, DType>> sequential;
  for (KernelIsa isa : tiers()) {
    sequential.push_back({isa, DType::F32});
    if (!isa.bf16) sequential.push_back({isa, DType::BF16});
  }
  for (auto [isa, dtype] : sequential)
    for (int64_t m : {2, 3, 5, 6, 7, 8, 12, 16, 24, 25, 521}) {
      const int64_t k = 583, n = 150;  // several pieces of K, a panel of 22 columns
      Values a = randomValues(dtype, m * k, 1), w = randomValues(dtype, k * n, 2);
      LinearSpec spec;
      spec.weights = {dtype, k, n};
      Buffer packed(spec.weights.bytes()), scratch(prepareLinear(spec, 2, isa));
      packWeights(spec.weights, w.data(), dtype, true, packed.start(), pool, isa);
      std::vector<float> together(size_t(m * n)), apart(size_t(m * n));
      const char* rows = static_cast<const char*>(a.data());
      linear(spec, {m, rows, packed.start(), together.data()}, pool, scratch.scratch(), isa);
      for (int64_t i = 0; i < m; ++i)
        linear(spec,
               {1, rows + size_t(i * k) * sizeOf(dtype), packed.start(), &apart[size_t(i * n)]},
               pool, scratch.scratch(), isa);
      EXPECT_EQ(together, apart) << label(isa) << " " << nameOf(dtype) << " " << m;
      EXPECT_TRUE(scratch.guardsHold());
    }
}

TEST(Linear, SmallScratchIsAnError) {
  ThreadPool pool(2);
  LinearSpec spec;
  spec.weights = {DType::F32, 64, 64};
  std::vector<float> x(64 * 64);
  LinearArgs args{4, x.data(), x.data(), x.data()};
  try {
    linear(spec, args, pool, {}, KernelIsa::of(Isa::Avx2));
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(e.what(),
                 "expected 65536 bytes of scratch for a linear layer, got 0; ask prepareLinear");
  }
}

TEST(Linear, LayersThatDoNotFitAreErrors) {
  auto message = [](auto change) -> std::string {
    LinearSpec spec;
    spec.weights = {DType::F32, 4, 6};
    change(spec);
    try {
      prepareLinear(spec, 1, KernelIsa::of(Isa::Avx2));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string sizes = "expected lda >= k and ldc >= n, got k 4, lda ";
  EXPECT_EQ(message([](LinearSpec& s) { s.lda = 3; }), sizes + "3, n 6, ldc 6");
  EXPECT_EQ(message([](LinearSpec& s) { s.ldc = 5; }), sizes + "4, n 6, ldc 5");
  EXPECT_EQ(message([](LinearSpec& s) { s.lda = 4, s.ldc = 6; }), "");
  EXPECT_EQ(message([](LinearSpec& s) { s.gate = Activation::silu, s.ldc = 3; }), "");
  EXPECT_EQ(message([](LinearSpec& s) { s.gate = Activation::silu, s.ldc = 2; }),
            sizes + "4, n 6, ldc 2");
  EXPECT_EQ(message([](LinearSpec& s) { s.weights.k = -1; }).substr(0, 27),
            "expected lda >= k and ldc >");
  EXPECT_EQ(message([](LinearSpec& s) { s.outDType = DType::BF16; }),
            "expected a linear output of f32 or the weights' f32, got bf16");
  EXPECT_EQ(message([](LinearSpec& s) { s.hasBias = true, s.biasDType = DType::F16; }),
            "expected a bias of f32 or bf16, got f16");
  EXPECT_EQ(message([](LinearSpec& s) { s.biasDType = DType::F16; }), "");
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

}  // namespace
}  // namespace lathe::cpu
