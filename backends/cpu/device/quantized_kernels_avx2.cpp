// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/isa_region.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/quantized_kernels.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

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

// Sixteen registers hold 4 rows x 16 columns of sums: a chunk, which stays in the L1 cache, is
// walked in four groups of columns.
template <int rows, bool halves>
inline void chunkOf(const char* b, const float* const (&x)[rows], int64_t depth, int64_t prefetch,
                    __m256 (&sum)[rows][2]) {
  constexpr int step = halves ? 8 : 4;
  for (int64_t k = 0; k < depth; k += step, b += 256) {
    if (prefetch) _mm_prefetch(b + prefetch, _MM_HINT_T0);
    for (int c = 0; c < 2; ++c) {
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
  const int64_t chunkBytes = p.chunk * (halves ? 32 : 64);
  for (int64_t chunk = chunk0; chunk < chunk1; ++chunk) {
    const int64_t k = chunk * p.chunk, left = p.depth - k;
    const int64_t depth = left < p.chunk ? left : p.chunk, row = p.oneScale ? 0 : chunk;
    const float* x[rows];
    for (int r = 0; r < rows; ++r) x[r] = reinterpret_cast<const float*>(a.x + r * a.stride) + k;
    for (int group = 0; group < 4; ++group) {
      __m256 sum[rows][2];
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < 2; ++c) sum[r][c] = _mm256_setzero_ps();
      chunkOf<rows, halves>(p.q + chunk * chunkBytes + group * 64, x, depth, p.prefetch, sum);
      for (int c = 0; c < 2; ++c) {
        const int column = group * 2 + c;
        const __m256 scale = numbersOf(p.scale, p.bf16, row, column);
        const __m256 zero = p.zero ? zerosOf(p, row, column) : _mm256_setzero_ps();
        for (int r = 0; r < rows; ++r) {
          float* to = acc + r * 64 + column * 8;
          if (p.zero)
            sum[r][c] =
                _mm256_fnmadd_ps(zero, _mm256_set1_ps(a.sums[r * a.sumStride + chunk]), sum[r][c]);
          _mm256_storeu_ps(to, _mm256_fmadd_ps(sum[r][c], scale, _mm256_loadu_ps(to)));
        }
      }
    }
  }
}

template <bool halves>
void widenQuantized(const QuantizedPanel& p, float* to) {
  constexpr int step = halves ? 8 : 4;
  for (int64_t k = 0; k < p.depth; k += step) {
    const int64_t row = p.oneScale ? 0 : k / p.chunk;
    for (int column = 0; column < 8; ++column) {
      const __m256 scale = numbersOf(p.scale, p.bf16, row, column);
      const __m256 zero = p.zero ? zerosOf(p, row, column) : _mm256_setzero_ps();
      const __m256i words =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p.q + k / step * 256 + column * 32));
      for (int i = 0; i < step; ++i) {
        const __m256 w = halves ? halvesAsFloats(words, i) : bytesAsFloats(words, i);
        _mm256_storeu_ps(to + (k + i) * 64 + column * 8,
                         _mm256_mul_ps(_mm256_sub_ps(w, zero), scale));
      }
    }
  }
}

LATHE_ISA_END

}  // namespace

const QuantizedKernels kQuantizedKernelsAvx2 = {
    {panel<1, false>, panel<2, false>, panel<3, false>, panel<4, false>},
    {panel<1, true>, panel<2, true>, panel<3, true>, panel<4, true>},
    widenQuantized<false>,
    widenQuantized<true>,
    nullptr,
};

const QuantizedKernels& quantizedKernels(KernelIsa isa) {
  return isa.tier != Isa::Avx2 && isa.vnni ? kQuantizedKernelsVnni : floatQuantizedKernels(isa);
}
const QuantizedKernels& floatQuantizedKernels(KernelIsa isa) {
  return isa.tier == Isa::Avx2 ? kQuantizedKernelsAvx2 : kQuantizedKernelsAvx512;
}

}  // namespace lathe::cpu
