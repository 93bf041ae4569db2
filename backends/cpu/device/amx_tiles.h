// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tile registers that all AMX kernels of this backend share: their layout, and what kernels do
// with them. Compiled with LATHE_AMX_TWIN, which only tests do, kernels work on a software twin.
#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {

/// Eight tiles of 16 rows x 64 bytes: 0-3 sums, 4-5 A, 6-7 B. The memory form LDTILECFG reads.
struct alignas(64) AmxTileConfig {
  unsigned char palette = 1;
  unsigned char startRow = 0;
  unsigned char reserved[14] = {};
  unsigned short columnBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr AmxTileConfig kAmxTiles{};

}  // namespace lathe::cpu

#if defined(LATHE_AMX_TWIN)
#include "backends/cpu/device/amx_tiles_twin.h"
#define LATHE_TARGET_AMX LATHE_TARGET_AVX512_BF16
#else
#define LATHE_TARGET_AMX "amx-tile,amx-bf16,amx-int8,prfchw," LATHE_TARGET_AVX512_BF16

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

inline void tileConfigure(const AmxTileConfig& config) { _tile_loadconfig(&config); }
inline void tileRelease() { _tile_release(); }
#if defined(__clang__)
template <int tile>
inline void tileZero() {
  _tile_zero(tile);
}
/// Rows are `stride` bytes apart.
template <int tile>
inline void tileLoad(const void* from, int64_t stride) {
  _tile_loadd(tile, from, stride);
}
/// The same of what lies in L2 and would push out of L1 what is read there: it passes L1 by.
template <int tile>
inline void tileStream(const void* from, int64_t stride) {
  _tile_stream_loadd(tile, from, stride);
}
template <int tile>
inline void tileStore(void* to, int64_t stride) {
  _tile_stored(tile, to, stride);
}
/// sums[16][16] += a[16][32] x b[16][16][2], in bf16 pairs.
template <int sums, int a, int b>
inline void tileDotBf16() {
  _tile_dpbf16ps(sums, a, b);
}
/// sums[16][16] += a[16][64] x b[16][16][4], in i32 of signed and unsigned bytes.
template <int sums, int a, int b>
inline void tileDotBytes() {
  _tile_dpbsud(sums, a, b);
}
/// The same of signed bytes alone.
template <int sums, int a, int b>
inline void tileDotSignedBytes() {
  _tile_dpbssd(sums, a, b);
}
#else
// gcc's intrinsics are macros that paste the tile's number into the instruction: a template's
// parameter is no number to them.
template <int tile>
inline void tileZero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
/// Rows are `stride` bytes apart.
template <int tile>
inline void tileLoad(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
}
/// The same of what lies in L2 and would push out of L1 what is read there: it passes L1 by.
template <int tile>
inline void tileStream(const void* from, int64_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void tileStore(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
}
/// sums[16][16] += a[16][32] x b[16][16][2], in bf16 pairs.
template <int sums, int a, int b>
inline void tileDotBf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
}
/// sums[16][16] += a[16][64] x b[16][16][4], in i32 of signed and unsigned bytes.
template <int sums, int a, int b>
inline void tileDotBytes() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
}
/// The same of signed bytes alone.
template <int sums, int a, int b>
inline void tileDotSignedBytes() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
}
#endif

LATHE_ISA_END

}  // namespace
}  // namespace lathe::cpu
#endif
