// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

struct Vec {
  static constexpr int lanes = 8;
  static constexpr int blockRows = 4;
  __m256 v;

  static Vec set(float x) { return {_mm256_set1_ps(x)}; }
  static Vec load(const float* at) { return {_mm256_loadu_ps(at)}; }
  void store(float* at) const { _mm256_storeu_ps(at, v); }
  // Never called: this tier has no bf16 products. The common code names it.
  void storeBf16(uint16_t*) const { __builtin_unreachable(); }
  static Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
  static Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
  static Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
  static Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  // The second operand where either is NaN.
  static Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Vec round(Vec a) {
    return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
  static Vec copySign(Vec magnitude, Vec sign) {
    return {_mm256_or_ps(magnitude.v, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign.v))};
  }
  static Vec scaleByPowerOfTwo(Vec p, Vec n) {
    __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
    __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    // NaN turns into an arbitrary power; the polynomial carries the NaN itself.
    return {_mm256_mul_ps(p.v, power)};
  }
  // Below it the exponent bits of scaleByPowerOfTwo run out.
  static constexpr float lowestPower = -126.0f;
  static Vec zeroBelowLowest(Vec x, Vec value) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.v, _mm256_set1_ps(lowestPower), _CMP_LT_OQ), value.v)};
  }
  static Vec hideWhereInfinite(Vec bias, Vec value) {
    __m256 hidden = _mm256_set1_ps(-__builtin_inff());
    return {_mm256_blendv_ps(value.v, hidden, _mm256_cmp_ps(bias.v, hidden, _CMP_EQ_OQ))};
  }
  // Lanes outside [lo, hi) become -inf.
  static Vec hideOutside(Vec x, int lo, int hi) {
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(lo), lane);
    __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), lane);
    __m256 keep = _mm256_castsi256_ps(_mm256_andnot_si256(below, inside));
    return {_mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), x.v, keep)};
  }
  static float first(Vec a) { return _mm256_cvtss_f32(a.v); }
  static float reduceMax(Vec a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }
  static float reduceSum(Vec a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
  }
};

#include "backends/cpu/device/attention_simd.inc"
#include "backends/cpu/device/attention_product_f32.inc"

LATHE_ISA_END

}  // namespace

const AttentionKernels kAttentionAvx2 = {false, false, productF32, softmaxRow, scaleRow, Isa::Avx2};

}  // namespace lathe::cpu
