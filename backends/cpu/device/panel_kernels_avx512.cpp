// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "backends/cpu/device/isa_region.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)

template <int rows>
inline void loadAcc(const float* acc, __m512 (&sum)[rows][4]) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) sum[r][c] = _mm512_loadu_ps(acc + r * 64 + c * 16);
}

template <int rows>
inline void storeAcc(float* acc, const __m512 (&sum)[rows][4]) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) _mm512_storeu_ps(acc + r * 64 + c * 16, sum[r][c]);
}

// The four cache lines of a panel row, `ahead` bytes further on.
inline void prefetchRow(const char* row, int64_t ahead) {
  for (int c = 0; c < 4; ++c) _mm_prefetch(row + ahead + c * 64, _MM_HINT_T0);
}

template <int rows>
void panelF32(const void* a, int64_t aStride, const void* panel, int64_t blocks, int64_t prefetch,
              float* acc) {
  const float* x = static_cast<const float*>(a);
  const char* b = static_cast<const char*>(panel);
  __m512 sum[rows][4];
  loadAcc<rows>(acc, sum);
  for (int64_t k = 0; k < blocks * 16; ++k, b += 256) {
    if (prefetch > 0) prefetchRow(b, prefetch);
    for (int c = 0; c < 4; ++c) {
      __m512 w = _mm512_loadu_ps(b + c * 64);
      for (int r = 0; r < rows; ++r)
        sum[r][c] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r * aStride + k]), sum[r][c]);
    }
  }
  storeAcc<rows>(acc, sum);
}

// bf16 weights widened in registers: the even element of a pair by a shift, the odd by a mask.
template <int rows>
void panelWiden(const void* a, int64_t aStride, const void* panel, int64_t blocks, int64_t prefetch,
                float* acc) {
  const float* x = static_cast<const float*>(a);
  const char* b = static_cast<const char*>(panel);
  const __m512i high = _mm512_set1_epi32(int(0xffff0000u));
  __m512 sum[rows][4];
  loadAcc<rows>(acc, sum);
  for (int64_t k = 0; k < blocks * 32; k += 2, b += 256) {
    if (prefetch > 0) prefetchRow(b, prefetch);
    for (int c = 0; c < 4; ++c) {
      __m512i pair = _mm512_loadu_si512(b + c * 64);
      __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
      __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pair, high));
      for (int r = 0; r < rows; ++r) {
        sum[r][c] = _mm512_fmadd_ps(even, _mm512_set1_ps(x[r * aStride + k]), sum[r][c]);
        sum[r][c] = _mm512_fmadd_ps(odd, _mm512_set1_ps(x[r * aStride + k + 1]), sum[r][c]);
      }
    }
  }
  storeAcc<rows>(acc, sum);
}

inline __m512 widen(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

#include "backends/cpu/device/narrow512.inc"
#include "backends/cpu/device/vec512.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/activation.inc"

#include "backends/cpu/device/store_rows512.inc"
#include "backends/cpu/device/store_activated.inc"
#include "backends/cpu/device/gate_row.inc"
#include "backends/cpu/device/byte_rows.inc"

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512_BF16)

// VDPBF16PS: one 32-bit lane holds two neighbours along K, as the panel stores them. Of a block
// tile by tile lines from all of it are read at once: those of whole blocks ahead are fetched.
template <int rows, bool tiles>
void panelDot(const void* a, int64_t aStride, const void* panel, int64_t blocks, int64_t prefetch,
              float* acc) {
  constexpr PairPlaces places = tiles ? kTileByTile : PairPlaces{};
  const char* x = static_cast<const char*>(a);
  const char* b = static_cast<const char*>(panel);
  __m512 sum[rows][4];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) sum[r][c] = _mm512_loadu_ps(acc + r * 64 + c * 16);
  if (tiles && prefetch > 0) prefetch = roundUp(prefetch, kPanelBlockBytes);
  for (const char* end = b + blocks * kPanelBlockBytes; b < end; b += kPanelBlockBytes)
    for (int64_t pair = 0; pair < 16; ++pair, x += 4) {
      if (prefetch > 0)
        for (int c = 0; c < 4; ++c) _mm_prefetch(b + places.at(pair, c) + prefetch, _MM_HINT_T0);
      __m512bh w[4];
      for (int c = 0; c < 4; ++c) w[c] = (__m512bh)_mm512_loadu_si512(b + places.at(pair, c));
      for (int r = 0; r < rows; ++r) {
        int bits;
        __builtin_memcpy(&bits, x + r * aStride * 2, 4);
        __m512bh value = (__m512bh)_mm512_set1_epi32(bits);
        for (int c = 0; c < 4; ++c) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], w[c], value);
      }
    }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) _mm512_storeu_ps(acc + r * 64 + c * 16, sum[r][c]);
}

// What follows the products, where a processor rounds to bf16 itself.
namespace rounding {

#include "backends/cpu/device/rounding512.inc"
#include "backends/cpu/device/vec512.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/activation.inc"
#include "backends/cpu/device/store_rows512.inc"
#include "backends/cpu/device/store_activated.inc"
#include "backends/cpu/device/gate_row.inc"

}  // namespace rounding

LATHE_ISA_END

}  // namespace

const PanelKernels kPanelKernelsAvx512 = {
    {panelF32<1>, panelF32<2>, panelF32<3>, panelF32<4>},
    {panelWiden<1>, panelWiden<2>, panelWiden<3>, panelWiden<4>},
    4,
    16,
    false,
    store,
    gateRow,
    largestOf,
    toMultiples,
};
const PanelKernels kPanelKernelsAvx512Bf16 = {
    {panelF32<1>, panelF32<2>, panelF32<3>, panelF32<4>},
    {panelDot<1, false>, panelDot<2, false>, panelDot<3, false>, panelDot<4, false>},
    4,
    4,
    true,
    rounding::store,
    rounding::gateRow,
    largestOf,
    toMultiples,
};
const PanelKernels kPanelKernelsAmx = {
    {panelF32<1>, panelF32<2>, panelF32<3>, panelF32<4>},
    {panelDot<1, true>, panelDot<2, true>, panelDot<3, true>, panelDot<4, true>},
    4,
    4,
    true,
    rounding::store,
    rounding::gateRow,
    largestOf,
    toMultiples,
};

}  // namespace lathe::cpu
