// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/device/amx_byte_rows.h"
#include "backends/cpu/device/amx_unpacked.h"

// Many rows in 8 bits (amx_rows.h, byte_rows.h). Bytes of weights with one scale a column lie in
// memory as tiles take them. Halves become bytes in the L2 cache while the tiles multiply the part
// before, and so do weights whose blocks have scales of their own: (q - zero) scale is rounded to
// the 127th part of the largest number that its column may hold, since scaling sums after every
// block takes longer than the products.

namespace lathe::cpu {
namespace {

constexpr int64_t kMostBytes = 1 << 16;  // products of 255 and 127 whose sums 31 bits hold

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

#include "backends/cpu/device/quantized_numbers.inc"

// 16 columns of a panel and the elements from k on: one or two lines of words of four bytes.
template <bool halves>
inline void plainLine(__m512i words, char* to) {
  if constexpr (halves) {
    const __m512i low = _mm512_set1_epi8(15);
    _mm512_storeu_si512(to, _mm512_and_si512(words, low));
    _mm512_storeu_si512(to + 64, _mm512_and_si512(_mm512_srli_epi16(words, 4), low));
  } else {
    _mm512_storeu_si512(to, words);
  }
}

// Bits that elements are shifted up by: their products with what `perUnit` becomes in 16 bits,
// which are shifted down by 15, use all of both.
template <bool halves>
constexpr int kShift = halves ? 4 : 0;
// A whole number of 16 bits in both halves of its lane.
inline __m512i inBothHalves(__m512i whole) {
  return _mm512_or_si512(_mm512_slli_epi32(whole, 16),
                         _mm512_and_si512(whole, _mm512_set1_epi32(0xffff)));
}
template <bool halves>
inline __m512i inFixedPoint(__m512 perUnit) {
  constexpr float kOne = halves ? 2048 : 32768;  // 2^(15 - kShift)
  return inBothHalves(_mm512_cvtps_epi32(_mm512_mul_ps(perUnit, _mm512_set1_ps(kOne))));
}

// The same of (q - zero) perUnit, rounded to whole numbers of [-127, 127], which count from 128
// then. `steps` is perUnit in fixed point, `zero` a whole number from the range's lower end on,
// shifted.
template <bool halves>
inline void roundedLine(__m512i words, __m512i zero, __m512i steps, char* to) {
  const __m512i mask = _mm512_set1_epi16(halves ? 0xf0 : 0xff);
  for (int line = 0; line < (halves ? 2 : 1); ++line, to += 64) {
    // Bytes 0 and 2 of a word, and bytes 1 and 3, in lanes of 16 bits.
    const __m512i up = halves && line == 0 ? _mm512_slli_epi16(words, 4) : words;
    const __m512i down = _mm512_srli_epi16(words, halves && line == 0 ? 4 : 8);
    const __m512i even =
        _mm512_mulhrs_epi16(_mm512_sub_epi16(_mm512_and_si512(up, mask), zero), steps);
    const __m512i odd =
        _mm512_mulhrs_epi16(_mm512_sub_epi16(_mm512_and_si512(down, mask), zero), steps);
    const __m512i bytes =
        _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaaull, _mm512_slli_epi16(odd, 8));
    _mm512_storeu_si512(to, _mm512_xor_si512(bytes, _mm512_set1_epi8(char(0x80))));
  }
}

// The same for zero points that are no whole numbers of the range, in f32: 1.5 2^23 more makes the
// lowest byte of a float what it is rounded to.
template <bool halves>
inline void roundedFloats(__m512i words, __m512 zero, __m512 perUnit, char* to) {
  const __m512i mask = _mm512_set1_epi32(halves ? 15 : 255);
  for (int line = 0; line < (halves ? 2 : 1); ++line, to += 64) {
    __m512i bytes = _mm512_setzero_si512();
    for (int i = 3; i >= 0; --i) {
      const __m512i stored = _mm512_srl_epi32(words, _mm_cvtsi32_si128(8 * i + 4 * line));
      const __m512 q = _mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_and_si512(stored, mask)), zero);
      const __m512 rounded = _mm512_fmadd_ps(q, perUnit, _mm512_set1_ps(12582912.0f + 128));
      bytes = _mm512_mask_mov_epi8(_mm512_slli_epi32(bytes, 8), 0x1111111111111111ull,
                                   _mm512_castps_si512(rounded));
    }
    _mm512_storeu_si512(to, bytes);
  }
}

// Zero points from the lower end of the range.
template <bool halves>
inline __m512 zerosFromLow(const QuantizedPanel& p, int64_t row, int column) {
  const __m512 middle = _mm512_set1_ps(halves ? 8 : 128);
  return p.zero ? _mm512_add_ps(zerosOf(p, row, column), middle) : middle;
}
template <bool halves>
bool areWhole(const QuantizedPanel& p) {
  if (!p.zero) return true;
  __mmask16 whole = 0xffff;
  for (int column = 0; column < 4; ++column)
    for (int64_t row = 0; row * p.block < p.depth; ++row) {
      const __m512 zero = zerosFromLow<halves>(p, row, column);
      whole &= _mm512_cmp_ps_mask(zero, _mm512_roundscale_ps(zero, 0), _CMP_EQ_OQ) &
               _mm512_cmp_ps_mask(zero, _mm512_setzero_ps(), _CMP_GE_OQ) &
               _mm512_cmp_ps_mask(zero, _mm512_set1_ps(halves ? 15 : 255), _CMP_LE_OQ);
    }
  return whole == 0xffff;
}

// The largest magnitude that 16 columns may hold: of the ends of their range less the zero point.
inline __m512 reachOf(const QuantizedPanel& p, bool halves, int column) {
  const __m512 low = _mm512_set1_ps(halves ? -8 : -128), high = _mm512_set1_ps(halves ? 7 : 127);
  __m512 reach = _mm512_setzero_ps(), zeros = reach;
  for (int64_t row = 0; row * p.block < p.depth; ++row) {
    const __m512 scale = numbersOf(p, p.scale, row, column);
    const __m512 zero = p.zero ? zerosOf(p, row, column) : _mm512_setzero_ps();
    const __m512 most = _mm512_max_ps(_mm512_abs_ps(_mm512_sub_ps(low, zero)),
                                      _mm512_abs_ps(_mm512_sub_ps(high, zero)));
    reach = _mm512_max_ps(reach, _mm512_abs_ps(_mm512_mul_ps(most, scale)));
    zeros = _mm512_fmadd_ps(_mm512_mul_ps(most, scale), _mm512_setzero_ps(), zeros);
  }
  return _mm512_add_ps(reach, zeros);  // NaN where a number is none or infinite
}

struct ByteNumbers {
  alignas(64) float scale[kPanelColumns], zero[kPanelColumns], perUnit[kPanelColumns],
      tail[2 * kPanelColumns];
  bool whole = true;  // so are the zero points
};

class BytePanels : public UnpackedParts<BytePanels, ByteNumbers> {
 public:
  static constexpr bool kBytes = true;
  static constexpr int64_t kDepth = 64;

  BytePanels(const AmxQuantizedGemm& g, PanelOf panelOf, char* memory)
      : UnpackedParts(g, panelOf, memory),
        inPlace_(!halves_ && !scaled_ && g.shape.k % kDepth == 0) {}

  void finish(Finished& f, int64_t half, int64_t row) const {
    const ByteNumbers& numbers = *current().numbers;
    f.scales.scale = numbers.scale + half * 32;
    if (g_.hasZero && !scaled_) f.scales.zero = numbers.zero + half * 32;
    f.scales.aSums = aSums_ + row;
    f.scales.sizes = sizes_ + row;
    f.scales.center = halves_ && !scaled_ ? 8 : 128;
  }
  void tileRows(int64_t row0, int64_t rows, int64_t paddedRows, char* tiles) {
    const int64_t k = g_.shape.k, blocks = (k + kDepth - 1) / kDepth;
    for (int64_t r = 0; r < paddedRows; ++r) {
      char* to = tiles + (r / 32 * blocks * 32 + r % 32) * 64;
      // Behind the last row zeros: a row without elements.
      const uint16_t* from = g_.a + (r < rows ? row0 + r : row0) * k;
      sizes_[r] = toByteTiles(from, r < rows ? k : 0, blocks, 32 * 64, to);
      aSums_[r] = float(sumOfBytes(to, 32 * 64, 0, 2 * blocks));
    }
  }
  void beginRows(int64_t, int64_t) const {}

 private:
  friend UnpackedParts;

  void load(Part& part, ByteNumbers& numbers) const {
    if (inPlace_) part.at = part.from.q + part.what.k0 * kPanelBlockBytes;
    if (scaled_) numbers.whole = halves_ ? areWhole<true>(part.from) : areWhole<false>(part.from);
    for (int c = 0; c < 4; ++c) {
      if (scaled_) {
        const __m512 reach = reachOf(part.from, halves_, c);
        _mm512_store_ps(numbers.scale + c * 16, _mm512_div_ps(reach, _mm512_set1_ps(127)));
        // Of zeros alone, or of numbers so small that their unit would be none: they become zeros.
        const __mmask16 some = _mm512_cmp_ps_mask(reach, _mm512_set1_ps(0x1p-100f), _CMP_GE_OQ);
        _mm512_store_ps(numbers.perUnit + c * 16,
                        _mm512_maskz_div_ps(some, _mm512_set1_ps(127), reach));
        continue;
      }
      _mm512_store_ps(numbers.scale + c * 16, numbersOf(part.from, part.from.scale, 0, c));
      if (part.from.zero) _mm512_store_ps(numbers.zero + c * 16, zerosOf(part.from, 0, c));
    }
  }
  void unpack(const Part& part, const char* q, int64_t k, int column, char* to) const {
    const __m512i words = _mm512_loadu_si512(q);
    if (!scaled_) return halves_ ? plainLine<true>(words, to) : plainLine<false>(words, to);
    halves_ ? round<true>(part, words, k, column, to) : round<false>(part, words, k, column, to);
  }

  template <bool halves>
  static void round(const Part& part, __m512i words, int64_t k, int column, char* to) {
    const QuantizedPanel& p = part.from;
    const int64_t row = k / p.block;
    const __m512 perUnit = _mm512_mul_ps(numbersOf(p, p.scale, row, column),
                                         _mm512_load_ps(part.numbers->perUnit + column * 16));
    const __m512 zero = zerosFromLow<halves>(p, row, column);
    if (!part.numbers->whole) return roundedFloats<halves>(words, zero, perUnit, to);
    const __m512i shifted = _mm512_slli_epi32(_mm512_cvtps_epi32(zero), kShift<halves>);
    roundedLine<halves>(words, inBothHalves(shifted), inFixedPoint<halves>(perUnit), to);
  }

  const bool inPlace_;  // tiles are loaded from the packed weights
  float aSums_[kMostChunkRows] = {}, sizes_[kMostChunkRows] = {};  // of the chunk's rows
};

void runRows(const RowsMatmul& product, const RowsTasks& tasks, ThreadPool::Claims& claims,
             BytePanels& panels, char* tiles, float* sums) {
  multiplyRows(product, tasks, claims, panels, tiles, sums);
}

LATHE_ISA_END

// One worker's memory: tiles of A, sums, and two parts of panels.
size_t tileBytes(const QuantizedShape& shape) {
  return chunkBytes(ceilDiv(shape.k, BytePanels::kDepth));
}

}  // namespace

bool amxBytesTake(const QuantizedShape& shape) { return shape.k > 0 && shape.k <= kMostBytes; }

size_t amxBytesScratchBytes(const QuantizedShape& shape, int threads) {
  return alignUp64(tileBytes(shape) + kSumBytes + 2 * kPartBytes) * size_t(threads);
}

void amxBytesGemm(const AmxQuantizedGemm& g, ThreadPool& pool, Scratch scratch) {
  RowsMatmul product{g.shape.k, g.shape.n, g.a, g.shape.k, g.epilogue, amxStoreKernels()};
  product.depth = BytePanels::kDepth;
  const RowsTasks tasks(product, g.m, 1, pool.threads());
  pool.runClaims(tasks.count(), [&](ThreadPool::Claims& claims) {
    char* memory = static_cast<char*>(scratch.data) +
                   size_t(claims.worker()) * amxBytesScratchBytes(g.shape, 1);
    float* sums = reinterpret_cast<float*>(memory + tileBytes(g.shape));
    BytePanels panels(g, panelOf, memory + tileBytes(g.shape) + kSumBytes);
    runRows(product, tasks, claims, panels, memory, sums);
  });
}

}  // namespace lathe::cpu
