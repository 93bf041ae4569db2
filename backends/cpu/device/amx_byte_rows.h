// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of bf16 that are rounded to 8 bits (byte_rows.h) for the tiles.
#include "backends/cpu/device/amx_blocks.h"
#include "backends/cpu/device/byte_rows.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// Elements [i, i + 16) of a row of k, zeros behind it.
inline __m512 elementsAt(const uint16_t* x, int64_t i, int64_t k) {
  const int64_t left = k - i;
  const __mmask16 lanes = left >= 16 ? __mmask16(0xffff)
                          : left > 0 ? __mmask16((1u << left) - 1)
                                     : __mmask16(0);
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, x + i)), 16));
}

inline ByteScale byteScaleOfRow(const uint16_t* x, int64_t k) {
  __m512 most = _mm512_setzero_ps(), zeros = most;  // an infinity or a NaN times 0 is a NaN
  for (int64_t i = 0; i < k; i += 16) {
    const __m512 v = elementsAt(x, i, k);
    most = _mm512_max_ps(_mm512_abs_ps(v), most);
    zeros = _mm512_fmadd_ps(v, _mm512_setzero_ps(), zeros);
  }
  return byteScaleOf(_mm512_reduce_add_ps(zeros) == 0 ? _mm512_reduce_max_ps(most)
                                                      : __builtin_nanf(""));
}

// Whole numbers of [-127, 127]; zeros of a row that is NaN.
inline __m512i wholeNumbersAt(const uint16_t* x, int64_t i, int64_t k, const ByteScale& scale) {
  const __m512 steps = _mm512_mul_ps(elementsAt(x, i, k), _mm512_set1_ps(scale.steps));
  return _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(steps, steps, _CMP_ORD_Q), steps);
}

// A row as whole numbers in bf16, which holds them exactly; returns their size.
inline float toWholeBf16(const uint16_t* x, int64_t k, uint16_t* to) {
  const ByteScale scale = byteScaleOfRow(x, k);
  for (int64_t i = 0; i < k; i += 16) {
    const __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(wholeNumbersAt(x, i, k, scale)));
    const __mmask16 lanes = k - i >= 16 ? __mmask16(0xffff) : __mmask16((1u << (k - i)) - 1);
    _mm256_mask_storeu_epi16(to + i, lanes, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  }
  return scale.size;
}

// A row in tiles of bytes, of `blocks` times 64 of them that lie 32 rows apart; returns their size
// and their sum, which f32 holds exactly.
inline float toByteTiles(const uint16_t* x, int64_t k, int64_t blocks, char* to, float* sum) {
  const ByteScale scale = byteScaleOfRow(x, k);
  __m512i sums = _mm512_setzero_si512();
  for (int64_t block = 0; block < blocks; ++block, to += 32 * 64)
    for (int64_t i = 0; i < 64; i += 16) {
      const __m512i whole = wholeNumbersAt(x, block * 64 + i, k, scale);
      sums = _mm512_add_epi32(sums, whole);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm512_cvtepi32_epi8(whole));
    }
  *sum = float(_mm512_reduce_add_epi32(sums));
  return scale.size;
}

LATHE_ISA_END

}  // namespace
}  // namespace lathe::cpu
