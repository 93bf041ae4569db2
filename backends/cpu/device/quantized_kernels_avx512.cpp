// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/isa_region.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/quantized_kernels.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)

#include "backends/cpu/device/quantized_numbers.inc"

// Where element i of eight lies in a word of halves.
constexpr int shiftOf(int i) { return i % 4 * 8 + i / 4 * 4; }

// The sixteen numbers that the low four bits of a lane may stand for.
inline __m512 halfByteValues() {
  return _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Byte i of four: moved to the top, and back with its sign.
inline __m512 bytesAsFloats(__m512i words, int i) {
  const __m512i flipped = _mm512_xor_si512(words, _mm512_set1_epi32(int(0x80808080u)));
  const __m512i top = _mm512_sll_epi32(flipped, _mm_cvtsi32_si128(24 - 8 * i));
  return _mm512_cvtepi32_ps(_mm512_srai_epi32(top, 24));
}
// Four bits choose one of the sixteen numbers of a register, whatever lies above them.
inline __m512 halvesAsFloats(__m512i words, int i) {
  return _mm512_permutexvar_ps(_mm512_srl_epi32(words, _mm_cvtsi32_si128(shiftOf(i))),
                               halfByteValues());
}

template <int rows, bool halves>
inline void chunkOf(const char* b, const float* const (&x)[rows], int64_t depth, int64_t prefetch,
                    __m512 (&sum)[rows][4]) {
  constexpr int step = halves ? 8 : 4;
  for (int64_t k = 0; k < depth; k += step, b += 256)
    for (int c = 0; c < 4; ++c) {
      if (prefetch) _mm_prefetch(b + prefetch + c * 64, _MM_HINT_T0);
      const __m512i words = _mm512_loadu_si512(b + c * 64);
      for (int i = 0; i < step; ++i) {
        const __m512 w = halves ? halvesAsFloats(words, i) : bytesAsFloats(words, i);
        for (int r = 0; r < rows; ++r)
          sum[r][c] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r][k + i]), sum[r][c]);
      }
    }
}

template <int rows, bool halves>
void panel(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0, int64_t chunk1,
           float* acc) {
  const int64_t chunkBytes = p.chunk * (halves ? 32 : 64);
  __m512 total[rows][4];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) total[r][c] = _mm512_loadu_ps(acc + r * 64 + c * 16);
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    __m512 sum[rows][4];
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < 4; ++c) sum[r][c] = _mm512_setzero_ps();
    const int64_t k = chunk * p.chunk, left = p.depth - k;
    const float* x[rows];
    for (int r = 0; r < rows; ++r) x[r] = reinterpret_cast<const float*>(a.x + r * a.stride) + k;
    chunkOf<rows, halves>(p.q + chunk * chunkBytes, x, left < p.chunk ? left : p.chunk, p.prefetch,
                          sum);
    const int64_t row = k / p.block;
    for (int c = 0; c < 4; ++c) {
      const __m512 scale = numbersOf(p, p.scale, row, c);
      if (p.zero) {
        const __m512 zero = zerosOf(p, row, c);
        for (int r = 0; r < rows; ++r)
          sum[r][c] =
              _mm512_fnmadd_ps(zero, _mm512_set1_ps(a.sums[r * a.sumStride + chunk]), sum[r][c]);
      }
      for (int r = 0; r < rows; ++r) total[r][c] = _mm512_fmadd_ps(sum[r][c], scale, total[r][c]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) _mm512_storeu_ps(acc + r * 64 + c * 16, total[r][c]);
}

template <bool halves>
void widenQuantized(const QuantizedPanel& p, int64_t k0, int64_t depth, float* to) {
  constexpr int step = halves ? 8 : 4;
  for (int64_t k = k0; k < k0 + depth && k < p.depth; k += step) {
    const int64_t row = k / p.block;
    for (int c = 0; c < 4; ++c) {
      const __m512 scale = numbersOf(p, p.scale, row, c);
      const __m512 zero = p.zero ? zerosOf(p, row, c) : _mm512_setzero_ps();
      const __m512i words = _mm512_loadu_si512(p.q + k / step * 256 + c * 64);
      for (int i = 0; i < step; ++i) {
        const __m512 w = halves ? halvesAsFloats(words, i) : bytesAsFloats(words, i);
        _mm512_storeu_ps(to + (k - k0 + i) * 64 + c * 16,
                         _mm512_mul_ps(_mm512_sub_ps(w, zero), scale));
      }
    }
  }
}

LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512_VNNI)

#include "backends/cpu/device/fixed_point_unit.inc"

inline int32_t wordAt(const char* at) {
  int32_t word;
  __builtin_memcpy(&word, at, 4);
  return word;
}

inline float floatAt(const char* at) {
  float number;
  __builtin_memcpy(&number, at, 4);
  return number;
}

// Dot products of four neighbours along K: the weight's unsigned bytes with the upper, middle and
// lower bytes of A's, or with the only ones that rows in 8 bits have. The sums are exact:
// those of 65,536 products, the longest chunk's, fit into 31 bits.
template <bool fetch, int rows, int columns, bool halves, int pieces>
inline void fixedPointChunk(const char* b, const char* const (&bytes)[rows], int64_t depth,
                            int64_t chunk, int64_t prefetch,
                            __m512i (&sum)[rows][columns][pieces]) {
  const __m512i low = _mm512_set1_epi8(15);
  for (int64_t k = 0; k < depth; k += halves ? 8 : 4, b += 256) {
    __m512i w[columns][2];
    for (int c = 0; c < columns; ++c) {
      if constexpr (fetch) _mm_prefetch(b + prefetch + c * 64, _MM_HINT_T0);
      const __m512i words = _mm512_loadu_si512(b + c * 64);
      if constexpr (halves) {
        w[c][0] = _mm512_and_si512(words, low);
        w[c][1] = _mm512_and_si512(_mm512_srli_epi16(words, 4), low);
      } else {
        w[c][0] = words;
      }
    }
    for (int half = 0; half < (halves ? 2 : 1); ++half)
      for (int r = 0; r < rows; ++r)
        for (int piece = 0; piece < pieces; ++piece) {
          const __m512i x = _mm512_set1_epi32(wordAt(bytes[r] + piece * chunk + k + half * 4));
          for (int c = 0; c < columns; ++c)
            sum[r][c][piece] = _mm512_dpbusd_epi32(sum[r][c][piece], w[c][half], x);
        }
  }
}

// `columns` registers of columns at a time, so that enough sums are under way and all of them are
// in registers; a chunk stays in the L1 cache meanwhile. A row in 8 bits has one unit, by which its
// sums are multiplied at the end, unless there are zero points: theirs have it already.
template <bool zeros, int rows, bool halves, int pieces>
inline void fixedPointRows(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0,
                           int64_t chunk1, float* acc) {
  constexpr int columns = rows <= 2 || pieces == 1 ? 4 : 2;
  constexpr bool unitsLast = pieces == 1 && !zeros;
  const int64_t chunkBytes = p.chunk * (halves ? 32 : 64);
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    const int64_t left = p.depth - chunk * p.chunk, depth = left < p.chunk ? left : p.chunk;
    const int64_t row = chunk * p.chunk / p.block;
    fetchNumbers(p, row);
    const char* record[rows];
    const char* bytes[rows];
    for (int r = 0; r < rows; ++r) {
      record[r] = a.x + r * a.stride + chunk * fixedPointBytes(p.chunk, pieces);
      bytes[r] = record[r] + 16;
    }
    for (int c0 = 0; c0 < 4; c0 += columns) {
      __m512i sum[rows][columns][pieces];
      for (int r = 0; r < rows; ++r)
        for (int piece = 0; piece < pieces; ++piece)
          for (int c = 0; c < columns; ++c)
            sum[r][c][piece] = _mm512_set1_epi32(wordAt(record[r] + 4 + piece * 4));
      const char* b = p.q + chunk * chunkBytes + c0 * 64;
      if (p.prefetch)
        fixedPointChunk<true, rows, columns, halves>(b, bytes, depth, p.chunk, p.prefetch, sum);
      else
        fixedPointChunk<false, rows, columns, halves>(b, bytes, depth, p.chunk, 0, sum);
      for (int c = 0; c < columns; ++c) {
        const __m512 scale = numbersOf(p, p.scale, row, c0 + c);
        const __m512 zero = zeros ? zerosOf(p, row, c0 + c) : _mm512_setzero_ps();
        for (int r = 0; r < rows; ++r) {
          __m512 y = _mm512_cvtepi32_ps(sum[r][c][0]);
          if constexpr (pieces == 3) {
            y = _mm512_fmadd_ps(y, _mm512_set1_ps(65536.0f), _mm512_cvtepi32_ps(sum[r][c][2]));
            y = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][c][1]), _mm512_set1_ps(256.0f), y);
          }
          if constexpr (!unitsLast) y = _mm512_mul_ps(y, _mm512_set1_ps(floatAt(record[r])));
          if constexpr (zeros)
            y = _mm512_fnmadd_ps(zero, _mm512_set1_ps(a.sums[r * a.sumStride + chunk]), y);
          float* to = acc + r * 64 + (c0 + c) * 16;
          _mm512_storeu_ps(to, _mm512_fmadd_ps(y, scale, _mm512_loadu_ps(to)));
        }
      }
    }
  }
  if (!unitsLast || chunk1 * p.chunk < p.depth) return;
  for (int r = 0; r < rows; ++r) {
    const __m512 unit = _mm512_set1_ps(floatAt(a.x + r * a.stride));
    for (float* to = acc + r * 64; to < acc + r * 64 + 64; to += 16)
      _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_loadu_ps(to), unit));
  }
}
template <int rows, bool halves, int pieces>
void fixedPointPanel(const QuantizedPanel& p, const QuantizedRows& a, int64_t chunk0,
                     int64_t chunk1, float* acc) {
  if (p.zero)
    fixedPointRows<true, rows, halves, pieces>(p, a, chunk0, chunk1, acc);
  else
    fixedPointRows<false, rows, halves, pieces>(p, a, chunk0, chunk1, acc);
}

int32_t byteRecord(const float* x, int64_t depth, ByteScale scale, int center, char* to) {
  const __m512 steps = _mm512_set1_ps(scale.steps);
  __m512i sums = _mm512_setzero_si512();
  for (int64_t k = 0; k < depth; k += 16) {
    const __mmask16 lanes = depth - k >= 16 ? __mmask16(0xffff) : __mmask16(0xff);
    const __m512i whole =
        _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + k), steps));
    // Of a row that is NaN they may be anything, as long as they are bytes.
    const __m128i bytes = _mm512_cvtsepi32_epi8(whole);
    sums = _mm512_add_epi32(sums, _mm512_cvtepi8_epi32(bytes));
    _mm_mask_storeu_epi8(to + 16 + k, lanes, bytes);
  }
  // What wraps here comes back: the sums of products with this start are those of whole numbers.
  const int32_t sum = _mm512_reduce_add_epi32(sums);
  const uint32_t start = 0u - uint32_t(center) * uint32_t(sum);
  __builtin_memcpy(to, &scale.size, 4);
  __builtin_memcpy(to + 4, &start, 4);
  return sum;
}

bool toFixedPoint(const float* x, int64_t depth, int64_t chunk, int center, char* to) {
  // As whole numbers magnitudes have the order they have as floats; infinities and NaN lie above.
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i top = _mm512_setzero_si512();
  for (int64_t k = 0; k < depth; k += 16) {
    const __mmask16 lanes = depth - k >= 16 ? __mmask16(0xffff) : __mmask16(0xff);
    top =
        _mm512_max_epu32(top, _mm512_and_si512(_mm512_maskz_loadu_epi32(lanes, x + k), magnitude));
  }
  const uint32_t largest = _mm512_reduce_max_epu32(top);
  if (largest >= 0x7f800000u) return false;
  const uint32_t unit = unitBitsOf(largest);
  if (unit == 0) return false;
  const __m512 perUnit = _mm512_castsi512_ps(_mm512_set1_epi32(int32_t(perUnitBitsOf(unit))));
  const __m512 quarter = _mm512_set1_ps(0x1p20f), least = _mm512_set1_ps(kMostLost);
  __m512 lost = _mm512_setzero_ps();
  // Bytes of four elements, the upper ones last, side by side; then those of sixteen.
  const __m512i ofFour =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1));
  const __m512i ofSixteen = _mm512_setr_epi32(2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12, 3, 7, 11, 15);
  const __m512i middle = _mm512_set1_epi32(0x808080), ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  char* bytes = to + 16;
  for (int64_t k = 0; k < depth; k += 16, bytes += 16) {
    const __mmask16 lanes = depth - k >= 16 ? __mmask16(0xffff) : __mmask16(0xff);
    const __m512 units = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + k), perUnit);
    const __m512i whole = _mm512_cvtps_epi32(units);
    // What the smaller elements lose, less what they may lose.
    const __m512 size = _mm512_abs_ps(units);
    const __m512 rest = _mm512_abs_ps(_mm512_sub_ps(units, _mm512_cvtepi32_ps(whole)));
    const __mmask16 small = _mm512_cmp_ps_mask(size, quarter, _CMP_LT_OQ);
    lost = _mm512_mask_add_ps(lost, small, lost, _mm512_fnmadd_ps(size, least, rest));
    // Half of its range more makes each byte unsigned; without it a byte has its sign.
    __m512i digits = _mm512_xor_si512(_mm512_add_epi32(whole, middle), middle);
    digits = _mm512_permutexvar_epi32(ofSixteen, _mm512_shuffle_epi8(digits, ofFour));
    sums = _mm512_dpbusd_epi32(sums, ones, digits);
    _mm_mask_storeu_epi8(bytes, lanes, _mm512_castsi512_si128(digits));
    _mm_mask_storeu_epi8(bytes + chunk, lanes, _mm512_extracti32x4_epi32(digits, 1));
    _mm_mask_storeu_epi8(bytes + 2 * chunk, lanes, _mm512_extracti32x4_epi32(digits, 2));
  }
  if (_mm512_reduce_add_ps(lost) > 0) return false;
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
  const __m512i header = _mm512_mask_mov_epi32(
      _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                               _mm512_mullo_epi32(sums, _mm512_set1_epi32(-center))),
      1, _mm512_set1_epi32(int32_t(unit)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(header));
  return true;
}

LATHE_ISA_END

}  // namespace

const QuantizedKernels kQuantizedKernelsAvx512 = {
    {panel<1, false>, panel<2, false>, panel<3, false>, panel<4, false>},
    {panel<1, true>, panel<2, true>, panel<3, true>, panel<4, true>},
    128,
    nullptr,
    nullptr,
    0,
    widenQuantized<false>,
    widenQuantized<true>,
};
const QuantizedKernels kQuantizedKernelsVnni = {
    .int8 = {fixedPointPanel<1, false, 3>, fixedPointPanel<2, false, 3>,
             fixedPointPanel<3, false, 3>, fixedPointPanel<4, false, 3>},
    .int4 = {fixedPointPanel<1, true, 3>, fixedPointPanel<2, true, 3>, fixedPointPanel<3, true, 3>,
             fixedPointPanel<4, true, 3>},
    .chunk = 32,
    .toFixed8 = toFixedPoint,
    .toFixed4 = toFixedPoint,
    .fixedRows = kMostFewRows,
    .widen8 = widenQuantized<false>,
    .widen4 = widenQuantized<true>,
    .byteRows8 = ByteRowKernels{byteRecord,
                                1,
                                {fixedPointPanel<1, false, 1>, fixedPointPanel<2, false, 1>,
                                 fixedPointPanel<3, false, 1>, fixedPointPanel<4, false, 1>}},
    .byteRows4 = ByteRowKernels{byteRecord,
                                1,
                                {fixedPointPanel<1, true, 1>, fixedPointPanel<2, true, 1>,
                                 fixedPointPanel<3, true, 1>, fixedPointPanel<4, true, 1>}},
};

}  // namespace lathe::cpu
