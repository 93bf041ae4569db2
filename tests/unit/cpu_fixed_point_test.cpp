// SPDX-License-Identifier: Apache-2.0
// Rows in fixed point, as kernels on quantized weights take them: a unit, what sums start with, and
// three bytes of every element.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/device/quantized_kernels.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

// The record of one chunk, read as quantized_kernels.h describes it.
struct Record {
  Record(FixedPointFn make, const std::vector<float>& x, int64_t chunk, int center)
      : bytes(size_t(fixedPointBytes(chunk)) + 64, char(0x55)) {
    made = make(x.data(), int64_t(x.size()), chunk, center, bytes.data());
    std::memcpy(&unit, bytes.data(), 4);
    std::memcpy(starts, bytes.data() + 4, 12);
    for (size_t k = 0; k < x.size(); ++k)
      for (int piece = 0; piece < 3; ++piece)
        pieces[piece].push_back(int8_t(bytes[size_t(16 + piece * chunk) + k]));
    for (size_t i = size_t(fixedPointBytes(chunk)); i < bytes.size(); ++i)
      guards = guards && bytes[i] == 0x55;
  }
  double value(size_t k) const {
    return double(unit) * (pieces[0][k] * 65536 + pieces[1][k] * 256 + pieces[2][k]);
  }
  std::vector<char> bytes;
  bool made = false, guards = true;
  float unit = 0;
  int32_t starts[3] = {};
  std::vector<int> pieces[3];
};

void check(FixedPointFn make, const std::vector<float>& x, int64_t chunk, int center) {
  const Record record(make, x, chunk, center);
  ASSERT_TRUE(record.made);
  EXPECT_TRUE(record.guards);
  float largest = 0;
  for (float v : x) largest = std::max(largest, std::abs(v));
  int exponent;
  EXPECT_EQ(std::frexp(record.unit, &exponent), 0.5) << "no power of two";
  // The least unit in which the largest magnitude fits, but a normal number.
  constexpr double kTop = 127.0 * 65536;
  EXPECT_LE(largest, kTop * record.unit);
  if (record.unit > std::numeric_limits<float>::min()) {
    EXPECT_GT(largest, kTop * record.unit / 2);
  }
  int sums[3] = {};
  for (size_t k = 0; k < x.size(); ++k) {
    EXPECT_LE(std::abs(record.value(k) - double(x[k])), record.unit / 2.0) << "element " << k;
    for (int piece = 0; piece < 3; ++piece) sums[piece] += record.pieces[piece][k];
  }
  for (int piece = 0; piece < 3; ++piece) EXPECT_EQ(record.starts[piece], -center * sums[piece]);
}

// Every fixed-point form that this machine runs, with the middle of the weights it is for.
template <class F>
void forEveryForm(F&& with) {
  for (KernelIsa isa : tiers()) {
    SCOPED_TRACE(label(isa));
    const QuantizedKernels& kernels = quantizedKernels(isa);
    if (kernels.toFixed8) with(kernels.toFixed8, 128);
    if (kernels.toFixed4) with(kernels.toFixed4, 8);
  }
}

TEST(FixedPoint, ElementsAreWithinHalfAUnit) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  forEveryForm([&](FixedPointFn make, int center) {
    for (int64_t depth : {8, 16, 24, 32, 40, 128, 256})
      for (float size : {1e-30f, 1e-3f, 1.0f, 3e4f, 1e30f}) {
        std::vector<float> x(static_cast<size_t>(depth));
        for (float& v : x) v = size * normal(random);
        check(make, x, depth, center);
        check(make, x, depth + 8, center);  // the last chunk of a row may be shorter
      }
  });
}

TEST(FixedPoint, TheUnitChangesWhereTheUpperByteIsFull) {
  forEveryForm([&](FixedPointFn make, int center) {
    // 127 * 2^16 units still fit, the next number does not.
    const float full = 127.0f * 65536;
    for (float largest : {full, std::nextafter(full, 2 * full), std::nextafter(full, 0.0f),
                          8388608.0f, 1.0f, std::nextafter(2.0f, 0.0f)})
      for (float sign : {1.0f, -1.0f}) {
        std::vector<float> x(32, 0.25f * largest);
        x[5] = sign * largest;
        x[31] = -sign * largest;
        check(make, x, 32, center);
      }
    EXPECT_EQ(Record(make, std::vector<float>(8, full), 8, center).unit, 1.0f);
    EXPECT_EQ(Record(make, std::vector<float>(8, std::nextafter(full, 2 * full)), 8, center).unit,
              2.0f);
  });
}

TEST(FixedPoint, NumbersAtTheEndsOfTheirRange) {
  forEveryForm([&](FixedPointFn make, int center) {
    check(make, std::vector<float>(32, 0.0f), 32, center);
    check(make, std::vector<float>(32, -0.0f), 32, center);
    check(make, std::vector<float>(32, std::numeric_limits<float>::max()), 32, center);
    check(make, std::vector<float>(32, -std::numeric_limits<float>::max()), 32, center);
    check(make, std::vector<float>(32, 0x1p-104f), 32, center);
    // Of smaller ones the unit would be no normal number.
    for (float small : {0x1.8p-105f, 0x1p-126f, std::numeric_limits<float>::denorm_min()})
      EXPECT_FALSE(Record(make, std::vector<float>(32, small), 32, center).made) << small;
  });
}

TEST(FixedPoint, SmallElementsBesideALargeOneAreNotGivenUp) {
  forEveryForm([&](FixedPointFn make, int center) {
    std::vector<float> x(32, 0.003f);
    for (float large : {100.0f, 2000.0f, -1e5f, 1e30f}) {
      x[7] = large;
      EXPECT_FALSE(Record(make, x, 32, center).made) << large;
    }
    x[7] = 0.03f;
    check(make, x, 32, center);
    // Elements of 8 bits are exact down to 2^15 below, and zeros always.
    x.assign(32, 0x1.aep-6f);
    x[7] = 256;
    check(make, x, 32, center);
    x.assign(32, 0.0f);
    x[7] = 1e30f;
    check(make, x, 32, center);
  });
}

TEST(FixedPoint, WhatIsNotFiniteHasNone) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  forEveryForm([&](FixedPointFn make, int center) {
    // Beside ones, which the unit of an infinity would lose, and beside zeros, which lose nothing.
    for (float other : {1.0f, 0.0f})
      for (float special : {infinity, -infinity, nan, -nan})
        for (size_t at : {size_t(0), size_t(17), size_t(39)}) {
          std::vector<float> x(40, other);
          x[at] = special;
          EXPECT_FALSE(Record(make, x, 40, center).made)
              << special << " at " << at << " of " << other;
        }
  });
}

}  // namespace
}  // namespace lathe::cpu
