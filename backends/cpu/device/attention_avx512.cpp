// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)
namespace plain {

#include "backends/cpu/device/narrow512.inc"
#include "backends/cpu/device/vec512.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/attention_simd.inc"
#include "backends/cpu/device/attention_matmul_f32.inc"
#include "backends/cpu/device/attention_in_place.inc"
#include "backends/cpu/device/transpose512.inc"
#include "backends/cpu/device/attention_turned_keys.inc"

}  // namespace plain
LATHE_ISA_END

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512_BF16)
namespace dot {

// Rounds to nearest even and keeps NaN; subnormals become zero, which probabilities can bear.
inline void narrowTo(uint16_t* at, __m512 value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), (__m256i)_mm512_cvtneps_pbh(value));
}
inline void narrowPairTo(uint16_t* at, __m512 low, __m512 high) {
  _mm512_storeu_si512(at, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
#include "backends/cpu/device/vec512.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/attention_simd.inc"

#include "backends/cpu/device/transpose512.inc"
#include "backends/cpu/device/attention_in_place_dot.inc"

// Blocks of 8 rows x 32 columns of VDPBF16PS sums.
void matmulBf16(const void* a, int64_t lda, const void* b, int64_t inner, int64_t columns,
                int64_t used, int rows, bool accumulate, float* c) {
  const char* left = static_cast<const char*>(a);
  const char* right = static_cast<const char*>(b);
  for (int r0 = 0; r0 < rows; r0 += 8) {
    for (int64_t j = 0; j < used; j += 32) {
      __m512 sum[8][2];
      for (int r = 0; r < 8; ++r)
        for (int v = 0; v < 2; ++v)
          sum[r][v] = accumulate ? _mm512_loadu_ps(c + (r0 + r) * columns + j + v * 16)
                                 : _mm512_setzero_ps();
      for (int64_t pair = 0; pair < inner / 2; ++pair) {
        __m512bh first = (__m512bh)_mm512_loadu_si512(right + (pair * columns + j) * 4);
        __m512bh second = (__m512bh)_mm512_loadu_si512(right + (pair * columns + j + 16) * 4);
        for (int r = 0; r < 8; ++r) {
          int bits;
          __builtin_memcpy(&bits, left + ((r0 + r) * lda + 2 * pair) * 2, 4);
          __m512bh x = (__m512bh)_mm512_set1_epi32(bits);
          sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, first);
          sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, second);
        }
      }
      for (int r = 0; r < 8; ++r)
        for (int v = 0; v < 2; ++v)
          _mm512_storeu_ps(c + (r0 + r) * columns + j + v * 16, sum[r][v]);
    }
  }
}

}  // namespace dot
LATHE_ISA_END

}  // namespace

const AttentionKernels kAttentionAvx512 = {false,
                                           false,
                                           plain::matmulF32,
                                           plain::softmaxRows,
                                           plain::scaleRow,
                                           plain::storeRow,
                                           plain::scoresTurned,
                                           plain::sumInPlace,
                                           16,
                                           16,
                                           Isa::Avx512};
const AttentionKernels kAttentionAvx512Bf16 = {true,
                                               false,
                                               dot::matmulBf16,
                                               dot::softmaxRows,
                                               dot::scaleRow,
                                               plain::storeRow,
                                               dot::scoresInPlace,
                                               dot::sumInPlace,
                                               32,
                                               16,
                                               Isa::Avx512};

}  // namespace lathe::cpu
