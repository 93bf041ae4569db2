// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tile registers in software, as Intel's manual describes LDTILECFG, TILELOADD, TILESTORED,
// TILEZERO, TILERELEASE, TDPBF16PS, TDPBSUD and TDPBSSD: tests run the AMX kernels on them where a
// machine has no tiles. Nothing outside of tests is compiled with them.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "backends/cpu/device/amx_tiles.h"

namespace lathe::cpu {

// std::fma as an instruction: every machine that Lathe runs on has it.
#define LATHE_AMX_TWIN_MATH __attribute__((target("avx2,fma")))

/// The registers of the calling thread.
struct AmxTwin {
  bool configured = false;
  AmxTileConfig config;
  unsigned char data[8][16][64];
};
inline AmxTwin& amxTwin() {
  static thread_local AmxTwin twin;
  return twin;
}
/// Products of tiles in this process, by which a test knows that the twin ran.
inline std::atomic<int64_t> amxTwinProducts{0};

namespace amx_twin {

inline AmxTwin& configured() {
  if (!amxTwin().configured) throw std::logic_error("a tile is used before LDTILECFG");
  return amxTwin();
}

// Subnormal numbers are zeros, as operands and as results.
LATHE_AMX_TWIN_MATH inline float flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
LATHE_AMX_TWIN_MATH inline float f32Of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return flushed(x);
}

}  // namespace amx_twin

inline void tileConfigure(const AmxTileConfig& config) {
  AmxTwin& twin = amxTwin();
  twin.configured = true;
  twin.config = config;
  std::memset(twin.data, 0, sizeof twin.data);
}
inline void tileRelease() { amxTwin().configured = false; }

template <int tile>
void tileZero() {
  std::memset(amx_twin::configured().data[tile], 0, sizeof(AmxTwin::data[tile]));
}
template <int tile>
void tileLoad(const void* from, int64_t stride) {
  tileZero<tile>();
  AmxTwin& twin = amxTwin();
  for (int r = 0; r < twin.config.rows[tile]; ++r)
    std::memcpy(twin.data[tile][r], static_cast<const char*>(from) + r * stride,
                twin.config.columnBytes[tile]);
}
template <int tile>
void tileStream(const void* from, int64_t stride) {
  tileLoad<tile>(from, stride);
}
template <int tile>
void tileStore(void* to, int64_t stride) {
  const AmxTwin& twin = amx_twin::configured();
  for (int r = 0; r < twin.config.rows[tile]; ++r)
    std::memcpy(static_cast<char*>(to) + r * stride, twin.data[tile][r],
                twin.config.columnBytes[tile]);
}

// Whether sums[m][n] += a[m][k] x b[k][n] is one, in elements of 4 bytes.
inline void expectSizesFit(const AmxTileConfig& size, int sums, int a, int b) {
  if (size.rows[a] != size.rows[sums] || size.rows[b] != size.columnBytes[a] / 4 ||
      size.columnBytes[b] != size.columnBytes[sums])
    throw std::logic_error("a product of tiles whose sizes do not fit");
}

/// Whole numbers of 32 bits, which wrap. `Byte`: those of b.
template <class Byte, int sums, int a, int b>
void tileDotOfBytes() {
  AmxTwin& twin = amx_twin::configured();
  const AmxTileConfig& size = twin.config;
  expectSizesFit(size, sums, a, b);
  amxTwinProducts.fetch_add(1, std::memory_order_relaxed);
  for (int m = 0; m < size.rows[sums]; ++m)
    for (int n = 0; n < size.columnBytes[sums] / 4; ++n) {
      uint32_t sum;
      std::memcpy(&sum, twin.data[sums][m] + n * 4, 4);
      for (int k = 0; k < size.columnBytes[a]; ++k)
        sum += uint32_t(int8_t(twin.data[a][m][k]) * int(Byte(twin.data[b][k / 4][n * 4 + k % 4])));
      std::memcpy(twin.data[sums][m] + n * 4, &sum, 4);
    }
}
template <int sums, int a, int b>
void tileDotBytes() {
  tileDotOfBytes<uint8_t, sums, a, b>();
}
template <int sums, int a, int b>
void tileDotSignedBytes() {
  tileDotOfBytes<int8_t, sums, a, b>();
}

/// Even and odd elements are summed apart with fused multiply-adds, in the order of k; their sum is
/// added to what was there. Every step rounds to nearest even.
template <int sums, int a, int b>
LATHE_AMX_TWIN_MATH void tileDotBf16() {
  using amx_twin::f32Of, amx_twin::flushed;
  AmxTwin& twin = amx_twin::configured();
  const AmxTileConfig& size = twin.config;
  const int pairs = size.columnBytes[a] / 4, columns = size.columnBytes[sums] / 4;
  expectSizesFit(size, sums, a, b);
  amxTwinProducts.fetch_add(1, std::memory_order_relaxed);
  uint32_t left[16], right[16][16];  // pairs of bf16, the even one in the lower half
  std::memcpy(right, twin.data[b], sizeof right);
  for (int m = 0; m < size.rows[sums]; ++m) {
    float even[16] = {}, odd[16] = {};
    std::memcpy(left, twin.data[a][m], sizeof left);
    for (int k = 0; k < pairs; ++k) {
      const float evenLeft = f32Of(left[k] << 16), oddLeft = f32Of(left[k] & 0xffff0000u);
      for (int n = 0; n < columns; ++n) {
        even[n] = flushed(std::fma(evenLeft, f32Of(right[k][n] << 16), even[n]));
        odd[n] = flushed(std::fma(oddLeft, f32Of(right[k][n] & 0xffff0000u), odd[n]));
      }
    }
    uint32_t before[16];
    std::memcpy(before, twin.data[sums][m], sizeof before);
    for (int n = 0; n < columns; ++n) {
      const float sum = flushed(f32Of(before[n]) + flushed(even[n] + odd[n]));
      std::memcpy(twin.data[sums][m] + n * 4, &sum, 4);
    }
  }
}

}  // namespace lathe::cpu
