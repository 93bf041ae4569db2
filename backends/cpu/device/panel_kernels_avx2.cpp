// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/isa_region.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

// Registers of 8 columns whose sums are under way at a time: eight chains hide the latency of
// multiply-adds, and sixteen registers hold no more than twelve of them beside the operands.
constexpr int columnsAtOnce(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }

// Elements of K in a line of 256 bytes.
template <bool widen>
constexpr int kLineDepth = widen ? 2 : 1;

template <bool widen>
inline __m256 weightsOf(const char* at, int element) {
  if constexpr (!widen) return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  const __m256i pair = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm256_castsi256_ps(element == 0
                                 ? _mm256_slli_epi32(pair, 16)
                                 : _mm256_and_si256(pair, _mm256_set1_epi32(int(0xffff0000u))));
}

// A group of columns. A function of its own, so that its sums are all that registers hold.
template <int rows, bool widen, bool fetches>
__attribute__((noinline)) void columnsStep(const float* x, int64_t aStride, const char* b,
                                           int64_t lines, const char* next, float* acc) {
  constexpr int columns = columnsAtOnce(rows);
  __m256 sum[rows][columns];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) sum[r][c] = _mm256_loadu_ps(acc + r * 64 + c * 8);
#pragma clang loop unroll_count(widen ? 1 : 2)
  for (int64_t line = 0; line < lines; ++line, b += 256) {
    if constexpr (fetches)
      for (int c = 0; c < columns; c += 2, next += 64) _mm_prefetch(next, _MM_HINT_T0);
    for (int i = 0; i < kLineDepth<widen>; ++i) {
      __m256 w[columns];
      for (int c = 0; c < columns; ++c) w[c] = weightsOf<widen>(b + c * 32, i);
      for (int r = 0; r < rows; ++r) {
        const __m256 value = _mm256_broadcast_ss(x + r * aStride + line * kLineDepth<widen> + i);
        for (int c = 0; c < columns; ++c) sum[r][c] = _mm256_fmadd_ps(w[c], value, sum[r][c]);
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) _mm256_storeu_ps(acc + r * 64 + c * 8, sum[r][c]);
}

// Where there are several groups of columns, a block or two stay in the L1 cache between them. The
// groups skip over lines, which the processor's own prefetch does not follow: what is behind the
// blocks is fetched line by line, and no nearer, since the first group reads up to their end.
template <int rows, bool widen>
void panel(const void* a, int64_t aStride, const void* panel, int64_t blocks, int64_t prefetch,
           float* acc) {
  constexpr int columns = columnsAtOnce(rows);
  const float* x = static_cast<const float*>(a);
  const char* b = static_cast<const char*>(panel);
  const int64_t step = columns == 8 || blocks < 2 ? blocks : 2;
  for (int64_t block = 0; block < blocks; block += step) {
    const int64_t lines = (blocks - block < step ? blocks - block : step) * 16;
    const int64_t least = columns < 8 && prefetch != kInCache ? lines * 256 : 0;
    const int64_t ahead = prefetch < least ? least : prefetch;
    const char* next = ahead > 0 ? b + ahead : nullptr;
    for (int c = 0; c < 8; c += columns) {
      if (next)
        columnsStep<rows, widen, true>(x, aStride, b + c * 32, lines, next, acc + c * 8);
      else
        columnsStep<rows, widen, false>(x, aStride, b + c * 32, lines, next, acc + c * 8);
      if (next) next += lines * columns * 32;
    }
    x += lines * kLineDepth<widen>;
    b += lines * 256;
  }
}

#include "backends/cpu/device/vec256.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/activation.inc"

// The first `count` of 8 elements; the other lanes are 0.
inline Vec loadAny(const void* base, DType dtype, int64_t index, int64_t count) {
  if (dtype == DType::F32) {
    const float* from = static_cast<const float*>(base) + index;
    if (count >= Vec::lanes) return Vec::load(from);
    alignas(32) float part[Vec::lanes] = {};
    for (int64_t i = 0; i < count; ++i) part[i] = from[i];
    return Vec::load(part);
  }
  const uint16_t* from = static_cast<const uint16_t*>(base) + index;
  alignas(16) uint16_t part[Vec::lanes] = {};
  for (int64_t i = 0; i < Vec::lanes && i < count; ++i) part[i] = from[i];
  __m256i words = _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(part)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(words, 16))};
}

template <Activation activation>
void storeAs(const float* acc, int64_t accStride, int64_t rows, int64_t cols, int64_t row0,
             int64_t col0, const Epilogue& e) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < cols; j += Vec::lanes) {
      const int64_t count = cols - j < Vec::lanes ? cols - j : int64_t(Vec::lanes);
      Vec value = loadAny(acc, DType::F32, r * accStride + j, count);
      if (e.bias) value = Vec::add(value, loadAny(e.bias, e.biasDType, col0 + j, count));
      value = activate<activation>(value);
      int64_t at = (row0 + r) * e.ldc + col0 + j;
      int64_t from = (row0 + r) * e.ldr + col0 + j;
      if (e.residual) value = Vec::add(value, loadAny(e.residual, e.outDType, from, count));
      if (e.outDType == DType::F32) {
        float* to = static_cast<float*>(e.c) + at;
        alignas(32) float part[Vec::lanes];
        value.store(count == Vec::lanes ? to : part);
        for (int64_t i = 0; count < Vec::lanes && i < count; ++i) to[i] = part[i];
      } else {
        uint16_t* to = static_cast<uint16_t*>(e.c) + at;
        alignas(16) uint16_t part[Vec::lanes];
        value.storeBf16(count == Vec::lanes ? to : part);
        for (int64_t i = 0; count < Vec::lanes && i < count; ++i) to[i] = part[i];
      }
    }
  }
}

#include "backends/cpu/device/store_activated.inc"
#include "backends/cpu/device/gate_row.inc"
#include "backends/cpu/device/byte_rows.inc"

LATHE_ISA_END

}  // namespace

const PanelKernels kPanelKernelsAvx2 = {
    {panel<1, false>, panel<2, false>, panel<3, false>, panel<4, false>, panel<5, false>,
     panel<6, false>},
    {panel<1, true>, panel<2, true>, panel<3, true>, panel<4, true>, panel<5, true>,
     panel<6, true>},
    6,
    24,
    false,
    store,
    gateRow,
    largestOf,
    toMultiples,
};

const PanelKernels& panelKernels(KernelIsa isa) {
  if (isa.tier == Isa::Avx2) return kPanelKernelsAvx2;
  if (pairPlaces(isa) != PairPlaces{}) return kPanelKernelsAmx;
  return isa.bf16 ? kPanelKernelsAvx512Bf16 : kPanelKernelsAvx512;
}

}  // namespace lathe::cpu
