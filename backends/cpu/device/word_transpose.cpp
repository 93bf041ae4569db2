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

#include "backends/cpu/device/transpose256.inc"

inline void transpose8x8(const char* from, int64_t fromStride, uint32_t* to, int64_t toStride) {
  __m256i words[8];
  for (int i = 0; i < 8; ++i)
    words[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * fromStride));
  transposeWords(words);
  for (int i = 0; i < 8; ++i)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * toStride), words[i]);
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
