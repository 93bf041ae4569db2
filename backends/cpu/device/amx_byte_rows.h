// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of bf16 that are rounded to 8 bits (byte_rows.h) for the tiles.
#include "backends/cpu/device/amx_blocks.h"
#include "backends/cpu/device/byte_rows.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// Elements [i, i + 32) of a row of k, zeros behind it.
inline __m512i elementsAt(const uint16_t* x, int64_t i, int64_t k) {
  const int64_t left = k - i;
  const __mmask32 lanes = left >= 32 ? ~__mmask32(0)
                          : left > 0 ? __mmask32((uint32_t(1) << left) - 1)
                                     : __mmask32(0);
  return _mm512_maskz_loadu_epi16(lanes, x + i);
}

inline ByteScale byteScaleOfRow(const uint16_t* x, int64_t k) {
  // As whole numbers magnitudes have the order that they have as floats; infinities and NaN lie
  // above.
  __m512i most = _mm512_setzero_si512();
  for (int64_t i = 0; i < k; i += 32)
    most = _mm512_max_epu16(most, _mm512_and_si512(elementsAt(x, i, k), _mm512_set1_epi16(0x7fff)));
  const uint32_t largest = _mm512_reduce_max_epu32(_mm512_max_epu32(
      _mm512_slli_epi32(most, 16), _mm512_and_si512(most, _mm512_set1_epi32(int(0xffff0000u)))));
  float magnitude;
  __builtin_memcpy(&magnitude, &largest, 4);
  return byteScaleOf(largest < 0x7f800000u ? magnitude : __builtin_nanf(""));
}

// 32 whole numbers of [-127, 127] as bytes; zeros of a row that is NaN, whose elements times its
// steps are zeros or NaN, and those the lowest number of 32 bits.
inline __m256i wholeNumbersAt(const uint16_t* x, int64_t i, int64_t k, __m512 steps) {
  const __m512i pairs = elementsAt(x, i, k);
  const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
  const __m512 odd =
      _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000u))));
  const __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(even, steps));
  const __m512i high = _mm512_cvtps_epi32(_mm512_mul_ps(odd, steps));
  return _mm512_cvtepi16_epi8(_mm512_mask_mov_epi16(low, 0xaaaaaaaau, _mm512_slli_epi32(high, 16)));
}

// A row in tiles of bytes, of `blocks` times 64 of them that lie `stride` bytes apart; returns
// their size.
inline float toByteTiles(const uint16_t* x, int64_t k, int64_t blocks, int64_t stride, char* to) {
  const ByteScale scale = byteScaleOfRow(x, k);
  const __m512 steps = _mm512_set1_ps(scale.steps);
  for (int64_t block = 0; block < blocks; ++block, to += stride)
    for (int64_t i = 0; i < 64; i += 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          wholeNumbersAt(x, block * 64 + i, k, steps));
  return scale.size;
}

// The sum of bytes of such a row: of halves [half0, half1) of blocks. Exact, and so it is in f32
// for as many as the products of bytes take.
inline int32_t sumOfBytes(const char* row, int64_t stride, int64_t half0, int64_t half1) {
  // 128 more makes them unsigned.
  const __m256i middle = _mm256_set1_epi8(char(0x80));
  __m256i sums = _mm256_setzero_si256();
  for (int64_t half = half0; half < half1; ++half) {
    const char* at = row + half / 2 * stride + half % 2 * 32;
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    sums = _mm256_add_epi64(
        sums, _mm256_sad_epu8(_mm256_xor_si256(bytes, middle), _mm256_setzero_si256()));
  }
  const __m128i two =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  const int64_t sum = _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
  return int32_t(sum - (half1 - half0) * 32 * 128);
}

LATHE_ISA_END

}  // namespace
}  // namespace lathe::cpu
