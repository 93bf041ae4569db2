// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/packed_weights.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "backends/cpu/device/word_transpose.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

// What lies at [k, n] of packed weights by the definition of the layout, as f32.
float packedAt(const PackedShape& shape, const char* packed, int64_t k, int64_t n, KernelIsa isa) {
  const char* panel = packed + n / kPanelColumns * shape.panelBytes();
  if (shape.dtype == DType::F32)
    return reinterpret_cast<const float*>(panel)[k * kPanelColumns + n % kPanelColumns];
  const auto* bf16 = reinterpret_cast<const uint16_t*>(panel);
  const int64_t column = n % kPanelColumns;
  if (isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles)  // [k/32][4][16][16][2]
    return bf16ToFloat(
        bf16[((k / 32 * 4 + column / 16) * 16 + k % 32 / 2) * 32 + column % 16 * 2 + k % 2]);
  return bf16ToFloat(bf16[(k / 2 * kPanelColumns + column) * 2 + k % 2]);
}

void checkPacking(const PackedShape& shape, DType source, bool outIn, KernelIsa isa) {
  SCOPED_TRACE(label(isa) + " " + std::string(nameOf(source)) + "->" +
               std::string(nameOf(shape.dtype)) + (outIn ? " [n, k] " : " [k, n] ") +
               std::to_string(shape.k) + "x" + std::to_string(shape.n));
  // A tensor in a mapped file may begin at any byte.
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  std::vector<char> file(1);
  for (int64_t i = 0; i < shape.k * shape.n; ++i) {
    float x = normal(random);
    uint16_t bits = floatToBf16(x);
    if (source == DType::BF16) x = bf16ToFloat(bits);
    values.push_back(x);
    const char* bytes =
        source == DType::F32 ? reinterpret_cast<char*>(&x) : reinterpret_cast<char*>(&bits);
    file.insert(file.end(), bytes, bytes + sizeOf(source));
  }
  constexpr size_t guard = 64;
  std::vector<char> packed(shape.bytes() + guard, char(0x77));  // the padding is not there yet
  ThreadPool pool(2);
  packWeights(shape, file.data() + 1, source, outIn, packed.data(), pool, isa);
  for (size_t i = shape.bytes(); i < packed.size(); ++i) ASSERT_EQ(packed[i], 0x77);
  int64_t wrong = 0;
  for (int64_t k = 0; k < shape.blocks() * shape.blockK(); ++k)
    for (int64_t n = 0; n < shape.panels() * kPanelColumns; ++n) {
      float expected = 0;
      if (k < shape.k && n < shape.n)
        expected = values[size_t(outIn ? n * shape.k + k : k * shape.n + n)];
      if (shape.dtype == DType::BF16) expected = bf16ToFloat(floatToBf16(expected));
      if (packedAt(shape, packed.data(), k, n, isa) != expected && ++wrong < 4)
        ADD_FAILURE() << "[" << k << ", " << n << "] expected " << expected << ", got "
                      << packedAt(shape, packed.data(), k, n, isa);
    }
  EXPECT_EQ(wrong, 0);
}

TEST(PackedWeights, LayoutIsBlockedAndZeroPadded) {
  ThreadPool pool(2);
  PackedShape shape{DType::BF16, 3, 66};
  ASSERT_EQ(shape.bytes(), 2u * 4096u);
  std::vector<float> w(3 * 66);
  for (size_t i = 0; i < w.size(); ++i) w[i] = float(i);
  std::vector<uint16_t> packed(4096, 0xffff);
  packWeights(shape, w.data(), DType::F32, false, packed.data(), pool, KernelIsa::of(Isa::Avx2));
  // Element [k, n] lies at panel n / 64, pair k / 2, column n % 64, slot k % 2.
  EXPECT_EQ(bf16ToFloat(packed[0]), 0);
  EXPECT_EQ(bf16ToFloat(packed[1]), 66);
  EXPECT_EQ(bf16ToFloat(packed[128]), 132);
  EXPECT_EQ(bf16ToFloat(packed[129]), 0);
  EXPECT_EQ(bf16ToFloat(packed[2048 + 2]), 65);
  EXPECT_EQ(bf16ToFloat(packed[2048 + 4]), 0);
}

TEST(PackedWeights, EverySizeOnEveryTierFollowsTheLayout) {
  for (KernelIsa isa : tiers())
    for (DType packed : {DType::F32, DType::BF16})
      for (DType source : {DType::F32, DType::BF16})
        for (bool outIn : {true, false})
          for (int64_t k : {0, 1, 15, 31, 32, 33, 97, 160})
            for (int64_t n : {1, 15, 17, 64, 66, 131})
              checkPacking({packed, k, n}, source, outIn, isa);
}

TEST(PackedWeights, NanAndInfinityKeepTheirBits) {
  ThreadPool pool(1);
  for (KernelIsa isa : tiers()) {
    PackedShape shape{DType::BF16, 64, 64};
    std::vector<uint16_t> w(64 * 64), packed(64 * 64);
    for (size_t i = 0; i < w.size(); ++i) w[i] = uint16_t(i * 16 + 1);
    packWeights(shape, w.data(), DType::BF16, true, packed.data(), pool, isa);
    const PairPlaces places = pairPlaces(isa);
    for (int64_t k = 0; k < 64; ++k)
      for (int64_t n = 0; n < 64; ++n)
        ASSERT_EQ(packed[size_t(places.at(k / 2, n / 16) / 2 + n % 16 * 2 + k % 2)],
                  w[size_t(n * 64 + k)])
            << label(isa);
  }
}

TEST(WordTranspose, WritesNothingBeyondTheMatrix) {
  constexpr int64_t stride = 40;
  for (KernelIsa isa : tiers())
    for (int64_t rows : {0, 1, 8, 15, 16, 23, 33})
      for (int64_t columns : {0, 1, 7, 16, 25, 34}) {
        std::vector<uint32_t> from(size_t(rows * stride + 1));
        std::vector<uint32_t> to(size_t(columns * stride + 1), 0xabcdu);
        for (size_t i = 0; i < from.size(); ++i) from[i] = uint32_t(i);
        wordTranspose(isa.tier)(reinterpret_cast<const char*>(from.data()), stride * 4, rows,
                                columns, to.data(), stride);
        for (int64_t c = 0; c < columns; ++c)
          for (int64_t r = 0; r < stride; ++r)
            ASSERT_EQ(to[size_t(c * stride + r)], r < rows ? uint32_t(r * stride + c) : 0xabcdu)
                << label(isa) << " " << rows << "x" << columns << " at " << r << ", " << c;
        ASSERT_EQ(to.back(), 0xabcdu);
      }
}

}  // namespace
}  // namespace lathe::cpu
