// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/isa_region.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/quantized_kernels.h"
#include "backends/cpu/device/tiled_gemm.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

#include "backends/cpu/device/fixed_point_unit.inc"

// Eight of the 64 numbers of a row of scales or zero points.
inline __m256 numbersOf(const char* base, bool bf16, int64_t row, int column) {
  if (!bf16) return _mm256_loadu_ps(reinterpret_cast<const float*>(base + row * 256 + column * 32));
  const __m256i pair =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + row / 2 * 256 + column * 32));
  return _mm256_castsi256_ps(row % 2 ? _mm256_and_si256(pair, _mm256_set1_epi32(int(0xffff0000u)))
                                     : _mm256_slli_epi32(pair, 16));
}

// Byte i of four, and the four bits of element i of eight: moved to the top, and back with their
// sign, which flipping the upper bit gives them.
inline __m256 bytesAsFloats(__m256i words, int i) {
  const __m256i flipped = _mm256_xor_si256(words, _mm256_set1_epi32(int(0x80808080u)));
  const __m256i top = _mm256_sll_epi32(flipped, _mm_cvtsi32_si128(24 - 8 * i));
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 24));
}
inline __m256 halvesAsFloats(__m256i words, int i) {
  const __m256i flipped = _mm256_xor_si256(words, _mm256_set1_epi32(int(0x88888888u)));
  const __m256i top = _mm256_sll_epi32(flipped, _mm_cvtsi32_si128(28 - (i % 4 * 8 + i / 4 * 4)));
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 28));
}

// What zero points stand for beside the sums of A's elements.
inline __m256 zerosOf(const QuantizedPanel& p, int64_t row, int column) {
  return _mm256_sub_ps(numbersOf(p.zero, p.bf16, row, column), _mm256_set1_ps(p.center));
}

// Registers of 8 columns whose sums are under way at a time (panel_kernels_avx2.cpp).
constexpr int columnsAtOnce(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }

// A chunk, which stays in the L1 cache between groups of columns. Where these skip over lines, what
// is behind the chunk is fetched line by line (panel_kernels_avx2.cpp).
template <int rows, int columns, bool halves>
inline void chunkOf(const char* b, const float* const (&x)[rows], int64_t depth, const char* next,
                    __m256 (&sum)[rows][columns]) {
  constexpr int step = halves ? 8 : 4;
  for (int64_t k = 0; k < depth; k += step, b += 256) {
    if (next)
      for (int c = 0; c < columns; c += 2, next += 64) _mm_prefetch(next, _MM_HINT_T0);
    for (int c = 0; c < columns; ++c) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + c * 32));
      for (int i = 0; i < step; ++i) {
        const __m256 w = halves ? halvesAsFloats(words, i) : bytesAsFloats(words, i);
        for (int r = 0; r < rows; ++r)
          sum[r][c] = _mm256_fmadd_ps(w, _mm256_set1_ps(x[r][k + i]), sum[r][c]);
      }
    }
  }
}

template <int rows, bool halves>
void panel(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0, int64_t chunk1,
           float* acc) {
  constexpr int columns = columnsAtOnce(rows);
  const int64_t chunkBytes = p.chunk * (halves ? 32 : 64);
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    const int64_t k = chunk * p.chunk, left = p.depth - k;
    const int64_t depth = left < p.chunk ? left : p.chunk, row = k / p.block;
    const char* b = p.q + chunk * chunkBytes;
    const char* next = columns < 8 ? b + chunkBytes : p.prefetch ? b + p.prefetch : nullptr;
    const float* x[rows];
    for (int r = 0; r < rows; ++r) x[r] = reinterpret_cast<const float*>(a.x + r * a.stride) + k;
    for (int c0 = 0; c0 < 8; c0 += columns) {
      __m256 sum[rows][columns];
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) sum[r][c] = _mm256_setzero_ps();
      const char* ahead = next ? next + c0 * depth * (halves ? 4 : 8) : nullptr;
      chunkOf<rows, columns, halves>(b + c0 * 32, x, depth, ahead, sum);
      for (int c = 0; c < columns; ++c) {
        const __m256 scale = numbersOf(p.scale, p.bf16, row, c0 + c);
        const __m256 zero = p.zero ? zerosOf(p, row, c0 + c) : _mm256_setzero_ps();
        for (int r = 0; r < rows; ++r) {
          float* to = acc + r * 64 + (c0 + c) * 8;
          if (p.zero)
            sum[r][c] =
                _mm256_fnmadd_ps(zero, _mm256_set1_ps(a.sums[r * a.sumStride + chunk]), sum[r][c]);
          _mm256_storeu_ps(to, _mm256_fmadd_ps(sum[r][c], scale, _mm256_loadu_ps(to)));
        }
      }
    }
  }
}

inline int32_t wordAt(const char* at) {
  int32_t word;
  __builtin_memcpy(&word, at, 4);
  return word;
}

// The lower or the upper halves of 32 bytes, each in a byte of its own.
inline __m256i halvesAt(const char* at, int half) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm256_and_si256(half ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}

// Lines of 8 products each, at most 15 * 128, whose sum 16 bits hold; and elements of a chunk that
// has no more of them.
constexpr int kLines = 4;
constexpr int64_t kShortChunk = 8 * kLines;

// Up to kLines lines of some registers of 8 columns times the upper, middle and lower bytes of
// `rows` rows, or the only ones that rows in 8 bits have. Bytes of weights times those of A would
// not fit: only halves are multiplied so.
template <int rows, int pieces, int columns>
inline void halvesTimesBytes(const char* b, int lines, const char* const (&bytes)[rows],
                             int64_t chunk, __m256i (&sum)[columns][rows][pieces]) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i part[columns][rows][pieces];
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r)
      for (int piece = 0; piece < pieces; ++piece) part[c][r][piece] = _mm256_setzero_si256();
  // One line and half at a time: what would be loaded ahead has no registers left.
#pragma clang loop unroll(disable)
  for (int line = 0; line < lines; ++line)
    for (int half = 0; half < 2; ++half) {
      __m256i w[columns];
      for (int c = 0; c < columns; ++c) w[c] = halvesAt(b + line * 256 + c * 32, half);
      for (int r = 0; r < rows; ++r)
        for (int piece = 0; piece < pieces; ++piece) {
          const char* at = bytes[r] + piece * chunk + line * 8 + half * 4;
          const __m256i x = _mm256_set1_epi32(wordAt(at));
          for (int c = 0; c < columns; ++c)
            part[c][r][piece] = _mm256_add_epi16(part[c][r][piece], _mm256_maddubs_epi16(w[c], x));
        }
    }
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r)
      for (int piece = 0; piece < pieces; ++piece)
        sum[c][r][piece] =
            _mm256_add_epi32(sum[c][r][piece], _mm256_madd_epi16(part[c][r][piece], ones));
}

// Adds the sums of 8 columns and a chunk, times the rows' units, to those of the panel; `row` is
// that of the chunk's scales.
template <int rows>
inline void addScaled(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk, int64_t row,
                      int column, const char* const (&record)[rows], const __m256 (&sum)[rows],
                      float* acc) {
  const __m256 scale = numbersOf(p.scale, p.bf16, row, column);
  const __m256 zero = p.zero ? zerosOf(p, row, column) : _mm256_setzero_ps();
  for (int r = 0; r < rows; ++r) {
    float unit;
    __builtin_memcpy(&unit, record[r], 4);
    __m256 y = _mm256_mul_ps(sum[r], _mm256_set1_ps(unit));
    if (p.zero) y = _mm256_fnmadd_ps(zero, _mm256_set1_ps(a.sums[r * a.sumStride + chunk]), y);
    float* to = acc + r * 64 + column * 8;
    _mm256_storeu_ps(to, _mm256_fmadd_ps(y, scale, _mm256_loadu_ps(to)));
  }
}

// Whole chunks of kShortChunk elements, and rows in 8 bits. Most models of 4 bits have a scale for
// every 32 elements, so what a chunk takes beside its products counts: nothing here leaves the
// registers.
template <int rows>
void shortChunks(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0, int64_t chunk1,
                 float* acc) {
  constexpr int columns = rows == 1 ? 4 : 2;
  constexpr int64_t recordBytes = fixedPointBytes(kShortChunk, 1), chunkBytes = kShortChunk * 32;
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    const char* record[rows];
    for (int r = 0; r < rows; ++r) record[r] = a.x + r * a.stride + chunk * recordBytes;
    const int64_t row = chunk * kShortChunk / p.block;
    const char* next = p.q + (chunk + 2) * chunkBytes;
    for (int c0 = 0; c0 < 8; c0 += columns, next += chunkBytes / 8 * columns) {
      for (int at = 0; at < chunkBytes / 8 * columns; at += 64)
        _mm_prefetch(next + at, _MM_HINT_T0);
      const char* b = p.q + chunk * chunkBytes + c0 * 32;
      __m256i part[columns][rows];
#pragma clang loop unroll_count(2)
      for (int line = 0; line < kLines; ++line)
        for (int half = 0; half < 2; ++half) {
          __m256i w[columns];
          for (int c = 0; c < columns; ++c) w[c] = halvesAt(b + line * 256 + c * 32, half);
          for (int r = 0; r < rows; ++r) {
            const __m256i x = _mm256_set1_epi32(wordAt(record[r] + 16 + line * 8 + half * 4));
            for (int c = 0; c < columns; ++c) {
              const __m256i products = _mm256_maddubs_epi16(w[c], x);
              part[c][r] = line + half == 0 ? products : _mm256_add_epi16(part[c][r], products);
            }
          }
        }
      for (int c = 0; c < columns; ++c) {
        __m256 y[rows];
        for (int r = 0; r < rows; ++r)
          y[r] = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(part[c][r], ones),
                                                     _mm256_set1_epi32(wordAt(record[r] + 4))));
        addScaled<rows>(p, a, chunk, row, c0 + c, record, y, acc);
      }
    }
  }
}

// Products of 4-bit weights with rows in fixed point: whole numbers, exact up to the scale. Rows in
// 8 bits leave registers for two groups of columns, which share what is loaded of a row.
template <int rows, int pieces>
void fixedPointPanel(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0,
                     int64_t chunk1, float* acc) {
  constexpr int columns = pieces == 1 ? 2 : 1;
  if (pieces == 1 && p.chunk == kShortChunk) {
    const int64_t whole = p.depth / kShortChunk, last = chunk1 < whole ? chunk1 : whole;
    shortChunks<rows>(p, a, chunk0, last, acc);
    chunk0 = last;  // one that K ends in is left
  }
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    const int64_t left = p.depth - chunk * p.chunk, depth = left < p.chunk ? left : p.chunk;
    const int64_t row = chunk * p.chunk / p.block;
    const char* b = p.q + chunk * p.chunk * 32;
    const char* next = b + (p.chunk * 32 > 2048 ? p.chunk * 32 : 2048);
    const char* record[rows];
    for (int r = 0; r < rows; ++r)
      record[r] = a.x + r * a.stride + chunk * fixedPointBytes(p.chunk, pieces);
    for (int c0 = 0; c0 < 8; c0 += columns) {
      // A part of the chunk behind, or of the one behind that where they are short.
      for (int64_t at = 0; at < depth * 4 * columns; at += 64) _mm_prefetch(next + at, _MM_HINT_T0);
      next += depth * 4 * columns;
      __m256i sum[columns][rows][pieces];
      for (int c = 0; c < columns; ++c)
        for (int r = 0; r < rows; ++r)
          for (int piece = 0; piece < pieces; ++piece)
            sum[c][r][piece] = _mm256_set1_epi32(wordAt(record[r] + 4 + piece * 4));
      for (int64_t k = 0; k < depth; k += 8 * kLines) {
        const char* bytes[rows];
        for (int r = 0; r < rows; ++r) bytes[r] = record[r] + 16 + k;
        const char* lines = b + k * 32 + c0 * 32;
        if (depth - k >= 8 * kLines)
          halvesTimesBytes<rows, pieces, columns>(lines, kLines, bytes, p.chunk, sum);
        else
          halvesTimesBytes<rows, pieces, columns>(lines, int(depth - k) / 8, bytes, p.chunk, sum);
      }
      for (int c = 0; c < columns; ++c) {
        __m256 y[rows];
        for (int r = 0; r < rows; ++r) {
          y[r] = _mm256_cvtepi32_ps(sum[c][r][0]);
          if constexpr (pieces == 3) {
            y[r] =
                _mm256_fmadd_ps(y[r], _mm256_set1_ps(65536.0f), _mm256_cvtepi32_ps(sum[c][r][2]));
            y[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c][r][1]), _mm256_set1_ps(256.0f), y[r]);
          }
        }
        addScaled<rows>(p, a, chunk, row, c0 + c, record, y, acc);
      }
    }
  }
}

// Bytes of weights times rows in 8 bits as words of 16 bits, two products in each word of a sum:
// of elements 0 and 2 of four neighbours along K, and of 1 and 3.
template <int rows, int columns>
inline void bytesTimesWords(const char* b, const char* const (&words)[rows], int64_t depth,
                            const char* next, __m256i (&sum)[rows][columns]) {
  const __m256i low = _mm256_set1_epi16(255);
  for (int64_t k = 0; k < depth; k += 4, b += 256) {
    if (next)
      for (int c = 0; c < columns; c += 2, next += 64) _mm_prefetch(next, _MM_HINT_T0);
    for (int odd = 0; odd < 2; ++odd) {
      __m256i w[columns];
      for (int c = 0; c < columns; ++c) {
        w[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + c * 32));
        w[c] = odd ? _mm256_srli_epi16(w[c], 8) : _mm256_and_si256(w[c], low);
      }
      for (int r = 0; r < rows; ++r) {
        const __m256i x = _mm256_set1_epi32(wordAt(words[r] + 2 * k + 4 * odd));
        for (int c = 0; c < columns; ++c)
          sum[r][c] = _mm256_add_epi32(sum[r][c], _mm256_madd_epi16(w[c], x));
      }
    }
  }
}

// The sums are exact: those of 65,536 products, the longest chunk's, fit into 31 bits.
template <int rows>
void bytesPanel(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0, int64_t chunk1,
                float* acc) {
  constexpr int columns = columnsAtOnce(rows);
  const int64_t chunkBytes = p.chunk * 64;
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    const int64_t left = p.depth - chunk * p.chunk, depth = left < p.chunk ? left : p.chunk;
    const int64_t row = chunk * p.chunk / p.block;
    const char* b = p.q + chunk * chunkBytes;
    const char* next = columns < 8 ? b + chunkBytes : p.prefetch ? b + p.prefetch : nullptr;
    const char *record[rows], *words[rows];
    for (int r = 0; r < rows; ++r) {
      record[r] = a.x + r * a.stride + chunk * fixedPointBytes(p.chunk, 2);
      words[r] = record[r] + 16;
    }
    for (int c0 = 0; c0 < 8; c0 += columns) {
      __m256i sum[rows][columns];
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) sum[r][c] = _mm256_set1_epi32(wordAt(record[r] + 4));
      bytesTimesWords<rows, columns>(b + c0 * 32, words, depth,
                                     next ? next + c0 * depth * 8 : nullptr, sum);
      for (int c = 0; c < columns; ++c) {
        __m256 y[rows];
        for (int r = 0; r < rows; ++r) y[r] = _mm256_cvtepi32_ps(sum[r][c]);
        addScaled<rows>(p, a, chunk, row, c0 + c, record, y, acc);
      }
    }
  }
}

inline int32_t sumOf(__m256i v) {
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}

inline float sumOf(__m256 v) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

bool toFixedPoint(const float* x, int64_t depth, int64_t chunk, int center, char* to) {
  const __m256 sign = _mm256_set1_ps(-0.0f), infinity = _mm256_set1_ps(__builtin_inff());
  __m256 top = _mm256_setzero_ps(), finite = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  for (int64_t k = 0; k < depth; k += 8) {
    const __m256 size = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + k));
    finite = _mm256_and_ps(finite, _mm256_cmp_ps(size, infinity, _CMP_LT_OQ));
    top = _mm256_max_ps(size, top);
  }
  if (_mm256_movemask_ps(finite) != 0xff) return false;
  alignas(32) float tops[8];
  _mm256_store_ps(tops, top);
  float largest = 0;
  for (float t : tops) largest = t > largest ? t : largest;
  uint32_t bits;
  __builtin_memcpy(&bits, &largest, 4);
  const uint32_t unitBits = unitBitsOf(bits);
  if (unitBits == 0) return false;
  const uint32_t perUnitBits = perUnitBitsOf(unitBits);
  float unit, scale;
  __builtin_memcpy(&unit, &unitBits, 4);
  __builtin_memcpy(&scale, &perUnitBits, 4);
  const __m256 perUnit = _mm256_set1_ps(scale);
  const __m256 quarter = _mm256_set1_ps(0x1p20f), least = _mm256_set1_ps(kMostLost);
  __m256 lost = _mm256_setzero_ps();
  // The lowest bytes of 8 words, side by side in the lower half of a register of 16.
  const __m256i lowest =
      _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1,
                       -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  __m256i sums[3] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  char* bytes = to + 16;
  for (int64_t k = 0; k < depth; k += 8) {
    const __m256 units = _mm256_mul_ps(_mm256_loadu_ps(x + k), perUnit);
    __m256i whole = _mm256_cvtps_epi32(units);
    // What the smaller elements lose, less what they may lose.
    const __m256 size = _mm256_andnot_ps(sign, units);
    const __m256 rest = _mm256_andnot_ps(sign, _mm256_sub_ps(units, _mm256_cvtepi32_ps(whole)));
    const __m256 small = _mm256_cmp_ps(size, quarter, _CMP_LT_OQ);
    lost = _mm256_add_ps(lost, _mm256_and_ps(small, _mm256_fnmadd_ps(size, least, rest)));
    for (int piece = 2; piece >= 0; --piece) {
      // The lowest byte with its sign; what is left is a multiple of 256.
      const __m256i part = piece == 0 ? whole : _mm256_srai_epi32(_mm256_slli_epi32(whole, 24), 24);
      const __m256i packed = _mm256_shuffle_epi8(part, lowest);
      _mm_storel_epi64(
          reinterpret_cast<__m128i*>(bytes + piece * chunk + k),
          _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1)));
      sums[piece] = _mm256_add_epi32(sums[piece], part);
      whole = _mm256_srai_epi32(_mm256_sub_epi32(whole, part), 8);
    }
  }
  if (sumOf(lost) > 0) return false;
  __builtin_memcpy(to, &unit, 4);
  for (int piece = 0; piece < 3; ++piece) {
    const int32_t start = -center * sumOf(sums[piece]);
    __builtin_memcpy(to + 4 + piece * 4, &start, 4);
  }
  return true;
}

// A record of bytes for fixedPointPanel, or of words in the order of bytesTimesWords.
template <bool bytes>
int32_t byteRecord(const float* x, int64_t depth, ByteScale scale, int center, char* to) {
  const __m256 steps = _mm256_set1_ps(scale.steps);
  const __m128i evenFirst = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  __m256i sums = _mm256_setzero_si256();
  for (int64_t k = 0; k < depth; k += 8) {
    const __m256i whole = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + k), steps));
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    // Of a row that is NaN they may be anything, as long as they are bytes.
    const __m128i packed = _mm_packs_epi16(words, words);
    sums = _mm256_add_epi32(sums, _mm256_cvtepi8_epi32(packed));
    if constexpr (bytes)
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 16 + k), packed);
    else
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 + 2 * k),
                       _mm_shuffle_epi8(_mm_cvtepi8_epi16(packed), evenFirst));
  }
  // What wraps here comes back: the sums of products with this start are those of whole numbers.
  const int32_t sum = sumOf(sums);
  const uint32_t start = 0u - uint32_t(center) * uint32_t(sum);
  __builtin_memcpy(to, &scale.size, 4);
  __builtin_memcpy(to + 4, &start, 4);
  return sum;
}

template <bool halves>
void widenQuantized(const QuantizedPanel& p, int64_t k0, int64_t depth, float* to) {
  constexpr int step = halves ? 8 : 4;
  for (int64_t k = k0; k < k0 + depth && k < p.depth; k += step) {
    const int64_t row = k / p.block;
    for (int column = 0; column < 8; ++column) {
      const __m256 scale = numbersOf(p.scale, p.bf16, row, column);
      const __m256 zero = p.zero ? zerosOf(p, row, column) : _mm256_setzero_ps();
      const __m256i words =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p.q + k / step * 256 + column * 32));
      float* at = kTilesAvx2.element(to, k - k0, column * 8);
      for (int i = 0; i < step; ++i) {
        const __m256 w = halves ? halvesAsFloats(words, i) : bytesAsFloats(words, i);
        _mm256_storeu_ps(at + i * kTilesAvx2.columns, _mm256_mul_ps(_mm256_sub_ps(w, zero), scale));
      }
    }
  }
}

// What is behind is fetched so far ahead: while the rows meet one piece, the next one comes.
constexpr int64_t kUnpackAhead = 4096;

template <bool halves>
void unpack(const QuantizedPanel& p, int64_t k0, int64_t depth, float* to) {
  constexpr int step = halves ? 8 : 4;
  const char* b = p.q + k0 / step * 256;
  for (int64_t k = 0; k < depth; k += step, b += 256, to += step * 64) {
    for (int line = 0; line < 4; ++line) _mm_prefetch(b + kUnpackAhead + line * 64, _MM_HINT_T0);
    for (int c = 0; c < 8; ++c) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + c * 32));
      for (int i = 0; i < step; ++i)
        _mm256_storeu_ps(to + i * 64 + c * 8,
                         halves ? halvesAsFloats(words, i) : bytesAsFloats(words, i));
    }
  }
}

void scaleSums(const QuantizedPanel& p, int64_t chunk, int64_t rows, const float* sumsOfA,
               float* sums, float* acc) {
  const int64_t row = chunk * p.chunk / p.block;
  for (int c = 0; c < 8; ++c) {
    const __m256 scale = numbersOf(p.scale, p.bf16, row, c);
    const __m256 zero = p.zero ? zerosOf(p, row, c) : _mm256_setzero_ps();
    for (int64_t r = 0; r < rows; ++r) {
      float *from = sums + r * 64 + c * 8, *to = acc + r * 64 + c * 8;
      __m256 sum = _mm256_loadu_ps(from);
      if (p.zero) sum = _mm256_fnmadd_ps(zero, _mm256_set1_ps(sumsOfA[r]), sum);
      _mm256_storeu_ps(to, _mm256_fmadd_ps(sum, scale, _mm256_loadu_ps(to)));
      _mm256_storeu_ps(from, _mm256_setzero_ps());
    }
  }
}

LATHE_ISA_END

}  // namespace

constexpr int64_t kChunk = 128;

const QuantizedKernels kQuantizedKernelsAvx2 = {
    {panel<1, false>, panel<2, false>, panel<3, false>, panel<4, false>},
    {panel<1, true>, panel<2, true>, panel<3, true>, panel<4, true>},
    kChunk,
    nullptr,
    nullptr,
    0,
    widenQuantized<false>,
    widenQuantized<true>,
    5,
    kMostSharing,
    unpack<false>,
    unpack<true>,
    scaleSums,
};
// Bytes are fast enough as floats; halves are not.
const QuantizedKernels kQuantizedKernelsAvx2Fixed = {
    {panel<1, false>, panel<2, false>, panel<3, false>, panel<4, false>},
    {fixedPointPanel<1, 3>, fixedPointPanel<2, 3>},
    kChunk,
    nullptr,
    toFixedPoint,
    2,
    widenQuantized<false>,
    widenQuantized<true>,
    5,
    kMostSharing,
    unpack<false>,
    unpack<true>,
    scaleSums,
    ByteRowKernels{
        byteRecord<false>, 2, {bytesPanel<1>, bytesPanel<2>, bytesPanel<3>, bytesPanel<4>}},
    ByteRowKernels{byteRecord<true>,
                   1,
                   {fixedPointPanel<1, 1>, fixedPointPanel<2, 1>, fixedPointPanel<3, 1>,
                    fixedPointPanel<4, 1>}},
};

const QuantizedKernels& quantizedKernels(KernelIsa isa) {
  if (isa.tier == Isa::Avx2) return kQuantizedKernelsAvx2Fixed;
  return isa.vnni ? kQuantizedKernelsVnni : kQuantizedKernelsAvx512;
}
const QuantizedKernels& floatQuantizedKernels(KernelIsa isa) {
  return isa.tier == Isa::Avx2 ? kQuantizedKernelsAvx2 : kQuantizedKernelsAvx512;
}

}  // namespace lathe::cpu
