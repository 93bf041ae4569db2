// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/amx_sums.h"

#include <array>
#include <utility>

#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512_BF16)

inline __m512 widen(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

#include "backends/cpu/device/narrow512.inc"

namespace rounding {

#include "backends/cpu/device/rounding512.inc"
#include "backends/cpu/device/vec512.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/activation.inc"
#include "backends/cpu/device/store_rows512.inc"

// What the sums of a block stand for; the columns' numbers stay in registers.
enum class Scaling { none, columns, bytes };
template <Scaling scaling>
struct ScaledSums {
  ScaledSums(const float* sums, const SumScales& s) : sums(sums), aSums(s.aSums), sizes(s.sizes) {
    if constexpr (scaling == Scaling::none) return;
    scale = pairAt(s.scale, DType::F32, 0);
    const __m512 center = _mm512_set1_ps(s.center);
    zero = {center, center};
    if (s.zero) zero = zero.plus(pairAt(s.zero, DType::F32, 0));
  }
  ColumnPair row(int64_t r) const {
    const float* at = sums + r * kSumColumns;
    ColumnPair x = pairAt(at, DType::F32, 0);
    if constexpr (scaling == Scaling::none) return x;
    if constexpr (scaling == Scaling::bytes)
      x = {_mm512_cvtepi32_ps(_mm512_castps_si512(x.low)),
           _mm512_cvtepi32_ps(_mm512_castps_si512(x.high))};
    if (scaling == Scaling::bytes || aSums) {
      const __m512 a = _mm512_set1_ps(aSums[r]);
      x = {_mm512_fnmadd_ps(zero.low, a, x.low), _mm512_fnmadd_ps(zero.high, a, x.high)};
    }
    x = {_mm512_mul_ps(x.low, scale.low), _mm512_mul_ps(x.high, scale.high)};
    if constexpr (scaling == Scaling::bytes) {
      const __m512 size = _mm512_set1_ps(sizes[r]);
      x = {_mm512_mul_ps(x.low, size), _mm512_mul_ps(x.high, size)};
    }
    return x;
  }
  const float* sums;
  const float* aSums;
  const float* sizes;
  ColumnPair scale, zero;
};

template <Scaling scaling>
void scaleAs(float* sums, int64_t rows, const SumScales& scales) {
  const ScaledSums<scaling> scaled(sums, scales);
  for (int64_t r = 0; r < rows; ++r) {
    const ColumnPair x = scaled.row(r);
    _mm512_storeu_ps(sums + r * kSumColumns, x.low);
    _mm512_storeu_ps(sums + r * kSumColumns + 16, x.high);
  }
}

template <Activation activation, Scaling scaling>
void storeSumsAs(const float* sums, int64_t rows, int64_t row0, int64_t col0,
                 const SumScales& scales, const Epilogue& e) {
  const ScaledSums<scaling> scaled(sums, scales);
  if (e.residual)
    storePairs<activation, true>(scaled, rows, row0, col0, e);
  else
    storePairs<activation, false>(scaled, rows, row0, col0, e);
}

inline __m512 rounded(__m512 x) { return widen(narrow(x)); }

template <Activation activation, Scaling scaling>
void gateSumsAs(const float* gates, const float* sums, int64_t rows, const SumScales& scales,
                uint16_t* c, int64_t ldc) {
  const ScaledSums<scaling> scaled(sums, scales);
  for (int64_t r = 0; r < rows; ++r, gates += kSumColumns, c += ldc) {
    const ColumnPair x = scaled.row(r);
    const __m512 low = activate<activation>({rounded(_mm512_loadu_ps(gates))}).v;
    const __m512 high = activate<activation>({rounded(_mm512_loadu_ps(gates + 16))}).v;
    narrowPairTo(c, _mm512_mul_ps(low, rounded(x.low)), _mm512_mul_ps(high, rounded(x.high)));
  }
}

}  // namespace rounding

LATHE_ISA_END

constexpr size_t kScalings = 3;
size_t scalingOf(const SumScales& s) {
  using enum rounding::Scaling;
  return size_t(!s.scale ? none : s.sizes ? bytes : columns);
}

}  // namespace

void scaleSums(float* sums, int64_t rows, const SumScales& scales) {
  if (!scales.scale) return;
  scales.sizes ? rounding::scaleAs<rounding::Scaling::bytes>(sums, rows, scales)
               : rounding::scaleAs<rounding::Scaling::columns>(sums, rows, scales);
}

void storeSums(const float* sums, int64_t rows, int64_t row0, int64_t col0, const SumScales& scales,
               const Epilogue& e) {
  using Store =
      void (*)(const float*, int64_t, int64_t, int64_t, const SumScales&, const Epilogue&);
  static constexpr auto table = []<size_t... I>(std::index_sequence<I...>) {
    return std::array<Store, sizeof...(I)>{
        rounding::storeSumsAs<Activation(I / kScalings), rounding::Scaling(I % kScalings)>...};
  }(std::make_index_sequence<Keywords<Activation>::names.size() * kScalings>());
  table[size_t(e.activation) * kScalings + scalingOf(scales)](sums, rows, row0, col0, scales, e);
}

void gateSums(const float* gates, const float* sums, int64_t rows, const SumScales& scales,
              Activation activation, uint16_t* c, int64_t ldc) {
  using Gate = void (*)(const float*, const float*, int64_t, const SumScales&, uint16_t*, int64_t);
  static constexpr auto table = []<size_t... I>(std::index_sequence<I...>) {
    return std::array<Gate, sizeof...(I)>{
        rounding::gateSumsAs<Activation(I / kScalings), rounding::Scaling(I % kScalings)>...};
  }(std::make_index_sequence<Keywords<Activation>::names.size() * kScalings>());
  table[size_t(activation) * kScalings + scalingOf(scales)](gates, sums, rows, scales, c, ldc);
}

}  // namespace lathe::cpu
