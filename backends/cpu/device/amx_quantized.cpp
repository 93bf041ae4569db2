// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/amx_quantized.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/device/amx_unpacked.h"
#include "backends/cpu/device/calibration.h"

// Many rows (amx_rows.h) meet parts of a panel that are unpacked into the L2 cache while the tiles
// multiply the part before. A column's only scale is applied to its sums; blocks of K with scales
// of their own become (q - zero) scale, rounded to bf16, since scaling sums after every block takes
// longer than the products.
//
// Few rows wait for memory: their panels are read as several streams, a piece of each in turn,
// unpacked in the L1 cache, and the sums of every block are scaled.

namespace lathe::cpu {
namespace {

constexpr int64_t kPieceBlocks = 6;  // K blocks that are unpacked at a time: 24 KiB of L1
constexpr int64_t kMostParts = 4;    // blocks of scales whose sums meet in registers
constexpr int64_t kPartSums = kAmxFewRows * kPanelColumns;
static_assert(kMaxReadStreams * kAmxFewRows <= kGroupPanels * kChunkRows);
static_assert(kMostParts <= kPieceBlocks);

// How few rows walk K, in blocks of 32 elements.
struct Walk {
  explicit Walk(const QuantizedShape& w) : blocks(ceilDiv(w.k, 32)), scaled(w.scales() > 1) {
    part = scaled ? w.block / 32 : blocks;
    // Half of a block, or a third, has the block's scale, too.
    for (int64_t of = 2; scaled && part > kPieceBlocks; ++of)
      if (w.block / 32 % of == 0) part = w.block / 32 / of;
    piece = scaled ? part * std::max<int64_t>(1, kMostParts / part) : kPieceBlocks;
  }
  int64_t parts() const { return ceilDiv(blocks, part); }
  int64_t blocks;
  bool scaled;    // blocks of K have scales of their own
  int64_t part;   // whose sums are scaled together
  int64_t piece;  // unpacked at a time
};

// One worker's memory. Two parts of a panel are unpacked at a time.
struct Memory {
  explicit Memory(const QuantizedShape& w)
      : tiles(chunkBytes(ceilDiv(w.k, 32))),
        aSums(size_t(std::max(kMostChunkRows, kAmxFewRows * Walk(w).parts())) * 4) {}
  size_t bytes() const { return tiles + alignUp64(aSums) + sums + 2 * kPartBytes + partSums; }
  size_t tiles, aSums, sums = kSumBytes;
  size_t partSums = size_t(kMostParts * kPartSums) * 4;
};

// Scales and zero points of the parts of a piece.
struct PartNumbers {
  alignas(64) float scale[kMostParts][kPanelColumns], zero[kMostParts][kPanelColumns];
};

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

#include "backends/cpu/device/quantized_unpack.inc"

// Each of `count` K blocks is unpacked one ahead of its product, so that both run at once. Every
// `part` blocks have [16][64] sums of their own, of `kPartSums` floats; `first`: they start at 0.
void unpackTimesRows(const QuantizedPanel& p, bool halves, int64_t block0, int64_t count,
                     int64_t part, const char* a, char* piece, bool first, float* sums) {
  unpackPiece(p, halves, block0, 1, piece);
  for (int64_t k = 0; k < count; ++k, a += kTileBytes, piece += kPanelBlockBytes) {
    if (k % part == 0) begin1x4(first, sums);
    if (k + 1 < count) unpackPiece(p, halves, block0 + k + 1, 1, piece + kPanelBlockBytes);
    step1x4<Operands::bf16>(a, piece);
    if ((k + 1) % part == 0 || k + 1 == count) {
      end1x4(sums);
      sums += kPartSums;
    }
  }
}

// acc[rows][64] (+)= the sums of `parts` parts, less zero points times the sums of A, scaled.
template <int parts, bool zeros>
void scaleParts(const float* sums, int64_t rows, const PartNumbers& numbers, const float* aSums,
                bool first, float* acc) {
  for (int64_t r = 0; r < rows; ++r, sums += kPanelColumns, acc += kPanelColumns)
    for (int v = 0; v < 4; ++v) {
      __m512 total = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + v * 16);
      for (int p = 0; p < parts; ++p) {
        __m512 sum = _mm512_load_ps(sums + p * kPartSums + v * 16);
        if constexpr (zeros)
          sum = _mm512_fnmadd_ps(_mm512_load_ps(numbers.zero[p] + v * 16),
                                 _mm512_set1_ps(aSums[p * kAmxFewRows + r]), sum);
        total = _mm512_fmadd_ps(sum, _mm512_load_ps(numbers.scale[p] + v * 16), total);
      }
      _mm512_store_ps(acc + v * 16, total);
    }
}

struct ColumnNumbers {
  alignas(64) float scale[kPanelColumns], zero[kPanelColumns], tail[2 * kPanelColumns];
};

// The weights of many rows as bf16.
class UnpackedPanels : public UnpackedParts<UnpackedPanels, ColumnNumbers> {
 public:
  static constexpr bool kBytes = false;
  static constexpr int64_t kDepth = 32;

  UnpackedPanels(const AmxQuantizedGemm& g, PanelOf panelOf, char* memory, float* aSums)
      : UnpackedParts(g, panelOf, memory), aSums_(aSums) {}

  void finish(Finished& f, int64_t half, int64_t row) const {
    if (scaled_) return;
    const ColumnNumbers& numbers = *current().numbers;
    f.scales.scale = numbers.scale + half * 32;
    if (!g_.hasZero) return;
    f.scales.zero = numbers.zero + half * 32;
    f.scales.aSums = aSums_ + row;
    for (int64_t r = 0; anySpecial_ && r < f.rows; ++r) {
      if (!special_[row + r]) continue;
      float sums[kPanelColumns];
      const uint16_t* x = g_.a + (f.row0 + r) * g_.shape.k;
      (halves_ ? sumDifferences<true> : sumDifferences<false>)(current().from, numbers.zero, x, 0,
                                                               g_.shape.k, sums);
      for (int i = 0; i < 32; ++i) f.sums[r * 32 + i] = sums[half * 32 + i];
    }
  }
  void beginRows(int64_t row0, int64_t rows) {
    if (scaled_ || !g_.hasZero) return;
    anySpecial_ = false;
    for (int64_t r = 0; r < rows; ++r) {
      aSums_[r] = sumOf(g_.a + (row0 + r) * g_.shape.k, g_.shape.k);
      special_[r] = !std::isfinite(aSums_[r]);
      if (!special_[r]) continue;
      anySpecial_ = true;
      aSums_[r] = 0;  // nothing is left to be taken off the sums
    }
  }

 private:
  friend UnpackedParts;

  void load(Part& part, ColumnNumbers& numbers) const {
    if (!scaled_) loadNumbers(part.from, 0, numbers.scale, numbers.zero);
  }
  void unpack(const Part& part, const char* q, int64_t k, int column, char* to) const {
    if (scaled_)
      halves_ ? scaledLine<true>(part.from, k, column, to)
              : scaledLine<false>(part.from, k, column, to);
    else
      halves_ ? halvesLine(q, to) : bytesLine(q, to);
  }

  float* const aSums_;
  bool anySpecial_ = false, special_[kMostChunkRows] = {};  // rows of the chunk: sumDifferences
};

void runManyRows(const RowsMatmul& product, const RowsTasks& tasks, ThreadPool::Claims& claims,
                 UnpackedPanels& panels, char* tiles, float* sums) {
  multiplyRows(product, tasks, claims, panels, tiles, sums);
}

LATHE_ISA_END

using ScaleFn = void (*)(const float*, int64_t, const PartNumbers&, const float*, bool, float*);
template <bool zeros>
constexpr ScaleFn kScale[] = {scaleParts<1, zeros>, scaleParts<2, zeros>, scaleParts<3, zeros>,
                              scaleParts<4, zeros>};

// Few rows of one worker.
class FewRows {
 public:
  FewRows(const AmxQuantizedGemm& g, char* tiles, char* piece, float* aSums, float* sums,
          float* partSums)
      : g_(g), tiles_(tiles), piece_(piece), aSums_(aSums), sums_(sums), partSums_(partSums) {}

  void run(const PanelGroups& groups, ThreadPool::Claims& claims) {
    PanelGroups::Group panels = groups.next(claims);
    if (!panels.count) return;
    AmxTileConfig config;
    for (int tile = 0; tile < 6; ++tile) config.rows[tile] = static_cast<unsigned char>(g_.m);
    tileConfigure(config);
    tileA(g_.a, g_.shape.k, g_.m, kAmxFewRows, g_.shape.k, walk_.blocks, kAmxFewRows, tiles_);
    if (g_.hasZero) sumRows(g_.a);
    for (; panels.count; panels = groups.next(claims)) group(panels);
    tileRelease();
  }

 private:
  // Sums of the rows' elements by parts, [parts][rows].
  void sumRows(const uint16_t* a) {
    const int64_t depth = walk_.part * 32;
    for (int64_t part = 0; part < walk_.parts(); ++part)
      for (int64_t r = 0; r < g_.m; ++r) {
        float& sum = aSums_[part * kAmxFewRows + r];
        sum = sumOf(a + r * g_.shape.k + part * depth, std::min(depth, g_.shape.k - part * depth));
        anySpecial_ = anySpecial_ || !std::isfinite(sum);
      }
  }

  // Sums of parts from `part0` on, and those of A's elements, of rows that need sumDifferences.
  void replaceSpecial(const QuantizedPanel& p, const PartNumbers& numbers, int64_t part0,
                      int64_t parts, float* aSums, float* sums) {
    const int64_t depth = walk_.part * 32;
    for (int64_t i = 0; i < parts; ++i)
      for (int64_t r = 0; r < g_.m; ++r) {
        float& aSum = aSums[i * kAmxFewRows + r];
        if (std::isfinite(aSum)) continue;
        aSum = 0;
        const uint16_t* x = g_.a + r * g_.shape.k;
        (g_.shape.bits() == 4
             ? sumDifferences<true>
             : sumDifferences<false>)(p, numbers.zero[i], x, (part0 + i) * depth,
                                      std::min(g_.shape.k, (part0 + i + 1) * depth),
                                      sums + i * kPartSums + r * kPanelColumns);
      }
  }

  void group(const PanelGroups::Group& streams) {
    const auto [first, stride, count] = streams;
    alignas(64) float tails[kMaxReadStreams][2 * kPanelColumns];
    QuantizedPanel panels[kMaxReadStreams];
    for (int64_t s = 0; s < count; ++s) {
      panels[s] = g_.panel(first + s * stride, tails[s]);
      panels[s].prefetch = reading_.prefetch;
    }
    for (int64_t block = 0; block < walk_.blocks; block += walk_.piece)
      for (int64_t s = 0; s < count; ++s)
        piece(panels[s], (first + s * stride) * kPanelColumns, block,
              std::min(walk_.piece, walk_.blocks - block), sums_ + s * kAmxFewRows * kPanelColumns);
  }

  void piece(const QuantizedPanel& p, int64_t col0, int64_t block0, int64_t count, float* sums) {
    PartNumbers numbers;
    const bool last = block0 + count == walk_.blocks;
    const int64_t part0 = block0 / walk_.part, parts = ceilDiv(count, walk_.part);
    if (walk_.scaled)
      for (int64_t i = 0; i < parts; ++i)
        loadNumbers(p, (part0 + i) * walk_.part * 32 / g_.shape.block, numbers.scale[i],
                    numbers.zero[i]);
    else if (last)
      loadNumbers(p, 0, numbers.scale[0], numbers.zero[0]);
    const float* aSums = g_.hasZero ? aSums_ + part0 * kAmxFewRows : nullptr;
    float finite[kMostParts * kAmxFewRows];
    const ScaleFn* scale = aSums ? kScale<true> : kScale<false>;
    // Sums of parts are scaled at once, others when they are complete.
    unpackTimesRows(p, g_.shape.bits() == 4, block0, count, walk_.scaled ? walk_.part : count,
                    tiles_ + block0 * kTileBytes, piece_, walk_.scaled || block0 == 0,
                    walk_.scaled ? partSums_ : sums);
    if (anySpecial_ && (walk_.scaled || last)) {
      std::copy_n(aSums, (walk_.scaled ? parts : 1) * kAmxFewRows, finite);
      replaceSpecial(p, numbers, part0, walk_.scaled ? parts : 1, finite,
                     walk_.scaled ? partSums_ : sums);
      aSums = finite;
    }
    if (walk_.scaled)
      scale[parts - 1](partSums_, g_.m, numbers, aSums, block0 == 0, sums);
    else if (last)
      scale[0](sums, g_.m, numbers, aSums, true, sums);
    if (last)
      amxStoreKernels().store(sums, kPanelColumns, g_.m, std::min(kPanelColumns, g_.shape.n - col0),
                              0, col0, g_.epilogue);
  }

  const AmxQuantizedGemm& g_;
  char *const tiles_, *const piece_;
  float *const aSums_, *const sums_, *const partSums_;
  bool anySpecial_ = false;  // a row of a part whose elements have no finite sum
  const Walk walk_{g_.shape};
  // Before tiles are configured: a calibration configures its own.
  const ReadPattern reading_ = readPatternOf(g_.shape);
};

// A worker's scratch memory.
struct Places {
  Places(const QuantizedShape& shape, char* memory) {
    const Memory sizes(shape);
    tiles = memory;
    aSums = reinterpret_cast<float*>(memory += sizes.tiles);
    sums = reinterpret_cast<float*>(memory += alignUp64(sizes.aSums));
    pieces = memory += sizes.sums;
    partSums = reinterpret_cast<float*>(memory + 2 * kPartBytes);
  }
  char *tiles, *pieces;
  float *aSums, *sums, *partSums;
};

}  // namespace

bool amxQuantizedTakes(const QuantizedShape& shape) {
  return shape.k > 0 && (shape.scales() <= 1 || shape.block % 32 == 0);
}

size_t amxQuantizedScratchBytes(const QuantizedShape& shape, int threads) {
  return alignUp64(Memory(shape).bytes() + 64) * size_t(threads);
}

void amxQuantizedGemm(const AmxQuantizedGemm& g, ThreadPool& pool, Scratch scratch) {
  auto placesOf = [&](int worker) {
    const size_t bytes = amxQuantizedScratchBytes(g.shape, 1);
    return Places(g.shape, static_cast<char*>(scratch.data) + size_t(worker) * bytes);
  };
  if (g.m <= kAmxFewRows) {
    const PanelGroups groups(g.shape.panels(), pool.threads(), readPatternOf(g.shape).streams);
    pool.runClaims(groups.count(), [&](ThreadPool::Claims& claims) {
      const Places at = placesOf(claims.worker());
      FewRows(g, at.tiles, at.pieces, at.aSums, at.sums, at.partSums).run(groups, claims);
    });
    return;
  }
  const RowsMatmul product{g.shape.k, g.shape.n, g.a, g.shape.k, g.epilogue, amxStoreKernels()};
  // Every chunk of rows unpacks all weights: there are no more of them than need be.
  const RowsTasks tasks(product, g.m, 1, pool.threads());
  pool.runClaims(tasks.count(), [&](ThreadPool::Claims& claims) {
    const Places at = placesOf(claims.worker());
    UnpackedPanels unpacked(g, panelOf, at.pieces, at.aSums);
    runManyRows(product, tasks, claims, unpacked, at.tiles, at.sums);
  });
}

}  // namespace lathe::cpu
