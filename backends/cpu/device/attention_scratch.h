// SPDX-License-Identifier: Apache-2.0
#pragma once
// How attention is cut into tiles and parts, and what of the scratch each worker and part has.
#include <algorithm>

#include "backends/cpu/device/attention.h"
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/attention_pack.h"

namespace lathe::cpu {

/// Scores of keys that lie one behind the other are stored by so many: a block of another size
/// would write over those of its neighbour.
inline constexpr int64_t kScoresAtOnce = 16;

/// Sizes that the driver works with.
struct AttentionGeometry {
  AttentionPack pack;
  int64_t group, rows, rowTiles, units, keyTiles;
  bool oneTile;   ///< decode: one row tile per key head
  bool inPlace;   ///< few rows: keys and values are not packed
  int64_t parts;  ///< of the key range, more than 1 only with oneTile
  size_t packedTile;
  size_t resultBytes;  ///< sums, maxima and sums of weights of one part
  size_t queryBytes, stageBytes, workerBytes, sharedBytes;

  AttentionGeometry(const AttentionArgs& a, const AttentionKernels& kernels, int threads)
      : pack(a, kernels) {
    group = a.qHeads / a.kvHeads;
    rows = group * a.qLen;
    rowTiles = ceilDiv(rows, kTileRows);
    units = a.batch * a.kvHeads;
    keyTiles = ceilDiv(a.kLen, kTileKeys);
    oneTile = rowTiles == 1;
    inPlace = rows <= kernels.inPlaceRows && a.headDim % kernels.inPlaceLanes == 0 &&
              a.valueDim % kernels.inPlaceLanes == 0 && a.headDim > 0 &&
              a.blockKeys % kScoresAtOnce == 0;
    parts = 1;
    if (oneTile && units < threads && keyTiles > 0)
      parts = std::min<int64_t>(ceilDiv(threads, units), keyTiles);
    // Long ones are cut further: a thread that is done takes parts of those that are slow.
    constexpr int64_t kPartsPerThread = 4, kLongPart = 8;
    if (oneTile && threads > 1 && units > 0)
      parts = std::max(parts, std::min<int64_t>(ceilDiv(kPartsPerThread * threads, units),
                                                keyTiles / kLongPart));
    packedTile = alignUp64(pack.keyBytes()) + alignUp64(pack.valueBytes());
    resultBytes = alignUp64(size_t(kTileRows * pack.valueColumns) * 4) +
                  alignUp64(sizeof(RowState) * kTileRows);
    queryBytes = alignUp64(inPlace ? size_t(rows * a.headDim) * 4 : pack.queryBytes());
    // Blocks that are no whole tiles are brought together before they are packed.
    stageBytes =
        a.blockKeys % kTileKeys == 0
            ? 0
            : alignUp64(size_t(kTileKeys * std::max(a.headDim, a.valueDim)) * sizeOf(a.dtype));
    workerBytes = stageBytes + queryBytes + resultBytes +
                  3 * alignUp64(sizeof(float) * kTileRows * kTileKeys) +
                  (oneTile && !inPlace ? packedTile : 0);
    sharedBytes = oneTile ? (parts > 1 ? size_t(units * parts) * resultBytes : 0)
                          : size_t(units * keyTiles) * packedTile;
  }
};

/// Unnormalised outputs of a row tile.
struct AttentionResult {
  float* sums;
  RowState* states;
  AttentionResult(char* at, const AttentionGeometry& g)
      : sums(reinterpret_cast<float*>(at)),
        states(reinterpret_cast<RowState*>(
            at + alignUp64(size_t(kTileRows * g.pack.valueColumns) * 4))) {}
};

/// One worker's slice of the scratch.
struct AttentionWorker {
  char* query;
  char* result;
  float* scores;
  char* weights;
  float* bias;
  char* tile;
  char* stage;
  AttentionWorker(char* at, const AttentionGeometry& g) {
    constexpr size_t scoreBytes = alignUp64(sizeof(float) * kTileRows * kTileKeys);
    stage = at;
    query = stage + g.stageBytes;
    result = query + g.queryBytes;
    scores = reinterpret_cast<float*>(result + g.resultBytes);
    weights = reinterpret_cast<char*>(scores) + scoreBytes;
    bias = reinterpret_cast<float*>(weights + scoreBytes);
    tile = reinterpret_cast<char*>(bias) + scoreBytes;
  }
};

}  // namespace lathe::cpu
