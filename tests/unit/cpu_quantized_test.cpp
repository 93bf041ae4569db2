// SPDX-License-Identifier: Apache-2.0
// Layers on quantized weights, from their packed bytes to rounded results, on every tier.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "backends/cpu/device/quantized_linear.h"
#include "lathe/runtime/array.h"
#include "lathe/runtime/error.h"
#include "tests/closeness.h"
#include "tests/unit/cpu_matmul_values.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

struct Case {
  DType weights, dtype, scales;
  int64_t m, k, n, block;
  bool zero = false, epilogue = false;
  double outlier = 0;      // the third element of every row, if not 0; its weights are 0 then
  bool bytes = false;      // rows are rounded to 8 bits
  bool fractions = false;  // zero points are no whole numbers
  double below = 0;        // zero points are less by so much
  double unit = 1;         // of rows; a power of two, by which the scales are divided
};

// Scales and zero points of [n, scales] as kernels read them: packed where a row has several.
Buffer laidOut(const Case& t, int64_t scales, const Values& values, ThreadPool& pool,
               KernelIsa isa) {
  const PackedShape shape{t.scales, scales, t.n};
  if (scales == 1) {
    Buffer plain(size_t(t.n) * 4);
    std::memcpy(plain.start(), values.data(), size_t(t.n) * 4);
    return plain;
  }
  Buffer packed(shape.bytes());
  packWeights(shape, values.data(), t.scales, true, packed.start(), pool, isa);
  return packed;
}

// A row of k numbers as `quantizes_x` of lathe.quantized_linear defines it.
void roundToBytes(double* x, int64_t k) {
  float largest = 0x1p-100f;
  for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::abs(float(x[i])));
  const float steps = 127 / largest, size = largest / 127;
  for (int64_t i = 0; i < k; ++i) x[i] = double(std::nearbyint(float(x[i]) * steps)) * size;
}

// What a column's weights (q - zero) scale become where many rows in 8 bits meet blocks.
struct ByteColumn {
  float reach = 0;  // the largest magnitude that they may have
  void add(const QuantizedShape& shape, float scale, float zero) {
    const float low = shape.isUnsigned() ? 0 : float(-shape.center());
    const float high = low + 2 * float(shape.center()) - 1;
    reach =
        std::max(reach, std::abs(std::max(std::abs(low - zero), std::abs(high - zero)) * scale));
  }
  double rounded(bool halves, bool fixedPoint, float q, float zero, float scale) const {
    const float perUnit = scale * (127 / reach), size = reach / 127;
    if (!fixedPoint)
      return double(std::fma(q - zero, perUnit, 12582912.0f) - 12582912.0f) * double(size);
    // Of halves in units of 1/16 and 1/2048, of bytes in whole ones and 1/32768.
    const double steps = std::nearbyint(perUnit * (halves ? 2048 : 32768));
    return std::floor((q - zero) * steps / (halves ? 2048 : 32768) + 0.5) * double(size);
  }
};

// Whole numbers of a float dtype.
Values wholeNumbers(DType dtype, int64_t count, int64_t below, unsigned seed) {
  Values v = integerValues(dtype, count, seed);
  for (int64_t i = 0; i < count; ++i) {
    v.exact[size_t(i)] = double(int64_t(v.exact[size_t(i)] + 48) % below);
    v.f32[size_t(i)] = float(v.exact[size_t(i)]);
    v.narrow[size_t(i)] = floatToBf16(v.f32[size_t(i)]);
  }
  return v;
}

void check(const Case& t, KernelIsa isa, int threads) {
  SCOPED_TRACE(label(isa) + " " + std::string(nameOf(t.weights)) + " " +
               std::string(nameOf(t.dtype)) + " " + std::to_string(t.m) + "x" +
               std::to_string(t.k) + "x" + std::to_string(t.n) + " block " +
               std::to_string(t.block) + (t.zero ? " zero" : "") + (t.bytes ? " bytes" : ""));
  ThreadPool pool(threads);
  const QuantizedShape shape{t.weights, t.k, t.n, t.block};
  const int64_t scales = shape.scales();
  // Every value of the dtype, in both halves of bytes.
  Array q(t.weights, {t.n, t.k});
  const int64_t values = int64_t(1) << bitsOf(t.weights),
                low = shape.isUnsigned() ? 0 : -values / 2;
  std::mt19937 random(7);
  for (int64_t i = 0; i < q.size(); ++i) q.set(i, double(low + int64_t(random() % values)));
  for (int64_t j = 0; t.outlier != 0 && j < t.n; ++j) q.set(j * t.k + 2, 0);
  Buffer packed(shape.bytes());
  packQuantized(shape, q.data(), packed.start(), pool);
  ASSERT_TRUE(packed.guardsHold());
  Values a = randomValues(t.dtype, t.m * t.k + 1, 1),
         scale = randomValues(t.scales, t.n * scales, 2);
  for (int64_t i = 0; t.outlier != 0 && i < t.m; ++i) {
    const size_t at = size_t(i * t.k + 2);
    const uint16_t narrow = floatToBf16(float(t.outlier));
    a.exact[at] = bf16ToFloat(narrow);
    if (t.dtype == DType::F32)
      a.f32[at] = bf16ToFloat(narrow);
    else
      a.narrow[at] = narrow;
  }
  for (auto [numbers, factor] : {std::pair(&a, t.unit), std::pair(&scale, 1 / t.unit)}) {
    if (t.unit == 1) continue;
    for (float& x : numbers->f32) x *= float(factor);
    for (uint16_t& x : numbers->narrow) x = floatToBf16(bf16ToFloat(x) * float(factor));
    for (double& x : numbers->exact) x *= factor;
  }
  Values zero = wholeNumbers(t.scales, t.n * scales, values, 3);
  for (size_t i = 0; t.fractions && i < zero.exact.size(); ++i) {
    zero.f32[i] = bf16ToFloat(floatToBf16(float(zero.exact[i]) * 0.375f - 3.25f));
    zero.exact[i] = zero.f32[i];
    zero.narrow[i] = floatToBf16(zero.f32[i]);
  }
  for (size_t i = 0; t.below != 0 && i < zero.exact.size(); ++i)
    zero.exact[i] = zero.f32[i] -= float(t.below);
  Values bias = randomValues(t.dtype, t.n, 4), residual = randomValues(t.dtype, t.m * t.n, 5);
  Buffer scaleBytes = laidOut(t, scales, scale, pool, isa),
         zeroBytes = laidOut(t, scales, zero, pool, isa);
  QuantizedLinearSpec spec{shape, t.dtype, t.scales, t.zero,
                           t.epilogue ? Activation::silu : Activation::none};
  spec.quantizesX = t.bytes;
  ASSERT_EQ(whyNotQuantized(spec), "");
  Buffer scratch(prepareQuantizedLinear(spec, threads, isa));
  std::vector<float> f32(size_t(t.m * t.n + 1), -77);
  std::vector<uint16_t> bf16(size_t(t.m * t.n + 1), floatToBf16(-77));
  QuantizedLinearArgs args;
  args.m = t.m;
  args.a = a.data();
  args.weights = packed.start();
  args.scale = scaleBytes.start();
  args.zero = zeroBytes.start();
  args.c = t.dtype == DType::F32 ? static_cast<void*>(f32.data()) : bf16.data();
  if (t.epilogue) {
    args.bias = bias.data();
    args.residual = residual.data();
  }
  quantizedLinear(spec, args, pool, scratch.scratch(), isa);
  EXPECT_TRUE(scratch.guardsHold());
  const WeightRounding rounding = weightRounding(spec, t.m, isa);
  for (int64_t i = 0; t.bytes && i < t.m; ++i) roundToBytes(&a.exact[size_t(i * t.k)], t.k);
  // Zero points of a panel that are whole numbers of the range, all of them.
  std::vector<bool> whole(size_t(shape.panels()), true);
  for (int64_t i = 0; t.zero && i < t.n * scales; ++i) {
    const double z = zero.exact[size_t(i)];
    if (z != std::floor(z) || z < low || z >= low + values)
      whole[size_t(i / scales / kPanelColumns)] = false;
  }
  int64_t wrong = 0;
  std::vector<double> w(size_t(t.k));  // of a column
  for (int64_t j = 0; j < t.n; ++j) {
    ByteColumn column;
    auto zeroOf = [&](size_t s) { return t.zero ? zero.exact[s] : 0; };
    for (size_t s = size_t(j * scales); s < size_t((j + 1) * scales); ++s)
      column.add(shape, float(scale.exact[s]), float(zeroOf(s)));
    for (int64_t k = 0; k < t.k; ++k) {
      const size_t s = size_t(j * scales + k / t.block);
      const double stored = q.at(j * t.k + k);
      w[size_t(k)] = (stored - zeroOf(s)) * scale.exact[s];
      if (rounding == WeightRounding::bf16)
        w[size_t(k)] = bf16ToFloat(floatToBf16(float(w[size_t(k)])));
      if (rounding == WeightRounding::byte)
        w[size_t(k)] = column.rounded(shape.bits() == 4, whole[size_t(j / kPanelColumns)],
                                      float(stored), float(zeroOf(s)), float(scale.exact[s]));
    }
    for (int64_t i = 0; i < t.m; ++i) {
      double expected = 0, magnitude = 0;
      for (int64_t k = 0; k < t.k; ++k) {
        const double product = a.exact[size_t(i * t.k + k)] * w[size_t(k)];
        expected += product;
        magnitude += std::abs(product);
      }
      const size_t at = size_t(i * t.n + j);
      if (t.epilogue) {
        expected += bias.exact[size_t(j)];
        expected = expected / (1 + std::exp(-expected)) + residual.exact[at];
      }
      const double got = t.dtype == DType::F32 ? f32[at] : bf16ToFloat(bf16[at]);
      const double step = t.dtype == DType::BF16 ? 0x1p-8 : 1e-6;
      const double allowed = 2e-6 * (magnitude + 1) + step * std::abs(expected);
      if (!isNear(got, expected, allowed) && ++wrong < 4)
        ADD_FAILURE() << "[" << i << ", " << j << "] expected " << expected << ", got " << got;
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f32.back(), -77);
  EXPECT_EQ(bf16.back(), floatToBf16(-77));
  if (t.dtype != DType::BF16 || t.epilogue) return;
  // What is not rounded is what the rounding was of.
  spec.outDType = DType::F32;
  args.c = f32.data();
  quantizedLinear(spec, args, pool, scratch.scratch(), isa);
  for (size_t i = 0; i < bf16.size(); ++i)
    wrong +=
        floatToBf16(f32[i]) != bf16[i] && !(std::isnan(f32[i]) && std::isnan(bf16ToFloat(bf16[i])));
  EXPECT_EQ(wrong, 0) << "of f32";
}

TEST(QuantizedLinear, AwkwardShapesOnEveryTier) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (DType dtype : {DType::F32, DType::BF16})
        for (int64_t m : {1, 2, 3, 4, 5, 6, 8, 16, 25, 31, 33})
          for (auto [k, n] : {std::pair<int64_t, int64_t>{1, 7}, {33, 257}, {257, 1}, {64, 64}})
            check({weights, dtype, DType::F32, m, k, n, k}, isa, 2);
}

// Every way rows in 8 bits go: as bytes of dot products, whole numbers in bf16 and bytes on tiles,
// and multiples in f32.
TEST(QuantizedLinear, RowsInEightBits) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::U8, DType::I4, DType::U4})
      for (DType dtype : {DType::F32, DType::BF16})
        for (int64_t m : {1, 2, 3, 4, 5, 8, 9, 16, 17, 25, 33, 70}) {
          auto run = [&](int64_t k, int64_t n, int64_t block, bool zero, bool epilogue) {
            const DType scales = block < k ? DType::BF16 : DType::F32;
            Case t{weights, dtype, scales, m, k, n, block, zero, epilogue};
            t.bytes = true;
            check(t, isa, 2);
          };
          const bool zero = weights == DType::U8 || weights == DType::U4;
          run(1, 7, 1, zero, false);
          run(33, 70, 33, zero, true);
          run(200, 65, 32, zero, true);
          run(256, 64, 256, zero, false);
          run(136, 130, 8, true, false);
          Case odd{weights, dtype, DType::BF16, m, 96, 66, 32, true};
          odd.bytes = odd.fractions = true;
          check(odd, isa, 2);
          run(300, 40, 24, true, false);
        }
}

// Blocks of one and of two steps of the tiles and of an odd number of them, whose last one is cut;
// more panels for a worker than there are streams.
TEST(QuantizedLinear, FewRowsInEightBitsMeetBlocks) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::U4})
      for (int64_t m : {9, 16}) {
        Case t{weights, DType::BF16, DType::BF16, m, 1300, 150, 64, weights == DType::U4};
        t.bytes = true;
        for (int64_t block : {64, 96, 128, 160, 416}) {
          t.block = block;
          check(t, isa, 2);
        }
        t.k = 200;
        t.n = 1217;
        t.block = 32;
        check(t, isa, 1);
      }
}

// Chunks of rows, groups of panels and parts of K that begin, end and stay alone; rows of zeros, of
// tiny and of huge numbers.
TEST(QuantizedLinear, ManyRowsInEightBits) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (bool blocks : {false, true})
        for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{290, 2624, 70},
                               {40, 2600, 1217},
                               {520, 64, 70},
                               {33, 5200, 65}}) {
          Case t{weights, DType::BF16, blocks ? DType::BF16 : DType::F32, m, k, n, blocks ? 32 : k};
          t.bytes = true;
          check(t, isa, 2);
          t.zero = true;
          if (n == 70) check(t, isa, 1);
        }
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 12, 40})
      for (double outlier : {1e-35, 1e30, -3e38}) {
        Case t{DType::I8, DType::BF16, DType::F32, m, 96, 70, 96};
        t.outlier = outlier;
        t.bytes = true;
        check(t, isa, 2);
      }
}

// Zero points that are whole numbers and lie far below the range: 16 bits do not hold them.
TEST(QuantizedLinear, ZeroPointsFarBelowTheRange) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::U8, DType::I4, DType::U4})
      for (double below : {300.0, 40000.0}) {
        Case t{weights, DType::BF16, DType::F32, 20, 96, 66, 32, true};
        t.bytes = true;
        t.below = below;
        check(t, isa, 2);
      }
}

// Rows of tiny numbers alone are rounded to the 127th part of their own largest one, whose inverse
// is large; where the largest is below 2^-100, to that of 2^-100.
TEST(QuantizedLinear, RowsOfTinyNumbersInEightBits) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::U4})
      for (DType dtype : {DType::F32, DType::BF16})
        for (int64_t m : {1, 5, 12, 40})
          for (int64_t block : {32, 96})
            for (double unit : {0x1p-21, 0x1p-60, 0x1p-99, 0x1p-105}) {
              Case t{weights, dtype, block == 96 ? DType::F32 : DType::BF16, m, 96, 70, block};
              t.zero = weights == DType::U4;
              t.bytes = true;
              t.unit = unit;
              check(t, isa, 2);
            }
}

// A large scale and a row of large numbers meet weights of zeros: their product is beyond f32.
TEST(QuantizedLinear, LargeScalesAndLargeRowsInEightBits) {
  const int64_t k = 64, n = 3;
  for (KernelIsa isa : tiers())
    for (int64_t m : {1, 12, 20}) {
      ThreadPool pool(1);
      const QuantizedShape shape{DType::I8, k, n, k};
      std::vector<char> q(size_t(n * k), 0);
      Buffer packed(shape.bytes());
      packQuantized(shape, q.data(), packed.start(), pool);
      std::vector<uint16_t> a(size_t(m * k), floatToBf16(1e30f)), c(size_t(m * n), 1);
      std::vector<float> scale(size_t(n), 1e15f);
      QuantizedLinearSpec spec{shape, DType::BF16};
      spec.quantizesX = true;
      Buffer scratch(prepareQuantizedLinear(spec, 1, isa));
      QuantizedLinearArgs args{
          .m = m, .a = a.data(), .weights = packed.start(), .scale = scale.data(), .c = c.data()};
      quantizedLinear(spec, args, pool, scratch.scratch(), isa);
      for (uint16_t got : c) EXPECT_EQ(bf16ToFloat(got), 0) << m;
    }
}

TEST(QuantizedLinear, RowsOfZerosAndOfWhatIsNoNumberInEightBits) {
  const int64_t k = 96, n = 70;
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (int64_t block : {int64_t(32), k})
        for (int64_t m : {3, 12, 40})
          for (double special : {0.0, 1e-39, double(INFINITY), double(-INFINITY), double(NAN)}) {
            SCOPED_TRACE(label(isa) + " " + std::string(nameOf(weights)) + " " + std::to_string(m) +
                         " " + std::to_string(special));
            ThreadPool pool(2);
            const QuantizedShape shape{weights, k, n, block};
            const Case t{weights, DType::BF16, block == k ? DType::F32 : DType::BF16, m, k,
                         n,       block};
            Array q(weights, {n, k});
            for (int64_t i = 0; i < q.size(); ++i) q.set(i, double(i % 5) + 1);
            Buffer packed(shape.bytes());
            packQuantized(shape, q.data(), packed.start(), pool);
            Values numbers{t.scales, {}, {}, {}};
            for (int64_t i = 0; i < n * shape.scales(); ++i) {
              numbers.f32.push_back(0.5f);
              numbers.narrow.push_back(floatToBf16(0.5f));
            }
            Buffer scale = laidOut(t, shape.scales(), numbers, pool, isa);
            // The second row holds the special number alone, or among ones.
            const bool alone = std::abs(special) < 1;
            std::vector<uint16_t> a(size_t(m * k), floatToBf16(1)), c(size_t(m * n));
            for (int64_t i = 0; i < k; ++i)
              if (alone || i == 5) a[size_t(k + i)] = floatToBf16(float(special));
            QuantizedLinearSpec spec{shape, DType::BF16, t.scales};
            spec.quantizesX = true;
            Buffer scratch(prepareQuantizedLinear(spec, 2, isa));
            QuantizedLinearArgs args{.m = m,
                                     .a = a.data(),
                                     .weights = packed.start(),
                                     .scale = scale.start(),
                                     .c = c.data()};
            quantizedLinear(spec, args, pool, scratch.scratch(), isa);
            EXPECT_TRUE(scratch.guardsHold());
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                const float got = bf16ToFloat(c[size_t(i * n + j)]);
                if (i == 1 && alone)
                  ASSERT_EQ(got, 0) << j;
                else
                  ASSERT_EQ(std::isnan(got), i == 1) << i << " " << j;
              }
          }
}

TEST(QuantizedLinear, ReadsNothingBehindTheWeights) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (bool bytes : {false, true})
        for (int64_t m : {1, 3, 7, 12, 30, 70})
          for (int64_t k : {8, 33, 72, 129}) {
            ThreadPool pool(2);
            const int64_t n = 130;
            const QuantizedShape shape{weights, k, n, k};
            std::vector<char> q(size_t(n * k), 1);
            EndOfPages packed(shape.bytes()), a(size_t(m * k) * 2), scale(size_t(n) * 4);
            packQuantized(shape, q.data(), packed.start(), pool);
            std::fill_n(reinterpret_cast<uint16_t*>(a.start()), m * k, floatToBf16(1));
            std::fill_n(reinterpret_cast<float*>(scale.start()), n, 0.5f);
            std::vector<uint16_t> c(size_t(m * n));
            QuantizedLinearSpec spec{shape, DType::BF16};
            spec.quantizesX = bytes;
            Buffer scratch(prepareQuantizedLinear(spec, 2, isa));
            QuantizedLinearArgs args{.m = m,
                                     .a = a.start(),
                                     .weights = packed.start(),
                                     .scale = scale.start(),
                                     .c = c.data()};
            quantizedLinear(spec, args, pool, scratch.scratch(), isa);
            EXPECT_TRUE(std::isfinite(bf16ToFloat(c.back())));
          }
}

TEST(QuantizedLinear, WeightsAreRoundedForManyRowsOnTilesAlone) {
  QuantizedLinearSpec blocks;
  blocks.weights = {DType::I4, 896, 128, 32};
  blocks.dtype = blocks.scaleDType = DType::BF16;
  QuantizedLinearSpec rows = blocks, floats = blocks, odd = blocks, bytes = blocks, whole = blocks;
  rows.weights.block = 896;
  floats.dtype = DType::F32;
  odd.weights.block = 24;
  bytes.quantizesX = whole.quantizesX = true;
  whole.weights.block = 896;
  const KernelIsa amx{Isa::Amx, true};
  EXPECT_EQ(weightRounding(blocks, 16, amx), WeightRounding::none)
      << "decoding reads what is stored";
  EXPECT_EQ(weightRounding(blocks, 17, amx), WeightRounding::bf16);
  EXPECT_EQ(weightRounding(bytes, 16, amx), WeightRounding::none);
  EXPECT_EQ(weightRounding(bytes, 17, amx), WeightRounding::byte);
  // As many products of bytes as 31 bits hold the sum of.
  bytes.weights.k = 65536;
  EXPECT_EQ(weightRounding(bytes, 17, amx), WeightRounding::byte);
  bytes.weights.k += 32;
  EXPECT_EQ(weightRounding(bytes, 17, amx), WeightRounding::bf16);
  for (const QuantizedLinearSpec& spec : {rows, floats, odd, whole})
    EXPECT_EQ(weightRounding(spec, 512, amx), WeightRounding::none);
  for (Isa tier : {Isa::Avx2, Isa::Avx512})
    for (const QuantizedLinearSpec& spec : {blocks, bytes})
      EXPECT_EQ(weightRounding(spec, 512, KernelIsa{tier}), WeightRounding::none);
}

// What a large activation leaves of the others counts where its own weight is 0.
TEST(QuantizedLinear, OneLargeActivationTakesNothingFromTheOthers) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (DType dtype : {DType::F32, DType::BF16})
        for (double outlier : {50.0, 500.0, -2e3, 1e5, 3e9})
          for (int64_t m : {1, 3, 6, 18})
            for (int64_t block : {8, 32, 96})
              check({weights, dtype, block < 96 ? DType::BF16 : DType::F32, m, 96, 70, block, false,
                     false, outlier},
                    isa, 2);
}

// Chunks of rows, groups of panels and parts of K that begin, end and stay alone.
TEST(QuantizedLinear, ManyRows) {
  for (KernelIsa isa : tiers()) {
    if (isa.tier != Isa::Amx) continue;
    for (DType weights : {DType::I8, DType::I4})
      for (int64_t block : {32, 96, 4000})
        for (bool zero : {false, true})
          for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{33, 70, 65},
                                 {257, 40, 30},
                                 {40, 64, 1200},
                                 {48, 1312, 97},
                                 {520, 200, 70}})
            check(
                {weights, DType::BF16, block < k ? DType::BF16 : DType::F32, m, k, n, block, zero},
                isa, 2);
  }
}

TEST(QuantizedLinear, BlocksWithScalesOfTheirOwn) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (DType scales : {DType::F32, DType::BF16})
        for (int64_t m : {1, 3, 5, 8, 19})
          for (int64_t block : {8, 24, 32, 40, 128})
            for (int64_t k : {256, 300, 129})
              check({weights, DType::BF16, scales, m, k, 70, block}, isa, 2);
}

TEST(QuantizedLinear, ZeroPoints) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4, DType::U8, DType::U4})
      for (int64_t m : {1, 4, 17}) {
        check({weights, DType::F32, DType::BF16, m, 200, 130, 32, true}, isa, 2);
        check({weights, DType::F32, DType::F32, m, 77, 65, 77, true}, isa, 3);
        check({weights, DType::BF16, DType::BF16, m, 200, 130, 32, true}, isa, 2);
        check({weights, DType::BF16, DType::F32, m, 77, 65, 77, true}, isa, 3);
      }
}

// Rows of A and depths that tiles walk in several turns, and blocks whose sums are scaled in parts.
TEST(QuantizedLinear, TilesWalkManyRowsAndDeepPanels) {
  for (KernelIsa isa : tiers()) {
    if (isa.tier != Isa::Amx) continue;
    for (DType weights : {DType::I8, DType::U4}) {
      const bool zero = weights == DType::U4;
      for (int64_t block : {64, 96, 160, 224, 256, 416, 1300})
        for (int64_t m : {9, 40})
          check({weights, DType::BF16, block == 1300 ? DType::F32 : DType::BF16, m, 1300, 150,
                 block, zero},
                isa, 2);
      check({weights, DType::BF16, DType::F32, 300, 1100, 70, 1100, zero}, isa, 1);
      check({weights, DType::BF16, DType::BF16, 530, 70, 65, 32, zero, true}, isa, 2);
    }
  }
}

// Sums that wait in memory for the next part of K (of 1280 elements at most), of more panels than
// are kept at a time (8) and of two chunks of rows (of 256).
TEST(QuantizedLinear, TilesKeepSumsOfPartsOfK) {
  for (KernelIsa isa : tiers()) {
    if (isa.tier != Isa::Amx) continue;
    for (DType weights : {DType::I8, DType::I4}) {
      check({weights, DType::BF16, DType::F32, 40, 2600, 1217, 2600, true}, isa, 2);
      check({weights, DType::BF16, DType::BF16, 40, 2600, 1217, 96}, isa, 2);
      check({weights, DType::BF16, DType::F32, 290, 1312, 577, 1312}, isa, 1);
      check({weights, DType::BF16, DType::BF16, 290, 1312, 577, 32, true}, isa, 1);
    }
  }
}

// Rows are widened some hundreds at a time: the later ones have results of their own.
TEST(QuantizedLinear, MoreRowsThanAreWidenedAtATime) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {512, 513, 1100})
        check({DType::I8, dtype, DType::F32, m, 40, 70, 8, true, true}, isa, 2);
}

TEST(QuantizedLinear, BiasActivationAndResidual) {
  for (KernelIsa isa : tiers())
    for (DType dtype : {DType::F32, DType::BF16})
      for (int64_t m : {1, 6, 24})
        check({DType::I4, dtype, DType::BF16, m, 96, 97, 32, false, true}, isa, 2);
}

// Panels that are walked as several streams at a time, by more threads than there are panels.
TEST(QuantizedLinear, DeepAndWideShapes) {
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (int64_t m : {1, 2, 7}) {
        check({weights, DType::BF16, DType::BF16, m, 1152, 641, 32}, isa, 3);
        check({weights, DType::BF16, DType::F32, m, 1153, 641, 1153}, isa, 2);
      }
  // More panels for one worker than there are streams.
  for (KernelIsa isa : tiers())
    check({DType::I4, DType::BF16, DType::BF16, 7, 224, 1217, 32}, isa, 1);
}

// NaN and infinities reach the columns that they are multiplied into, and no others.
TEST(QuantizedLinear, SpecialValuesPass) {
  const int64_t k = 64, n = 70;
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (double special : {double(INFINITY), double(NAN)}) {
        SCOPED_TRACE(label(isa) + " " + std::string(nameOf(weights)));
        ThreadPool pool(1);
        const QuantizedShape shape{weights, k, n, k};
        Array q(weights, {n, k});
        for (int64_t i = 0; i < q.size(); ++i) q.set(i, double(i % 5) + 1);
        Buffer packed(shape.bytes());
        packQuantized(shape, q.data(), packed.start(), pool);
        std::vector<float> a(size_t(2 * k), 1), scale(size_t(n), 0.5f), c(size_t(2 * n));
        a[3] = float(special);  // of the first row
        QuantizedLinearSpec spec{shape};
        Buffer scratch(prepareQuantizedLinear(spec, 1, isa));
        QuantizedLinearArgs args{
            .m = 2, .a = a.data(), .weights = packed.start(), .scale = scale.data(), .c = c.data()};
        quantizedLinear(spec, args, pool, scratch.scratch(), isa);
        for (int64_t j = 0; j < n; ++j) {
          EXPECT_EQ(std::isnan(c[size_t(j)]), std::isnan(special)) << j;
          EXPECT_FALSE(std::isfinite(c[size_t(j)])) << j;
          EXPECT_TRUE(std::isfinite(c[size_t(n + j)])) << j;
        }
      }
}

// The same for rows on tiles: few, which are one row of tiles, and many.
TEST(QuantizedLinear, SpecialValuesStayInTheirRowOnTiles) {
  const int64_t k = 70, n = 70;
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::I8, DType::I4})
      for (int64_t m : {5, 40})
        for (double special : {double(INFINITY), double(NAN)}) {
          SCOPED_TRACE(label(isa) + " " + std::string(nameOf(weights)));
          ThreadPool pool(2);
          const QuantizedShape shape{weights, k, n, k};
          Array q(weights, {n, k});
          for (int64_t i = 0; i < q.size(); ++i) q.set(i, double(i % 5) + 1);
          Buffer packed(shape.bytes());
          packQuantized(shape, q.data(), packed.start(), pool);
          std::vector<uint16_t> a(size_t(m * k), floatToBf16(1)), c(size_t(m * n));
          a[size_t(k + 3)] = floatToBf16(float(special));  // of the second row
          std::vector<float> scale(size_t(n), 0.5f);
          QuantizedLinearSpec spec{shape, DType::BF16};
          Buffer scratch(prepareQuantizedLinear(spec, 2, isa));
          QuantizedLinearArgs args{.m = m,
                                   .a = a.data(),
                                   .weights = packed.start(),
                                   .scale = scale.data(),
                                   .c = c.data()};
          quantizedLinear(spec, args, pool, scratch.scratch(), isa);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              const float got = bf16ToFloat(c[size_t(i * n + j)]);
              EXPECT_EQ(std::isnan(got), i == 1 && std::isnan(special)) << i << " " << j;
              EXPECT_EQ(std::isfinite(got), i != 1) << i << " " << j;
            }
        }
}

// With zero points an infinity comes out as (q - zero) x, whose sign is that of the difference, and
// which is a NaN where there is none.
TEST(QuantizedLinear, InfinitiesMeetWeightsLessZeroPointsOnTiles) {
  const int64_t n = 70;
  for (KernelIsa isa : tiers()) {
    if (isa.tier != Isa::Amx) continue;
    for (DType weights : {DType::I8, DType::I4})
      for (auto [m, k, block] : {std::tuple<int64_t, int64_t, int64_t>{5, 70, 70},
                                 {5, 1400, 1400},
                                 {5, 416, 32},
                                 {5, 416, 224},
                                 {40, 70, 70},
                                 {40, 1400, 1400},
                                 {40, 416, 32},
                                 {290, 70, 70}})
        for (double special : {double(INFINITY), double(-INFINITY), double(NAN)}) {
          SCOPED_TRACE(std::string(nameOf(weights)) + " " + std::to_string(m) + "x" +
                       std::to_string(k) + " block " + std::to_string(block) + " " +
                       std::to_string(special));
          ThreadPool pool(2);
          const QuantizedShape shape{weights, k, n, block};
          const Case t{weights, DType::BF16, block == k ? DType::F32 : DType::BF16, m, k, n, block};
          Array q(weights, {n, k});
          for (int64_t i = 0; i < q.size(); ++i) q.set(i, double(i % 5) + 1);
          Buffer packed(shape.bytes());
          packQuantized(shape, q.data(), packed.start(), pool);
          Values numbers[2] = {{t.scales, {}, {}, {}}, {t.scales, {}, {}, {}}};
          for (int64_t i = 0; i < n * shape.scales(); ++i)
            for (int which : {0, 1}) {
              numbers[which].f32.push_back(which ? 3.0f : 0.25f);
              numbers[which].narrow.push_back(floatToBf16(numbers[which].f32.back()));
            }
          Buffer scale = laidOut(t, shape.scales(), numbers[0], pool, isa);
          Buffer zero = laidOut(t, shape.scales(), numbers[1], pool, isa);
          std::vector<uint16_t> a(size_t(m * k), floatToBf16(1)), c(size_t(m * n));
          for (int64_t row : {int64_t(1), m - 1})
            a[size_t(row * k + k - 7)] = floatToBf16(float(special));
          QuantizedLinearSpec spec{shape, DType::BF16, t.scales, true};
          Buffer scratch(prepareQuantizedLinear(spec, 2, isa));
          QuantizedLinearArgs args{.m = m,
                                   .a = a.data(),
                                   .weights = packed.start(),
                                   .scale = scale.start(),
                                   .zero = zero.start(),
                                   .c = c.data()};
          quantizedLinear(spec, args, pool, scratch.scratch(), isa);
          EXPECT_TRUE(scratch.guardsHold());
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              float expected = 0;
              for (int64_t x = 0; x < k; ++x)
                expected += float(q.at(j * k + x) - 3) * 0.25f * bf16ToFloat(a[size_t(i * k + x)]);
              const float got = bf16ToFloat(c[size_t(i * n + j)]);
              if (std::isfinite(expected))
                ASSERT_NEAR(got, expected, 0x1p-8 * std::abs(expected) + 1e-3) << i << " " << j;
              else
                ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected)
                    << i << " " << j << " expected " << expected << ", got " << got;
            }
        }
  }
}

// The largest weights times the bytes of largest magnitude that rows in fixed point have.
TEST(QuantizedLinear, SumsOfLargestBytesFit) {
  const int64_t k = 256, n = 64;
  const float largest = 127 * 65536 - 128 * 256 - 128;  // bytes 127, -128, -128
  for (KernelIsa isa : tiers())
    for (DType weights : {DType::U8, DType::U4})
      for (int64_t m : {1, 2, 3, 4})
        for (float sign : {1.0f, -1.0f}) {
          ThreadPool pool(1);
          const QuantizedShape shape{weights, k, n, k};
          const double top = weights == DType::U8 ? 255 : 15;
          Array q(weights, {n, k});
          for (int64_t i = 0; i < q.size(); ++i) q.set(i, top);
          Buffer packed(shape.bytes());
          packQuantized(shape, q.data(), packed.start(), pool);
          std::vector<float> a(size_t(m * k), sign * largest), ones(size_t(n), 1),
              zeros(size_t(n), 0), c(size_t(m * n));
          QuantizedLinearSpec spec{shape};
          spec.hasZero = true;
          Buffer scratch(prepareQuantizedLinear(spec, 1, isa));
          QuantizedLinearArgs args{.m = m,
                                   .a = a.data(),
                                   .weights = packed.start(),
                                   .scale = ones.data(),
                                   .zero = zeros.data(),
                                   .c = c.data()};
          quantizedLinear(spec, args, pool, scratch.scratch(), isa);
          const double expected = double(sign) * largest * top * double(k);
          for (float got : c)
            EXPECT_NEAR(got / expected, 1, 1e-6)
                << label(isa) << " " << nameOf(weights) << " " << m;
        }
}

TEST(QuantizedLinear, SaysWhatItDoesNotTake) {
  const QuantizedShape shape{DType::I8, 64, 64, 64};
  const QuantizedShape blocks{DType::I8, 64, 64, 32};
  EXPECT_EQ(whyNotQuantized({shape, DType::F16}),
            "quantized weights are multiplied with f32 and bf16");
  EXPECT_EQ(whyNotQuantized({{DType::I8, 64, 64, 12}, DType::F32}),
            "blocks that share a scale are multiples of 8 elements");
  EXPECT_EQ(whyNotQuantized({{DType::I8, 12, 64, 12}, DType::F32}), "") << "a scale for all";
  const std::string scales = "scales are f32, or bf16 where a row has several";
  EXPECT_EQ(whyNotQuantized({shape, DType::F32, DType::BF16}), scales);
  EXPECT_EQ(whyNotQuantized({shape, DType::F32, DType::F16}), scales);
  EXPECT_EQ(whyNotQuantized({blocks, DType::F32, DType::F16}), scales);
  EXPECT_EQ(whyNotQuantized({blocks, DType::F32, DType::BF16}), "");
  const QuantizedShape unsignedShape{DType::U4, 64, 64, 64};
  QuantizedLinearSpec spec{unsignedShape, DType::F32};
  EXPECT_EQ(whyNotQuantized(spec), "unsigned weights have zero points");
  spec.hasZero = true;
  EXPECT_EQ(whyNotQuantized(spec), "");
  ThreadPool pool(1);
  EXPECT_THROW(packQuantized({DType::F32, 8, 8, 8}, nullptr, nullptr, pool), Error);
  EXPECT_THROW(packQuantized({DType::I8, 24, 8, 12}, nullptr, nullptr, pool), Error);
  Buffer few(16);
  EXPECT_THROW(quantizedLinear({shape, DType::F32}, {.m = 1}, pool, few.scratch()), Error);
}

}  // namespace
}  // namespace lathe::cpu
