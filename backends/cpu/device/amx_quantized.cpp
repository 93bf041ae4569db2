// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/amx_quantized.h"

#include <algorithm>

#include "backends/cpu/device/amx_blocks.h"
#include "backends/cpu/device/calibration.h"

// Loop order, from outside in: chunks of rows whose A is copied into tiles once; groups of panels
// whose f32 sums stay in the L2 cache; outer K blocks whose A stays in L2; panels; pieces of a
// panel, unpacked in L1; row blocks. Few rows wait for memory: their panels are read as several
// streams, a piece of each in turn.

namespace lathe::cpu {
namespace {

constexpr int64_t kPieceBlocks = 6;  // K blocks that are unpacked at a time: 24 KiB of L1
constexpr int64_t kMostParts = 4;    // blocks of scales whose sums meet in registers
constexpr int64_t kPartSums = 1024;  // of a block of 32 x 32, or 16 x 64
static_assert(kMaxReadStreams * kFewRows <= kGroupPanels * kChunkRows);

// How K is walked, in blocks of 32 elements.
struct Walk {
  explicit Walk(const QuantizedShape& w) : blocks(ceilDiv(w.k, 32)), scaled(w.scales() > 1) {
    part = scaled ? w.block / 32 : blocks;
    // Half of a block, or a third, has the block's scale, too.
    for (int64_t of = 2; scaled && part > kPieceBlocks; ++of)
      if (w.block / 32 % of == 0) part = w.block / 32 / of;
    piece = scaled ? part * std::max<int64_t>(1, kMostParts / part) : kPieceBlocks;
    outer = kOuterBlocks / piece * piece;
  }
  int64_t parts() const { return ceilDiv(blocks, part); }
  int64_t blocks;
  bool scaled;    // blocks of K have scales of their own
  int64_t part;   // whose sums are scaled together
  int64_t piece;  // unpacked at a time
  int64_t outer;  // whose A stays in L2
};

// One worker's memory.
struct Memory {
  explicit Memory(const QuantizedShape& w)
      : tiles(size_t(kChunkRows / 16 * ceilDiv(w.k, 32) * kTileBytes)),
        aSums(size_t(kChunkRows * Walk(w).parts()) * 4) {}
  size_t bytes() const { return tiles + aSums + sums + piece + partSums; }
  size_t tiles, aSums;
  size_t sums = size_t(kGroupPanels * kChunkRows * kPanelColumns) * 4;
  size_t piece = size_t(kPieceBlocks * kPanelBlockBytes);
  size_t partSums = size_t(kMostParts * kPartSums) * 4;
};

// Scales and zero points of the parts of a piece.
struct PartNumbers {
  alignas(64) float scale[kMostParts][kPanelColumns], zero[kMostParts][kPanelColumns];
};

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

#include "backends/cpu/device/quantized_numbers.inc"

// Two neighbours along K of 16 columns, whole numbers of at most 8 bits and a sign, as bf16 pairs.
inline __m512i pairOf(__m512 even, __m512 odd) {
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16),
                         _mm512_castps_si512(odd));
}

// A byte b in the mantissa of 2^23 whose last bit is 1, or one byte higher in that of 2^15, whose
// last bit is 2^-8, makes 2^23 + b, or 2^15 + b.
inline void unpackBytes(const char* q, int64_t depth, int64_t prefetch, char* to) {
  const __m512i low = _mm512_set1_epi32(0xff), high = _mm512_set1_epi32(0xff00);
  const __m512i lowBits = _mm512_set1_epi32(0x4b000000), highBits = _mm512_set1_epi32(0x47000000);
  const __m512 lowBase = _mm512_set1_ps(8388608.0f + 128),
               highBase = _mm512_set1_ps(32768.0f + 128);
  for (int64_t k = 0; k < depth; k += 4, q += 256, to += 512)
    for (int c = 0; c < 4; ++c) {
      if (prefetch) _mm_prefetch(q + prefetch + c * 64, _MM_HINT_T0);
      __m512i words = _mm512_loadu_si512(q + c * 64);
      for (int pair = 0; pair < 2; ++pair) {
        // 0xea: (words & mask) | bits
        const __m512i even = _mm512_ternarylogic_epi32(words, low, lowBits, 0xea);
        const __m512i odd = _mm512_ternarylogic_epi32(words, high, highBits, 0xea);
        _mm512_storeu_si512(to + pair * 256 + c * 64,
                            pairOf(_mm512_sub_ps(_mm512_castsi512_ps(even), lowBase),
                                   _mm512_sub_ps(_mm512_castsi512_ps(odd), highBase)));
        words = _mm512_srli_epi32(words, 16);
      }
    }
}

// The low four bits of a 16-bit lane choose one of the numbers from -8 to 7, which the table holds
// twice: the fifth bit, which belongs to another element, does not matter.
inline void unpackHalves(const char* q, int64_t depth, int64_t prefetch, char* to) {
  alignas(64) static constexpr unsigned short kNumbers[32] = {
      0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000,
      0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040,
      0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0};
  const __m512i numbers = _mm512_load_si512(kNumbers);
  // Bytes 0 and 1 of a word, or 2 and 3, each in a lane of its own.
  const __m512i first =
      _mm512_set4_epi32(int(0x800d800cu), int(0x80098008u), int(0x80058004u), int(0x80018000u));
  const __m512i second =
      _mm512_set4_epi32(int(0x800f800eu), int(0x800b800au), int(0x80078006u), int(0x80038002u));
  for (int64_t k = 0; k < depth; k += 8, q += 256, to += 1024)
    for (int c = 0; c < 4; ++c) {
      if (prefetch) _mm_prefetch(q + prefetch + c * 64, _MM_HINT_T0);
      const __m512i words = _mm512_loadu_si512(q + c * 64);
      const __m512i a = _mm512_shuffle_epi8(words, first), b = _mm512_shuffle_epi8(words, second);
      char* at = to + c * 64;
      _mm512_storeu_si512(at, _mm512_permutexvar_epi16(a, numbers));
      _mm512_storeu_si512(at + 256, _mm512_permutexvar_epi16(b, numbers));
      _mm512_storeu_si512(at + 512, _mm512_permutexvar_epi16(_mm512_srli_epi16(a, 4), numbers));
      _mm512_storeu_si512(at + 768, _mm512_permutexvar_epi16(_mm512_srli_epi16(b, 4), numbers));
    }
}

// The lines of `count` bytes into the L2 cache.
void fetch(const char* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 64) _mm_prefetch(from + i, _MM_HINT_T1);
}

// K blocks [block0, block0 + count) of a panel as bf16, zeros behind its depth.
void unpackPiece(const QuantizedPanel& p, bool halves, int64_t block0, int64_t count, char* to) {
  const int64_t k0 = block0 * 32, left = p.depth - k0;
  const int64_t depth = left < count * 32 ? left : count * 32;
  if (halves)
    unpackHalves(p.q + k0 * 32, depth, p.prefetch, to);
  else
    unpackBytes(p.q + k0 * 64, depth, p.prefetch, to);
  for (char *at = to + depth * 128, *end = to + count * kPanelBlockBytes; at < end; at += 64)
    _mm512_storeu_si512(at, _mm512_setzero_si512());
}

void loadNumbers(const QuantizedPanel& p, int64_t row, float* scale, float* zero) {
  for (int c = 0; c < 4; ++c) {
    _mm512_store_ps(scale + c * 16, numbersOf(p.scale, p.bf16, row, c));
    if (p.zero) _mm512_store_ps(zero + c * 16, zerosOf(p, row, c));
  }
}

// Each of `count` K blocks is unpacked one ahead of its product, so that both run at once. Every
// `part` blocks have [16][64] sums of their own, of `kPartSums` floats; `first`: they start at 0.
void unpackTimesRows(const QuantizedPanel& p, bool halves, int64_t block0, int64_t count,
                     int64_t part, const char* a, char* piece, bool first, float* sums) {
  unpackPiece(p, halves, block0, 1, piece);
  for (int64_t k = 0; k < count; ++k, a += kTileBytes, piece += kPanelBlockBytes) {
    if (k % part == 0) begin1x4(first, sums);
    if (k + 1 < count) unpackPiece(p, halves, block0 + k + 1, 1, piece + kPanelBlockBytes);
    step1x4(a, piece);
    if ((k + 1) % part == 0 || k + 1 == count) {
      end1x4(sums);
      sums += kPartSums;
    }
  }
}

// acc[rows][columns] (+)= the sums of `parts` parts, less zero points times the sums of A, scaled.
template <int parts, int vectors, bool zeros>
void scaleParts(const float* sums, int64_t rows, const PartNumbers& numbers, int64_t column,
                const float* aSums, bool first, float* acc) {
  __m512 scale[parts][vectors];
  for (int p = 0; p < parts; ++p)
    for (int v = 0; v < vectors; ++v)
      scale[p][v] = _mm512_load_ps(numbers.scale[p] + column + v * 16);
  for (int64_t r = 0; r < rows; ++r, sums += vectors * 16, acc += vectors * 16)
    for (int v = 0; v < vectors; ++v) {
      __m512 total = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + v * 16);
      for (int p = 0; p < parts; ++p) {
        __m512 sum = _mm512_load_ps(sums + p * kPartSums + v * 16);
        if constexpr (zeros)
          sum = _mm512_fnmadd_ps(_mm512_load_ps(numbers.zero[p] + column + v * 16),
                                 _mm512_set1_ps(aSums[p * kChunkRows + r]), sum);
        total = _mm512_fmadd_ps(sum, scale[p][v], total);
      }
      _mm512_store_ps(acc + v * 16, total);
    }
}

// The sum of `count` bf16 numbers, in f32.
float sumOf(const uint16_t* from, int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 lanes =
        count - i >= 16 ? __mmask16(0xffff) : __mmask16((1u << (count - i)) - 1);
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from + i));
    sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
  }
  return _mm512_reduce_add_ps(sum);
}

LATHE_ISA_END

using ScaleFn = void (*)(const float*, int64_t, const PartNumbers&, int64_t, const float*, bool,
                         float*);
template <int vectors, bool zeros>
constexpr ScaleFn kScale[] = {scaleParts<1, vectors, zeros>, scaleParts<2, vectors, zeros>,
                              scaleParts<3, vectors, zeros>, scaleParts<4, vectors, zeros>};

class Worker {
 public:
  Worker(const AmxQuantizedGemm& g, const Share& share, char* memory)
      : g_(g),
        share_(share),
        walk_(g.shape),
        few_(share.row1 - share.row0 <= kFewRows),
        reading_(calibration().reading) {
    const Memory sizes(g.shape);
    tiles_ = memory;
    aSums_ = reinterpret_cast<float*>(memory += sizes.tiles);
    sums_ = reinterpret_cast<float*>(memory += alignUp64(sizes.aSums));
    piece_ = memory += sizes.sums;
    partSums_ = reinterpret_cast<float*>(memory + sizes.piece);
  }

  void run() {
    AmxTileConfig config;
    if (few_)
      for (int tile = 0; tile < 6; ++tile)
        config.rows[tile] = static_cast<unsigned char>(share_.row1 - share_.row0);
    tileConfigure(config);
    for (row0_ = share_.row0; row0_ < share_.row1; row0_ += kChunkRows) {
      rows_ = std::min(kChunkRows, share_.row1 - row0_);
      const uint16_t* a = g_.a + row0_ * g_.shape.k;
      const int64_t height = few_ ? kFewRows : 32;
      tileA(a, g_.shape.k, rows_, roundUp(rows_, height), g_.shape.k, walk_.blocks, height, tiles_);
      if (g_.hasZero) sumRows(a);
      panels();
    }
    tileRelease();
  }

 private:
  // Sums of the rows' elements by parts, [parts][rows].
  void sumRows(const uint16_t* a) {
    const int64_t depth = walk_.part * 32;
    for (int64_t part = 0; part < walk_.parts(); ++part)
      for (int64_t r = 0; r < rows_; ++r)
        aSums_[part * kChunkRows + r] =
            sumOf(a + r * g_.shape.k + part * depth, std::min(depth, g_.shape.k - part * depth));
  }

  void panels() {
    const int64_t count = share_.panel1 - share_.panel0;
    const int64_t most = few_ ? reading_.streams : kGroupPanels;
    const int64_t groups = ceilDiv(count, most);
    for (int64_t i = 0; i < groups; ++i) {
      // Streams are `groups` panels apart; the last may have fewer panels than the others.
      first_ = share_.panel0 + (few_ ? i : i * most);
      stride_ = few_ ? groups : 1;
      count_ = few_ ? ceilDiv(count - i, groups) : std::min(most, count - i * most);
      group();
    }
  }

  void group() {
    alignas(64) float tails[kMaxReadStreams][2 * kPanelColumns];
    QuantizedPanel panels[kMaxReadStreams];
    for (int64_t s = 0; s < count_; ++s) {
      panels[s] = g_.panel(first_ + s * stride_, tails[s]);
      // Unpacking fetches what follows; many rows leave time to fetch the next piece.
      panels[s].prefetch = few_ ? reading_.prefetch : 0;
    }
    const int64_t step = few_ ? walk_.piece : walk_.outer;
    for (int64_t outer = 0; outer < walk_.blocks; outer += step)
      for (int64_t s = 0; s < count_; ++s)
        for (int64_t block = outer, end = std::min(walk_.blocks, outer + step); block < end;
             block += walk_.piece) {
          const int64_t count = std::min(walk_.piece, end - block);
          const bool turn = block + count == end && s + 1 < count_;
          piece(panels[s], s, block, count,
                turn ? panels[s + 1].q + outer * blockBytes()
                     : panels[s].q + (block + count) * blockBytes());
        }
  }

  // Bytes of a K block of a panel.
  int64_t blockBytes() const { return 32 * kPanelColumns * g_.shape.bits() / 8; }

  // `next` is what will be unpacked after it.
  void piece(const QuantizedPanel& p, int64_t s, int64_t block0, int64_t count, const char* next) {
    const bool halves = g_.shape.bits() == 4;
    if (!few_) unpackPiece(p, halves, block0, count, piece_);
    PartNumbers numbers;
    Beside nothing;
    const bool last = block0 + count == walk_.blocks;
    const int64_t part0 = block0 / walk_.part, parts = ceilDiv(count, walk_.part);
    if (walk_.scaled)
      for (int64_t i = 0; i < parts; ++i)
        loadNumbers(p, (part0 + i) * walk_.part * 32 / g_.shape.block, numbers.scale[i],
                    numbers.zero[i]);
    else if (last)
      loadNumbers(p, 0, numbers.scale[0], numbers.zero[0]);
    const int64_t col0 = (first_ + s * stride_) * kPanelColumns;
    const int64_t columns = std::min(kPanelColumns, g_.shape.n - col0);
    const int64_t width = few_ ? kPanelColumns : 32, height = few_ ? kFewRows : 32;
    float* block = sums_ + s * (few_ ? kFewRows : kChunkRows) * kPanelColumns;
    const int64_t share = roundUp(
        ceilDiv(walk_.piece * blockBytes(), ceilDiv(rows_, height) * ceilDiv(columns, width)), 64);
    for (int64_t row = 0; row < rows_; row += height)
      for (int64_t column = 0; column < columns; column += width, block += width * height) {
        const char* a = tiles_ + (row * walk_.blocks + block0 * height) * 64;
        const int64_t rows = std::min(height, rows_ - row);
        if (!few_) fetch(next, share), next += share;
        const float* aSums = g_.hasZero ? aSums_ + part0 * kChunkRows + row : nullptr;
        const ScaleFn* scale = few_ ? (aSums ? kScale<4, true> : kScale<4, false>)
                                    : (aSums ? kScale<2, true> : kScale<2, false>);
        // Sums of parts are scaled at once, others when they are complete.
        float* sums = walk_.scaled ? partSums_ : block;
        const bool first = walk_.scaled || block0 == 0;
        const int64_t part = walk_.scaled ? walk_.part : count;
        if (few_)
          unpackTimesRows(p, halves, block0, count, part, a, piece_, first, sums);
        else
          for (int64_t k = 0, i = 0; k < count; k += part, ++i)
            tiles2x2(a + k * 2 * kTileBytes, piece_ + k * kPanelBlockBytes + column * 4,
                     std::min(part, count - k), first, sums + i * kPartSums, nothing);
        if (walk_.scaled)
          scale[parts - 1](sums, rows, numbers, column, aSums, block0 == 0, block);
        else if (last)
          scale[0](sums, rows, numbers, column, aSums, true, block);
        if (last)
          kernels_.store(block, width, rows, std::min(width, columns - column), row0_ + row,
                         col0 + column, g_.epilogue);
      }
  }

  const AmxQuantizedGemm& g_;
  const Share share_;
  const Walk walk_;
  const bool few_;
  const ReadPattern reading_;  // before tiles are configured: a calibration configures its own
  const PanelKernels& kernels_ = panelKernels({Isa::Amx, true});
  char *tiles_, *piece_;
  float *aSums_, *sums_, *partSums_;
  int64_t row0_ = 0, rows_ = 0;                 // of the chunk
  int64_t first_ = 0, stride_ = 1, count_ = 0;  // panels of the group
};

}  // namespace

bool amxQuantizedTakes(const QuantizedShape& shape) {
  return shape.k > 0 && (shape.scales() <= 1 || shape.block % 32 == 0);
}

size_t amxQuantizedScratchBytes(const QuantizedShape& shape, int threads) {
  return alignUp64(Memory(shape).bytes() + 64) * size_t(threads);
}

void amxQuantizedGemm(const AmxQuantizedGemm& g, ThreadPool& pool, Scratch scratch) {
  const int64_t threads = pool.threads(), panels = g.shape.panels();
  // Every share of rows unpacks all weights: rows are split where a share fills a chunk of them.
  const int64_t rowParts = g.m >= threads * kChunkRows ? threads : 1;
  const int64_t panelParts = threads / rowParts, rowBlocks = ceilDiv(g.m, 32);
  pool.run(threads, [&](int64_t index, int worker) {
    const int64_t row = index / panelParts, part = index % panelParts;
    const Share share{rowBlocks * row / rowParts * 32,
                      std::min(g.m, rowBlocks * (row + 1) / rowParts * 32),
                      panels * part / panelParts, panels * (part + 1) / panelParts};
    if (share.row0 >= share.row1 || share.panel0 >= share.panel1) return;
    const size_t bytes = amxQuantizedScratchBytes(g.shape, 1);
    Worker(g, share, static_cast<char*>(scratch.data) + size_t(worker) * bytes).run();
  });
}

}  // namespace lathe::cpu
