// SPDX-License-Identifier: Apache-2.0
// The software tiles against Intel's description of TDPBF16PS, and against the instructions.
#define LATHE_AMX_TWIN
#include "backends/cpu/device/amx_tiles_twin.h"

#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/device/cpu_features.h"
#include "lathe/runtime/dtype.h"

namespace lathe::cpu {
namespace {

struct Operands {
  alignas(64) uint16_t a[16][32] = {};     // [m][k]
  alignas(64) uint16_t b[16][16][2] = {};  // [k / 2][n][k % 2]
  alignas(64) float c[16][16] = {};
};

// Whole numbers: a[m][k], b[k / 4][n * 4 + k % 4].
struct Bytes {
  alignas(64) uint8_t a[16][64];
  alignas(64) uint8_t b[16][64];
  alignas(64) int32_t c[16][16];
};

void multiply(Operands& x) {
  tileConfigure(kAmxTiles);
  tileLoad<0>(x.c, 64);
  tileLoad<4>(x.a, 64);
  tileLoad<6>(x.b, 64);
  tileDotBf16<0, 4, 6>();
  tileStore<0>(x.c, 64);
  tileRelease();
}

uint16_t bf16(double x) { return floatToBf16(float(x)); }

TEST(AmxTilesTwin, MultipliesMatrices) {
  Operands x;
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 32; ++k) x.a[m][k] = bf16((m * 7 + k * 3) % 11 - 5);
  for (int k = 0; k < 32; ++k)
    for (int n = 0; n < 16; ++n) x.b[k / 2][n][k % 2] = bf16((k * 5 + n * 2) % 13 - 6);
  for (auto& row : x.c)
    for (float& v : row) v = 100;
  multiply(x);
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      float want = 100;
      for (int k = 0; k < 32; ++k)
        want += float((m * 7 + k * 3) % 11 - 5) * float((k * 5 + n * 2) % 13 - 6);
      ASSERT_EQ(x.c[m][n], want) << m << " " << n;
    }
}

TEST(AmxTilesTwin, SumsEvenAndOddElementsApart) {
  Operands x;
  // In the order of k, 2^30 would swallow both ones.
  const double left[] = {0x1p30, 1, -0x1p30, 1};
  for (int k = 0; k < 4; ++k) {
    x.a[0][k] = bf16(left[k]);
    x.b[k / 2][0][k % 2] = bf16(1);
  }
  multiply(x);
  EXPECT_EQ(x.c[0][0], 2);
}

TEST(AmxTilesTwin, RoundsToNearestEvenWithoutRoundingProducts) {
  Operands x;
  // 1 + 2^-24 is a tie that goes down to the even 1; with 2^-31 more it goes up.
  x.a[0][0] = bf16(1);
  x.b[0][0][0] = bf16(1);
  x.a[0][2] = bf16(0x1p-12);
  x.b[1][0][0] = bf16(0x1p-12);
  multiply(x);
  EXPECT_EQ(x.c[0][0], 1);
  x.c[0][0] = 0;
  x.b[1][0][0] = bf16(0x1p-12 * (1 + 0x1p-7));
  multiply(x);
  EXPECT_EQ(x.c[0][0], 1 + 0x1p-23f);
}

TEST(AmxTilesTwin, SubnormalsAreZeros) {
  Operands x;
  x.a[0][0] = 0x0001;  // a subnormal operand
  x.b[0][0][0] = bf16(0x1p100);
  x.a[1][0] = bf16(0x1p-70);  // a subnormal product
  x.b[0][1][0] = bf16(0x1p-70);
  x.c[2][2] = 0x1p-130f;  // a subnormal sum
  x.a[3][0] = bf16(-0x1p-70);
  multiply(x);
  EXPECT_EQ(x.c[0][0], 0);
  EXPECT_EQ(x.c[1][1], 0);
  EXPECT_EQ(x.c[2][2], 0);
  EXPECT_EQ(x.c[3][1], 0);
}

TEST(AmxTilesTwin, UseBeforeTheConfigurationIsAnError) {
  tileRelease();
  EXPECT_THROW(tileZero<0>(), std::logic_error);
  Operands x;
  EXPECT_THROW(tileLoad<0>(x.c, 64), std::logic_error);
  EXPECT_THROW((tileDotBf16<0, 4, 6>()), std::logic_error);
}

TEST(AmxTilesTwin, ConfigurationsThatDoNotFitAreErrors) {
  AmxTileConfig config;
  config.columnBytes[4] = 32;  // 8 pairs, where B has 16 rows
  tileConfigure(config);
  EXPECT_THROW((tileDotBf16<0, 4, 6>()), std::logic_error);
  tileRelease();
}

LATHE_ISA_BEGIN("amx-tile,amx-bf16," LATHE_TARGET_AVX512_BF16)
void multiplyOnTiles(Operands& x) {
  _tile_loadconfig(&kAmxTiles);
  _tile_loadd(0, x.c, 64);
  _tile_loadd(4, x.a, 64);
  _tile_loadd(6, x.b, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_stored(0, x.c, 64);
  _tile_release();
}
LATHE_ISA_END

LATHE_ISA_BEGIN("amx-tile,amx-int8," LATHE_TARGET_AVX512_BF16)
// Sums of signed and unsigned bytes in tile 0, of signed ones in tile 1.
void multiplyBytesOnTiles(const Bytes& x, int32_t (&sums)[2][16][16]) {
  _tile_loadconfig(&kAmxTiles);
  _tile_loadd(0, x.c, 64);
  _tile_loadd(1, x.c, 64);
  _tile_loadd(4, x.a, 64);
  _tile_loadd(6, x.b, 64);
  _tile_dpbsud(0, 4, 6);
  _tile_dpbssd(1, 4, 6);
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_release();
}
LATHE_ISA_END

TEST(AmxTilesTwin, GivesTheInstructionsSumsOfBytes) {
  if (machineIsa() < Isa::Amx) GTEST_SKIP() << "this machine has no AMX tiles";
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Bytes x;
    for (auto& row : x.a)
      for (uint8_t& v : row) v = uint8_t(random());
    for (auto& row : x.b)
      for (uint8_t& v : row) v = uint8_t(random());
    for (auto& row : x.c)
      for (int32_t& v : row) v = int32_t(random());
    alignas(64) int32_t twin[2][16][16], real[2][16][16];
    tileConfigure(kAmxTiles);
    tileLoad<0>(x.c, 64);
    tileLoad<1>(x.c, 64);
    tileLoad<4>(x.a, 64);
    tileLoad<6>(x.b, 64);
    tileDotBytes<0, 4, 6>();
    tileDotSignedBytes<1, 4, 6>();
    tileStore<0>(twin[0], 64);
    tileStore<1>(twin[1], 64);
    tileRelease();
    multiplyBytesOnTiles(x, real);
    ASSERT_EQ(std::memcmp(twin, real, sizeof twin), 0) << "round " << round;
  }
}

TEST(AmxTilesTwin, GivesTheInstructionsBits) {
  if (machineIsa() < Isa::Amx) GTEST_SKIP() << "this machine has no AMX tiles";
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Operands x;
    auto any = [&] {  // exponents from subnormal up to where nothing overflows
      return uint16_t((random() & 0x807f) |
                      (random() % (round % 2 ? 160u : 20u) + 50u * (round % 2)) << 7);
    };
    for (auto& row : x.a)
      for (uint16_t& v : row) v = any();
    for (auto& row : x.b)
      for (auto& pair : row)
        for (uint16_t& v : pair) v = any();
    for (auto& row : x.c)
      for (float& v : row) v = bf16ToFloat(any());
    Operands real = x;
    multiply(x);
    multiplyOnTiles(real);
    ASSERT_EQ(std::memcmp(x.c, real.c, sizeof x.c), 0) << "round " << round;
  }
}

}  // namespace
}  // namespace lathe::cpu
