// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/word_transpose.h"

#include <cstring>

#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

// Any size; the other tiers leave their borders to it.
void transposePlain(const char* from, int64_t fromStride, int64_t rows, int64_t columns,
                    uint32_t* to, int64_t toStride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + c * toStride + r, from + r * fromStride + c * 4, 4);
}

// What whole blocks of `step` x `step` words leave over: columns at the right, rows at the bottom.
void transposeBorder(const char* from, int64_t fromStride, int64_t rows, int64_t columns,
                     uint32_t* to, int64_t toStride, int64_t step) {
  const int64_t rowsDone = rows / step * step, columnsDone = columns / step * step;
  transposePlain(from + columnsDone * 4, fromStride, rowsDone, columns - columnsDone,
                 to + columnsDone * toStride, toStride);
  transposePlain(from + rowsDone * fromStride, fromStride, rows - rowsDone, columns, to + rowsDone,
                 toStride);
}

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

inline void transpose8x8(const char* from, int64_t fromStride, uint32_t* to, int64_t toStride) {
  __m256i row[8], pair[8], quad[8];
  for (int i = 0; i < 8; ++i)
    row[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * fromStride));
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
  }
  // quad[4 h + c]: rows 4 h to 4 h + 3 of columns c and c + 4.
  for (int h = 0; h < 8; h += 4) {
    quad[h] = _mm256_unpacklo_epi64(pair[h], pair[h + 2]);
    quad[h + 1] = _mm256_unpackhi_epi64(pair[h], pair[h + 2]);
    quad[h + 2] = _mm256_unpacklo_epi64(pair[h + 1], pair[h + 3]);
    quad[h + 3] = _mm256_unpackhi_epi64(pair[h + 1], pair[h + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + c * toStride),
                        _mm256_permute2x128_si256(quad[c], quad[c + 4], 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (c + 4) * toStride),
                        _mm256_permute2x128_si256(quad[c], quad[c + 4], 0x31));
  }
}

void transposeAvx2(const char* from, int64_t fromStride, int64_t rows, int64_t columns,
                   uint32_t* to, int64_t toStride) {
  // A column of blocks fills half a cache line: the other half follows at once.
  for (int64_t r0 = 0; r0 + 8 <= rows; r0 += 16)
    for (int64_t c = 0; c + 8 <= columns; c += 8)
      for (int64_t r = r0; r < r0 + 16 && r + 8 <= rows; r += 8)
        transpose8x8(from + r * fromStride + c * 4, fromStride, to + c * toStride + r, toStride);
  transposeBorder(from, fromStride, rows, columns, to, toStride, 8);
}

LATHE_ISA_END
LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)

#include "backends/cpu/device/transpose512.inc"

inline void transpose16x16(const char* from, int64_t fromStride, uint32_t* to, int64_t toStride) {
  __m512i words[16];
  for (int i = 0; i < 16; ++i) words[i] = _mm512_loadu_si512(from + i * fromStride);
  transposeWords(words);
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * toStride, words[i]);
}

void transposeAvx512(const char* from, int64_t fromStride, int64_t rows, int64_t columns,
                     uint32_t* to, int64_t toStride) {
  for (int64_t r = 0; r + 16 <= rows; r += 16)
    for (int64_t c = 0; c + 16 <= columns; c += 16)
      transpose16x16(from + r * fromStride + c * 4, fromStride, to + c * toStride + r, toStride);
  transposeBorder(from, fromStride, rows, columns, to, toStride, 16);
}

LATHE_ISA_END

}  // namespace

WordTranspose wordTranspose(Isa tier) {
  return tier == Isa::Avx2 ? transposeAvx2 : transposeAvx512;
}

}  // namespace lathe::cpu
