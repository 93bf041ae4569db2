// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/attention_pack.h"
#include "backends/cpu/device/attention_places.h"
#include "backends/cpu/device/attention_scratch.h"
#include "lathe/runtime/error.h"

// The rows of a group, queries x query heads that share a key head, are numbered query-major, so
// that a tile of 32 rows spans few queries (little causal waste) and uses each key tile for the
// whole group. With more than one row tile, keys and values are packed once per key head, then the
// row tiles are dealt out; with one (decode), each part of the key range packs what it reads, and
// with few rows it reads keys and values where they lie.

namespace lathe::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class Driver : AttentionPlaces {
 public:
  Driver(const AttentionArgs& args, KernelIsa isa, int threads, Scratch scratch)
      : AttentionPlaces(args),
        kernels_(attentionKernels(args.dtype == DType::BF16, isa)),
        g_(args, kernels_, threads),
        shared_(static_cast<char*>(scratch.data)),
        workers_(shared_ + g_.sharedBytes) {}

  void run(ThreadPool& pool) {
    if (g_.oneTile)
      runDecode(pool);
    else
      runPrefill(pool);
  }

 private:
  // --- addresses in the scratch ---

  char* packed(int64_t unit, int64_t tile) const {
    return shared_ + size_t(unit * g_.keyTiles + tile) * g_.packedTile;
  }
  AttentionWorker worker(int index) const {
    return {workers_ + size_t(index) * g_.workerBytes, g_};
  }

  // --- work ---

  // Keys beyond `end` may be uninitialized cache: they are not read.
  void packTile(int64_t unit, int64_t tile, int64_t end, char* stage, char* to) const {
    const int64_t j = tile * kTileKeys, count = std::clamp<int64_t>(end - j, 0, kTileKeys);
    char* const values = to + alignUp64(g_.pack.keyBytes());
    if (together(j, count) == count) {
      g_.pack.keys(key(unit, j), a_.kStrides.token, count, to);
      g_.pack.values(value(unit, j), a_.vStrides.token, count, values);
      return;
    }
    collect(unit, j, count, a_.k, a_.kStrides, a_.headDim, stage);
    g_.pack.keys(stage, a_.headDim, count, to);
    collect(unit, j, count, a_.v, a_.vStrides, a_.valueDim, stage);
    g_.pack.values(stage, a_.valueDim, count, values);
  }
  // Keys or values of several blocks, one behind the other.
  void collect(int64_t unit, int64_t j, int64_t count, const void* base,
               const AttentionStrides& strides, int64_t depth, char* to) const {
    const size_t bytes = size_t(depth) * sizeOf(a_.dtype);
    for (int64_t end = j + count; j < end; ++j, to += bytes)
      std::memcpy(to, element(base, place(unit, j, strides)), bytes);
  }

  // Where the mask's row of a query begins.
  int64_t maskPlace(int64_t batch, int64_t h, int64_t query, int64_t tile) const {
    const auto& s = a_.maskStrides;
    return batch * s[0] + h * s[1] + query * s[2] + tile * kTileKeys * s[3];
  }
  // The mask's row as addends; false if it adds nothing.
  bool maskRow(int64_t place, int64_t tile, float* bias) const {
    const int64_t step = a_.maskStrides[3];
    const int64_t count = std::min<int64_t>(kTileKeys, a_.kLen - tile * kTileKeys);
    const auto fill = [&](const auto* mask, const auto& addend) {
      // A loop of its own for elements that are neighbours: the compiler makes vectors of it.
      if (step == 1)
        for (int64_t j = 0; j < count; ++j) bias[j] = addend(mask[j]);
      else
        for (int64_t j = 0; j < count; ++j) bias[j] = addend(mask[j * step]);
    };
    if (a_.maskKind == MaskKind::Bool) {
      const uint8_t* mask = static_cast<const uint8_t*>(a_.mask) + place;
      if (step == 1 && !std::memchr(mask, 0, size_t(count))) return false;
      fill(mask, [](uint8_t seen) { return seen ? 0.0f : -kInf; });
    } else if (a_.maskKind == MaskKind::AdditiveF32) {
      fill(static_cast<const float*>(a_.mask) + place, [](float x) { return x; });
    } else {
      fill(static_cast<const uint16_t*>(a_.mask) + place, bf16ToFloat);
    }
    std::fill(bias + count, bias + kTileKeys, 0.0f);
    return true;
  }

  void beginRows(int64_t unit, int64_t row0, int count, const AttentionWorker& w,
                 AttentionResult& result) const {
    for (int r = 0; r < count; ++r) g_.pack.query(query(unit, row0 + r), r, w.query);
    // The blocks of the products read whole tiles: rows beyond `count` must hold numbers.
    const size_t rowBytes = size_t(g_.pack.innerDim) * g_.pack.elementBytes();
    std::fill(w.query + size_t(count) * rowBytes, w.query + g_.pack.queryBytes(), char(0));
    // Weights in f32 take the place of scores, which then are products with zeros.
    if (kernels_.bf16Operands)
      std::fill(w.weights + size_t(count * kTileKeys) * 2,
                w.weights + size_t(kTileRows * kTileKeys) * 2, char(0));
    clear(result);
  }
  void clear(AttentionResult& result) const {
    std::fill_n(result.sums, kTileRows * g_.pack.valueColumns, 0.0f);
    std::fill_n(result.states, kTileRows, RowState{-kInf, 0.0f});
  }

  // What the softmax is told of the rows of a tile; of all their tiles of keys only `keys`, `lo`,
  // `hi` and `bias` differ.
  struct Rows {
    int64_t unit, row0;
    int count;
    KeyRange seen[kTileRows], seenByAll;
    ScoreRow score[kTileRows];
  };
  void describeRows(int64_t unit, int64_t row0, int count, const AttentionWorker& w,
                    Rows& rows) const {
    rows.unit = unit;
    rows.row0 = row0;
    rows.count = count;
    rows.seenByAll = {0, a_.kLen};
    for (int r = 0; r < count; ++r) {
      // Those of a query see the same keys.
      const bool first = r == 0 || (row0 + r) % g_.group == 0;
      const KeyRange range =
          first ? visible(unit / a_.kvHeads, (row0 + r) / g_.group) : rows.seen[r - 1];
      rows.seen[r] = range;
      rows.seenByAll = {std::max(rows.seenByAll.lo, range.lo),
                        std::min(rows.seenByAll.hi, range.hi)};
      ScoreRow& row = rows.score[r];
      row = {};
      row.scale = a_.scale;
      row.softcap = a_.softcap;
      row.hideInfinite = a_.maskKind == MaskKind::Bool;
      row.scores = w.scores + r * kTileKeys;
      if (kernels_.bf16Operands) row.bf16 = reinterpret_cast<uint16_t*>(w.weights) + r * kTileKeys;
    }
  }

  // Adds one tile of keys to the rows' results; no row sees keys from `end` on.
  void addTile(Rows& rows, int64_t tile, int64_t end, const char* packedTile,
               const AttentionWorker& w, AttentionResult& result) const {
    const int64_t columns = g_.pack.valueColumns;
    const int64_t keys = roundUp(std::min<int64_t>(end - tile * kTileKeys, kTileKeys), kKeyStep);
    kernels_.product(w.query, g_.pack.innerDim, packedTile, g_.pack.innerDim, kTileKeys, keys,
                     rows.count, false, w.scores);
    const void* weights = weigh(rows, tile, keys, w, result);
    kernels_.product(weights, kTileKeys, packedTile + alignUp64(g_.pack.keyBytes()), keys, columns,
                     columns, rows.count, true, result.sums);
  }

  // The tile's scores become weights, in the dtype of the products' operands, and earlier sums
  // shrink accordingly.
  const void* weigh(Rows& rows, int64_t tile, int64_t keys, const AttentionWorker& w,
                    AttentionResult& result) const {
    const int64_t j0 = tile * kTileKeys, columns = g_.pack.valueColumns;
    const bool whole = rows.seenByAll.lo <= j0 && rows.seenByAll.hi >= j0 + kTileKeys;
    for (int r = 0; r < rows.count; ++r) {
      ScoreRow& row = rows.score[r];
      row.keys = int(keys);
      row.lo = whole ? 0 : int(std::clamp<int64_t>(rows.seen[r].lo - j0, 0, kTileKeys));
      row.hi = whole ? kTileKeys : int(std::clamp<int64_t>(rows.seen[r].hi - j0, 0, kTileKeys));
    }
    if (a_.maskKind != MaskKind::None) addMask(rows, tile, w);
    float shrink[kTileRows];
    kernels_.softmaxRows(rows.score, rows.count, result.states, shrink);
    for (int r = 0; r < rows.count; ++r)
      if (shrink[r] != 1.0f) kernels_.scaleRow(result.sums + r * columns, columns, shrink[r]);
    return kernels_.bf16Operands ? static_cast<const void*>(w.weights) : w.scores;
  }
  void addMask(Rows& rows, int64_t tile, const AttentionWorker& w) const {
    int64_t lastPlace = 0;
    for (int r = 0; r < rows.count; ++r) {
      const int64_t row = rows.row0 + r;
      // Queries and heads may share a row of the mask.
      const int64_t place =
          maskPlace(rows.unit / a_.kvHeads, head(rows.unit, row), row / g_.group, tile);
      float* bias = w.bias + r * kTileKeys;
      if (r > 0 && place == lastPlace)
        rows.score[r].bias = rows.score[r - 1].bias;
      else
        rows.score[r].bias = maskRow(place, tile, bias) ? bias : nullptr;
      lastPlace = place;
    }
  }

  // The same on keys and values where they lie, of which those outside `seen` are not read.
  void addTileInPlace(Rows& rows, int64_t tile, KeyRange seen, const AttentionWorker& w,
                      AttentionResult& result) const {
    const int64_t j0 = tile * kTileKeys, unit = rows.unit;
    const int count = rows.count;
    const int first = int(std::max<int64_t>(0, seen.lo - j0));
    const int end = int(std::min<int64_t>(kTileKeys, seen.hi - j0));
    const bool bf16 = a_.dtype == DType::BF16;
    for (int at = 0, keys = 0; at < end; at += keys) {
      keys = int(together(j0 + at, end - at));
      kernels_.scoresInPlace(w.query, a_.headDim, key(unit, j0 + at), a_.kStrides.token, bf16, keys,
                             count, w.scores + at);
    }
    const char* weights = static_cast<const char*>(weigh(rows, tile, kTileKeys, w, result));
    for (int at = 0, keys = 0; at < end; at += keys) {
      keys = int(together(j0 + at, end - at));
      if (at + keys <= first) continue;
      kernels_.sumInPlace(weights + size_t(at) * g_.pack.elementBytes(), value(unit, j0 + at),
                          a_.vStrides.token, bf16, std::max(0, first - at), keys, count,
                          a_.valueDim, g_.pack.valueColumns, result.sums);
    }
  }
  void queriesInPlace(int64_t unit, int count, const AttentionWorker& w) const {
    float* to = reinterpret_cast<float*>(w.query);
    for (int r = 0; r < count; ++r, to += a_.headDim) {
      const char* from = query(unit, r);
      if (kernels_.bf16Operands) {
        const size_t bytes = size_t(a_.headDim) * 2;
        std::memcpy(w.query + size_t(r) * bytes, from, bytes);
        continue;
      }
      for (int64_t d = 0; d < a_.headDim; ++d)
        to[d] = a_.dtype == DType::F32 ? reinterpret_cast<const float*>(from)[d]
                                       : bf16ToFloat(reinterpret_cast<const uint16_t*>(from)[d]);
    }
  }

  void finishRow(int64_t unit, int64_t row, float* sums, const RowState& state) const {
    const int64_t batch = unit / a_.kvHeads;
    int64_t at = batch * a_.outStrides.batch + head(unit, row) * a_.outStrides.head +
                 row / g_.group * a_.outStrides.token;
    if (state.sum == 0)
      for (int64_t d = 0; d < a_.valueDim; ++d) sums[d] = hiddenRow(unit, d);
    char* to = static_cast<char*>(a_.out) + at * int64_t(sizeOf(a_.dtype));
    kernels_.storeRow(sums, state.sum == 0 ? 1.0f : 1.0f / state.sum, a_.valueDim,
                      a_.dtype == DType::BF16, to);
  }

  // Output d of a row without visible keys.
  float hiddenRow(int64_t unit, int64_t d) const {
    // Without keys there is nothing to sum.
    if (a_.maskedRow == MaskedRow::zero || a_.kLen == 0) return 0.0f;
    if (a_.maskedRow == MaskedRow::nan) return std::numeric_limits<float>::quiet_NaN();
    float sum = 0;
    for (int64_t j = 0; j < a_.kLen; ++j) {
      const char* at = value(unit, j);
      sum += a_.dtype == DType::F32 ? reinterpret_cast<const float*>(at)[d]
                                    : bf16ToFloat(reinterpret_cast<const uint16_t*>(at)[d]);
    }
    return sum / float(a_.kLen);
  }

  void rowTile(int64_t unit, int64_t index, int workerIndex) const {
    const AttentionWorker w = worker(workerIndex);
    AttentionResult result(w.result, g_);
    const int64_t row0 = index * kTileRows;
    const int count = int(std::min<int64_t>(kTileRows, g_.rows - row0));
    beginRows(unit, row0, count, w, result);
    Rows rows;
    describeRows(unit, row0, count, w, rows);
    const KeyRange keys = visibleToRows(unit / a_.kvHeads, row0, row0 + count);
    for (int64_t t = keys.lo / kTileKeys; t < ceilDiv(keys.hi, kTileKeys); ++t)
      addTile(rows, t, keys.hi, packed(unit, t), w, result);
    for (int r = 0; r < count; ++r)
      finishRow(unit, row0 + r, result.sums + r * g_.pack.valueColumns, result.states[r]);
  }

  void runPrefill(ThreadPool& pool) {
    pool.run(g_.units * g_.keyTiles, [&](int64_t index, int workerIndex) {
      int64_t unit = index / g_.keyTiles, tile = index % g_.keyTiles;
      KeyRange keys = visibleToRows(unit / a_.kvHeads, 0, g_.rows);
      if (tile >= keys.lo / kTileKeys && tile * kTileKeys < keys.hi)
        packTile(unit, tile, keys.hi, worker(workerIndex).stage, packed(unit, tile));
    });
    // The row tiles of a unit follow each other: its keys and values stay in the L2 cache. Late
    // ones see most keys: they go first. No result depends on who computed it.
    pool.runClaims(g_.units * g_.rowTiles, [&](ThreadPool::Claims& claims) {
      if (kernels_.tiles) amxBegin();
      for (int64_t task; (task = claims.next()) >= 0;)
        rowTile(task / g_.rowTiles, g_.rowTiles - 1 - task % g_.rowTiles, claims.worker());
      if (kernels_.tiles) amxEnd();
    });
  }

  // One part of the key range of one key head.
  void decodePart(int64_t unit, int64_t part, int workerIndex) const {
    const AttentionWorker w = worker(workerIndex);
    char* at = g_.parts > 1 ? shared_ + size_t(unit * g_.parts + part) * g_.resultBytes : w.result;
    AttentionResult result(at, g_);
    const int count = int(g_.rows);
    if (g_.inPlace) {
      queriesInPlace(unit, count, w);
      clear(result);
    } else {
      beginRows(unit, 0, count, w, result);
    }
    Rows rows;
    describeRows(unit, 0, count, w, rows);
    const KeyRange keys = visibleToRows(unit / a_.kvHeads, 0, g_.rows);
    const int64_t first = keys.lo / kTileKeys;
    const int64_t tiles = std::max<int64_t>(0, ceilDiv(keys.hi, kTileKeys) - first);
    for (int64_t t = first + tiles * part / g_.parts; t < first + tiles * (part + 1) / g_.parts;
         ++t) {
      if (g_.inPlace) {
        addTileInPlace(rows, t, keys, w, result);
        continue;
      }
      packTile(unit, t, keys.hi, w.stage, w.tile);
      addTile(rows, t, keys.hi, w.tile, w, result);
    }
    if (g_.parts > 1) return;
    for (int r = 0; r < count; ++r)
      finishRow(unit, r, result.sums + r * g_.pack.valueColumns, result.states[r]);
  }

  // Brings the parts to a common maximum; a part that saw nothing weighs 0.
  void mergeParts(int64_t unit, int64_t row) const {
    const int64_t columns = g_.pack.valueColumns;
    auto part = [&](int64_t index) {
      return AttentionResult(shared_ + size_t(unit * g_.parts + index) * g_.resultBytes, g_);
    };
    RowState total{-kInf, 0.0f};
    for (int64_t p = 0; p < g_.parts; ++p) total.max = std::max(total.max, part(p).states[row].max);
    const float reference = total.max == -kInf ? 0.0f : total.max;
    float* sums = part(0).sums + row * columns;
    for (int64_t p = 0; p < g_.parts; ++p) {
      const AttentionResult from = part(p);
      const float factor = std::exp(from.states[row].max - reference);
      total.sum += from.states[row].sum * factor;
      for (int64_t d = 0; d < columns; ++d) {
        float x = from.sums[row * columns + d] * factor;
        sums[d] = p == 0 ? x : sums[d] + x;
      }
    }
    finishRow(unit, row, sums, total);
  }

  void runDecode(ThreadPool& pool) {
    pool.runClaims(g_.units * g_.parts, [&](ThreadPool::Claims& claims) {
      if (kernels_.tiles) amxBegin();
      for (int64_t index; (index = claims.next()) >= 0;)
        decodePart(index / g_.parts, index % g_.parts, claims.worker());
      if (kernels_.tiles) amxEnd();
    });
    if (g_.parts > 1)
      pool.run(g_.units * g_.rows,
               [&](int64_t index, int) { mergeParts(index / g_.rows, index % g_.rows); });
  }

  const AttentionKernels& kernels_;
  const AttentionGeometry g_;
  char* const shared_;
  char* const workers_;
};

void check(const AttentionArgs& a) {
  if (a.dtype != DType::F32 && a.dtype != DType::BF16)
    throw Error(ErrorCode::Unsupported, "expected attention on f32 or bf16, got " +
                                            std::string(nameOf(a.dtype)) + "; cast q, k and v");
  if (a.batch < 0 || a.qHeads < 0 || a.qLen < 0 || a.kLen < 0 || a.headDim < 0 || a.valueDim < 0)
    throw Error(ErrorCode::InvalidArgument, "expected attention dims of at least 0");
  if (a.kvHeads < 0 || (a.kvHeads == 0 ? a.qHeads : a.qHeads % a.kvHeads) != 0)
    throw Error(ErrorCode::InvalidArgument,
                "expected the query heads to be a multiple of the key heads, got " +
                    std::to_string(a.qHeads) + " and " + std::to_string(a.kvHeads));
  if (a.blockKeys < 0 || (a.blockKeys > 0 && a.kLen != a.tableEntries * a.blockKeys))
    throw Error(ErrorCode::InvalidArgument, "expected as many keys as the blocks of a table hold");
}

bool isEmpty(const AttentionArgs& a) {
  return a.batch == 0 || a.qHeads == 0 || a.qLen == 0 || a.valueDim == 0;
}

}  // namespace

const AttentionKernels& attentionKernels(bool bf16, KernelIsa isa) {
  static const AttentionKernels amx{true,
                                    true,
                                    amxMatmul,
                                    kAttentionAvx512Bf16.softmaxRows,
                                    kAttentionAvx512Bf16.scaleRow,
                                    kAttentionAvx512Bf16.storeRow,
                                    amxScoresInPlace,
                                    amxSumInPlace,
                                    kAttentionAvx512Bf16.inPlaceLanes,
                                    kAttentionAvx512Bf16.inPlaceRows,
                                    Isa::Amx};
  if (isa.tier == Isa::Avx2) return kAttentionAvx2;
  if (!bf16 || isa.arithmetic == Bf16Arithmetic::Widened) return kAttentionAvx512;
  return isa.arithmetic == Bf16Arithmetic::Tiles ? amx : kAttentionAvx512Bf16;
}

size_t attentionScratchBytes(const AttentionArgs& args, int threads, KernelIsa isa) {
  check(args);
  if (isEmpty(args)) return 0;
  AttentionGeometry g(args, attentionKernels(args.dtype == DType::BF16, isa), threads);
  return g.sharedBytes + g.workerBytes * size_t(threads);
}

void attention(const AttentionArgs& args, ThreadPool& pool, Scratch scratch, KernelIsa isa) {
  const size_t needed = attentionScratchBytes(args, pool.threads(), isa);
  if (isEmpty(args)) return;
  if ((args.maskKind == MaskKind::None) != (args.mask == nullptr))
    throw Error(ErrorCode::InvalidArgument,
                "expected an attention mask exactly when a mask kind is given");
  if (scratch.bytes < needed)
    throw Error(ErrorCode::InvalidArgument,
                "expected " + std::to_string(needed) + " bytes of scratch for attention, got " +
                    std::to_string(scratch.bytes) + "; ask attentionScratchBytes");
  Driver(args, isa, pool.threads(), scratch).run(pool);
}

}  // namespace lathe::cpu
