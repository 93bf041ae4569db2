// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/device/amx_byte_rows.h"
#include "backends/cpu/device/amx_quantized.h"
#include "backends/cpu/device/amx_rows.h"
#include "backends/cpu/device/calibration.h"

// A few rows in 8 bits (byte_rows.h), one row of tiles, meet weights in bytes. They wait for
// memory: panels are read as several streams, a piece of each in turn. Bytes are multiplied where
// they lie; halves become bytes with a sign in the L1 cache. The sums are whole numbers: those of
// blocks with scales of their own are scaled piece by piece, others when they are complete.
//
// What was just stored reaches a tile, or comes from it, late. So a turn multiplies a piece, scales
// the sums of the piece before and prepares the next one, 16 columns after the other, and these
// three work side by side.

namespace lathe::cpu {
namespace {

constexpr int64_t kPieceBlocks = 2;  // K blocks of a stream before the next one's
constexpr int64_t kPanelSums = kAmxFewRows * kPanelColumns;
constexpr int64_t kMostDepth = 64;  // of a K block, which is a row of tiles of A
constexpr float kHalfUnit = 16;     // halves are multiplied in the upper half of a byte
constexpr int64_t kPieceBytes = kPieceBlocks * kMostDepth * kPanelColumns;

// How the rows walk K, in blocks of `depth` elements.
struct Walk {
  explicit Walk(const QuantizedShape& w)
      : scaled(w.scales() > 1),
        depth(scaled && w.block % kMostDepth ? kMostDepth / 2 : kMostDepth),
        blocks(ceilDiv(w.k, depth)),
        part(scaled && w.block / depth % kPieceBlocks ? 1 : kPieceBlocks) {}
  bool scaled;  // blocks of K have scales of their own
  int64_t depth, blocks;
  int64_t part;  // whose sums are scaled together, if they are
};

// One worker's memory.
struct Memory {
  explicit Memory(const QuantizedShape& w)
      : tiles(size_t(kAmxFewRows * kMostDepth * ceilDiv(w.k, kMostDepth))),
        aSums(alignUp64(size_t(kAmxFewRows * Walk(w).blocks) * 4)) {}
  size_t bytes() const { return tiles + aSums + sums + partSums + piece; }
  size_t tiles, aSums;
  size_t sums = size_t(kMaxReadStreams * kPanelSums) * 4;
  size_t partSums = size_t(kPieceBlocks * kPanelSums) * 4;
  size_t piece = size_t(2 * kPieceBytes);
};

// Weights that are multiplied next: `lines` of words of every column.
struct NextPiece {
  const char* q = nullptr;
  int64_t lines = 0, prefetch = 0;
  char* to = nullptr;  // null: they are multiplied where they lie
};
// What is multiplied: `count` K blocks, whose tiles of A lie `aStep` bytes apart.
struct Products {
  const char *a = nullptr, *b = nullptr;
  int64_t aStep = 0, bStep = 0, count = 0;
  bool together = false;  // their sums
  bool add = false;       // to `sums`, which the first block starts otherwise
  float* sums = nullptr;  // [16][64] for each block, if not together
};
// Sums of `parts` parts that are scaled: less `center` and zero points times the sums of A. Parts
// have the scales `row`, row + rowStep, ..; their sums of A follow each other.
struct PartSums {
  const QuantizedPanel* panel = nullptr;
  const float* sums = nullptr;
  int64_t parts = 0, rows = 0, row = 0, rowStep = 0;
  const int32_t* aSums = nullptr;
  bool first = false;  // they start acc[rows][64]
  float* acc = nullptr;
};

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

#include "backends/cpu/device/quantized_numbers.inc"

// A quarter of the next piece, in the order of memory. Halves become bytes that count from the
// middle of their range, times kHalfUnit: in the upper half of a byte nothing but the range's
// middle is to be taken off.
template <bool halves>
inline void prepareQuarter(const NextPiece& next, int quarter) {
  const __m512i middle = _mm512_set1_epi8(char(0x80)), high = _mm512_set1_epi8(char(0xf0));
  const int64_t end = next.lines * (quarter + 1) / 4;
  for (int64_t line = next.lines * quarter / 4; line < end; ++line) {
    const char* q = next.q + line * 256;
    for (int c = 0; c < 256; c += 64) {
      // Tiles take bytes from the L2 cache as fast.
      _mm_prefetch(q + next.prefetch + c, halves ? _MM_HINT_T0 : _MM_HINT_T1);
      if constexpr (halves) {
        char* to = next.to + line * 512 + c;
        const __m512i words = _mm512_loadu_si512(q + c);
        // 0x28: (a ^ b) & c
        _mm512_storeu_si512(
            to, _mm512_ternarylogic_epi32(_mm512_slli_epi16(words, 4), middle, high, 0x28));
        _mm512_storeu_si512(to + 256, _mm512_ternarylogic_epi32(words, middle, high, 0x28));
      }
    }
  }
}

// Tiles of A are in 4 and 5.
template <Operands operands, int c>
inline void multiplyColumns(const Products& p) {
  constexpr int t = c % 2 * 2;  // two of the four tiles of sums take turns with the others
  if (p.add)
    tileLoad<t>(p.sums + c * 16, 256);
  else
    tileZero<t>();
  tileLoad<6>(p.b + c * 64, 256);
  tileDot<operands, t, 4, 6>();
  if (p.count > 1) {
    tileLoad<7>(p.b + p.bStep + c * 64, 256);
    if (p.together) {
      tileDot<operands, t, 5, 7>();
    } else {
      tileZero<t + 1>();
      tileDot<operands, t + 1, 5, 7>();
      tileStore<t + 1>(p.sums + kPanelSums + c * 16, 256);
    }
  }
  tileStore<t>(p.sums + c * 16, 256);
}

// Bytes count from 0, halves from the middle of their range.
template <bool halves, bool zeros, int parts>
inline void scaleSome(const PartSums& from, int c) {
  constexpr int kAtOnce = 4;  // rows; some behind the last are scaled with it
  const QuantizedPanel& p = *from.panel;
  __m512 scale[parts], zero[parts];
  for (int i = 0; i < parts; ++i) {
    scale[i] = numbersOf(p, p.scale, from.row + i * from.rowStep, c);
    zero[i] = _mm512_setzero_ps();
    if constexpr (zeros)
      zero[i] = _mm512_mul_ps(zerosOf(p, from.row + i * from.rowStep, c),
                              _mm512_set1_ps(halves ? kHalfUnit : 1));
  }
  const float* sums = from.sums + c * 16;
  float* acc = from.acc + c * 16;
  for (int64_t r0 = 0; r0 < from.rows; r0 += kAtOnce)
    for (int i = 0; i < kAtOnce; ++i, sums += kPanelColumns, acc += kPanelColumns) {
      __m512 total = from.first ? _mm512_setzero_ps() : _mm512_load_ps(acc);
      for (int part = 0; part < parts; ++part) {
        __m512i whole = _mm512_loadu_si512(sums + part * kPanelSums);
        const int32_t* aSum = from.aSums + part * kAmxFewRows + r0 + i;
        if constexpr (!halves)
          whole = _mm512_sub_epi32(whole, _mm512_slli_epi32(_mm512_set1_epi32(*aSum), 7));
        __m512 sum = _mm512_cvtepi32_ps(whole);
        if constexpr (zeros)
          sum = _mm512_fnmadd_ps(zero[part], _mm512_cvtepi32_ps(_mm512_set1_epi32(*aSum)), sum);
        total = _mm512_fmadd_ps(sum, scale[part], total);
      }
      _mm512_store_ps(acc, total);
    }
}
template <bool halves, bool zeros>
inline void scaleColumns(const PartSums& from, int c) {
  if (from.parts == 2) return scaleSome<halves, zeros, 2>(from, c);
  if (from.parts == 1) scaleSome<halves, zeros, 1>(from, c);
}

template <bool halves, bool zeros>
void scale(const PartSums& from) {
  for (int c = 0; c < 4; ++c) scaleColumns<halves, zeros>(from, c);
}
template <bool halves>
void prepare(const NextPiece& next) {
  for (int c = 0; c < 4; ++c) prepareQuarter<halves>(next, c);
}

template <bool halves, bool zeros, int c>
inline void turnColumns(const Products& now, const PartSums& before, const NextPiece& next) {
  scaleColumns<halves, zeros>(before, c);
  multiplyColumns<halves ? Operands::signedBytes : Operands::bytes, c>(now);
  prepareQuarter<halves>(next, c);
}
template <bool halves, bool zeros>
void turn(const Products& now, const PartSums& before, const NextPiece& next) {
  if (before.parts > 0)
    for (int64_t i = 0; i < before.parts; ++i)
      fetchNumbers(*before.panel, before.row + i * before.rowStep);
  tileLoad<4>(now.a, 64);
  if (now.count > 1) tileLoad<5>(now.a + now.aStep, 64);
  turnColumns<halves, zeros, 0>(now, before, next);
  turnColumns<halves, zeros, 1>(now, before, next);
  turnColumns<halves, zeros, 2>(now, before, next);
  turnColumns<halves, zeros, 3>(now, before, next);
}

// acc[rows][64] times the rows' sizes.
void scaleBySizes(const float* sizes, int64_t rows, float* acc) {
  for (int64_t r = 0; r < rows; ++r, acc += kPanelColumns)
    for (int v = 0; v < 64; v += 16)
      _mm512_store_ps(acc + v, _mm512_mul_ps(_mm512_load_ps(acc + v), _mm512_set1_ps(sizes[r])));
}

LATHE_ISA_END

struct Kernels {
  void (*turn)(const Products&, const PartSums&, const NextPiece&);
  void (*scale)(const PartSums&);
  void (*prepare)(const NextPiece&);
};
template <bool halves, bool zeros>
constexpr Kernels kKernels{turn<halves, zeros>, scale<halves, zeros>, prepare<halves>};
const Kernels& kernelsOf(bool halves, bool zeros) {
  if (halves) return zeros ? kKernels<true, true> : kKernels<true, false>;
  return zeros ? kKernels<false, true> : kKernels<false, false>;
}

// The rows of one worker and its share of panels.
class FewByteRows {
 public:
  FewByteRows(const AmxQuantizedGemm& g, char* memory)
      : g_(g), halves_(g.shape.bits() == 4), kernels_(kernelsOf(halves_, g.hasZero)) {
    const Memory sizes(g.shape);
    tiles_ = memory;
    aSums_ = reinterpret_cast<int32_t*>(memory += sizes.tiles);
    sums_ = reinterpret_cast<float*>(memory += sizes.aSums);
    partSums_ = reinterpret_cast<float*>(memory += sizes.sums);
    pieces_ = memory + sizes.partSums;
  }

  void run(const PanelGroups& groups, ThreadPool::Claims& claims) {
    PanelGroups::Group panels = groups.next(claims);
    if (!panels.count) return;
    AmxTileConfig config;
    for (int tile = 0; tile < 6; ++tile) config.rows[tile] = static_cast<unsigned char>(g_.m);
    for (int tile : {4, 5}) config.columnBytes[tile] = static_cast<unsigned short>(walk_.depth);
    for (int tile : {6, 7}) config.rows[tile] = static_cast<unsigned char>(walk_.depth / 4);
    tileConfigure(config);
    tileRows();
    // Sums of rows behind the last are scaled, too.
    std::fill_n(partSums_, kPieceBlocks * kPanelSums, 0.0f);
    std::fill_n(sums_, kMaxReadStreams * kPanelSums, 0.0f);
    for (; panels.count; panels = groups.next(claims)) group(panels);
    tileRelease();
  }

 private:
  void tileRows() {
    constexpr int64_t kStride = kAmxFewRows * kMostDepth;
    const int64_t halves = walk_.depth / 32, steps = walk_.scaled ? walk_.part : walk_.blocks;
    for (int64_t r = 0; r < g_.m; ++r) {
      char* row = tiles_ + r * kMostDepth;
      sizes_[r] = toByteTiles(g_.a + r * g_.shape.k, g_.shape.k, ceilDiv(g_.shape.k, kMostDepth),
                              kStride, row);
      if (halves_) sizes_[r] /= kHalfUnit;
      if (halves_ && !g_.hasZero) continue;
      for (int64_t block = 0; block < walk_.blocks; block += steps)
        aSums_[block / steps * kAmxFewRows + r] = sumOfBytes(
            row, kStride, block * halves, std::min(walk_.blocks, block + steps) * halves);
    }
  }

  // A piece of one stream: `block` is its first, with the scales `row`.
  struct Turn {
    int64_t stream = 0, index = 0, block = 0, row = 0;
  };
  Turn after(Turn t) const {
    ++t.index;
    if (++t.stream < streams_) return t;
    t.stream = 0;
    t.block += kPieceBlocks;
    t.row = rowOf(t.block);
    return t;
  }
  int64_t rowOf(int64_t block) const {
    return walk_.scaled ? block * walk_.depth / g_.shape.block : 0;
  }
  // Where its weights become bytes while those of the turn before are multiplied.
  char* piece(Turn t) const { return pieces_ + t.index % 2 * kPieceBytes; }
  bool together() const { return walk_.part == kPieceBlocks; }
  int64_t count(Turn t) const { return std::min(kPieceBlocks, walk_.blocks - t.block); }

  void group(const PanelGroups::Group& streams) {
    const auto [first, stride, count] = streams;
    streams_ = count;
    for (int64_t s = 0; s < count; ++s) panels_[s] = g_.panel(first + s * stride, tails_[s]);
    Turn now;
    PartSums before;
    kernels_.prepare(pieceOf(now));
    complete(now);
    while (now.block < walk_.blocks) {
      const Turn next = after(now);
      const bool more = next.block < walk_.blocks;
      kernels_.turn(productsOf(now), before, more ? pieceOf(next) : NextPiece{});
      if (more) complete(next);
      if (walk_.scaled) before = sumsOf(now);
      now = next;
    }
    kernels_.scale(before);
    for (int64_t s = 0; s < count; ++s) finish(s, (first + s * stride) * kPanelColumns);
  }

  const char* stored(Turn t) const {
    return panels_[t.stream].q + t.block * walk_.depth * kPanelColumns / (halves_ ? 2 : 1);
  }
  // Elements of a piece that are stored: tiles take whole blocks.
  int64_t depthOf(Turn t) const {
    return std::min(count(t) * walk_.depth, panels_[t.stream].depth - t.block * walk_.depth);
  }
  bool inPlace(Turn t) const { return !halves_ && depthOf(t) == count(t) * walk_.depth; }

  NextPiece pieceOf(Turn t) const {
    const int64_t lines = depthOf(t) / (halves_ ? 8 : 4);
    return {stored(t), lines, reading_.prefetch, halves_ ? piece(t) : nullptr};
  }
  // Zeros behind the last elements, and these, if they are no whole block of bytes.
  void complete(Turn t) const {
    if (inPlace(t)) return;
    const int64_t bytes = depthOf(t) * kPanelColumns;
    if (!halves_) std::copy_n(stored(t), bytes, piece(t));
    std::fill(piece(t) + bytes, piece(t) + count(t) * walk_.depth * kPanelColumns, char(0));
  }

  Products productsOf(Turn t) const {
    Products p;
    // Blocks of half the depth lie side by side; a piece begins with the first of two.
    p.a = tiles_ + t.block * walk_.depth * kAmxFewRows;
    p.aStep = walk_.depth == kMostDepth ? kTileBytes : kMostDepth / 2;
    p.b = inPlace(t) ? stored(t) : piece(t);
    p.bStep = walk_.depth * kPanelColumns;
    p.count = count(t);
    p.together = together();
    p.add = !walk_.scaled && t.block > 0;
    p.sums = walk_.scaled ? partSums_ : sums_ + t.stream * kPanelSums;
    return p;
  }
  PartSums sumsOf(Turn t) const {
    PartSums from;
    from.panel = &panels_[t.stream];
    from.sums = partSums_;
    from.parts = together() ? 1 : count(t);
    from.rows = g_.m;
    from.row = t.row;
    // Of two parts the second may begin a block.
    from.rowStep = from.parts > 1 ? rowOf(t.block + 1) - t.row : 0;
    from.aSums = aSums_ + t.block / (together() ? 2 : 1) * kAmxFewRows;
    from.first = t.block == 0;
    from.acc = sums_ + t.stream * kPanelSums;
    return from;
  }

  void finish(int64_t stream, int64_t col0) const {
    float* acc = sums_ + stream * kPanelSums;
    if (!walk_.scaled) kernels_.scale({&panels_[stream], acc, 1, g_.m, 0, 0, aSums_, true, acc});
    scaleBySizes(sizes_, g_.m, acc);
    amxStoreKernels().store(acc, kPanelColumns, g_.m, std::min(kPanelColumns, g_.shape.n - col0), 0,
                            col0, g_.epilogue);
  }

  const AmxQuantizedGemm& g_;
  const bool halves_;
  const Kernels& kernels_;
  const Walk walk_{g_.shape};
  // Before tiles are configured: a calibration configures its own.
  const ReadPattern reading_ = readPatternOf(g_.shape);
  char *tiles_, *pieces_;
  int32_t* aSums_;  // [parts][16], of all elements where columns have one scale
  float *sums_, *partSums_;
  float sizes_[kAmxFewRows];
  int64_t streams_ = 0;
  QuantizedPanel panels_[kMaxReadStreams];
  alignas(64) float tails_[kMaxReadStreams][2 * kPanelColumns];
};

}  // namespace

bool amxFewBytesTake(const QuantizedShape& shape) {
  return amxBytesTake(shape) && amxQuantizedTakes(shape);
}

size_t amxFewBytesScratchBytes(const QuantizedShape& shape, int threads) {
  return Memory(shape).bytes() * size_t(threads);
}

void amxFewBytesGemm(const AmxQuantizedGemm& g, ThreadPool& pool, Scratch scratch) {
  const PanelGroups groups(g.shape.panels(), pool.threads(), readPatternOf(g.shape).streams);
  pool.runClaims(groups.count(), [&](ThreadPool::Claims& claims) {
    char* memory = static_cast<char*>(scratch.data) +
                   size_t(claims.worker()) * amxFewBytesScratchBytes(g.shape, 1);
    FewByteRows(g, memory).run(groups, claims);
  });
}

}  // namespace lathe::cpu
