// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention_pack.h"

#include <algorithm>
#include <cstring>

namespace lathe::cpu {
namespace {

// Elements of a row of the given dtype as f32.
void widen(const char* from, DType dtype, int64_t count, float* to) {
  if (dtype == DType::F32) {
    std::memcpy(to, from, size_t(count) * 4);
    return;
  }
  const uint16_t* bits = reinterpret_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < count; ++i) to[i] = bf16ToFloat(bits[i]);
}

}  // namespace

AttentionPack::AttentionPack(const AttentionArgs& args, const AttentionKernels& kernels)
    : dtype(args.dtype),
      bf16(kernels.bf16Operands),
      tiles(kernels.tiles),
      transpose(wordTranspose(kernels.tier)),
      headDim(args.headDim),
      valueDim(args.valueDim),
      innerDim(bf16 ? roundUp(args.headDim, 32) : args.headDim),
      valueColumns(roundUp(args.valueDim, 32)) {}

void AttentionPack::query(const void* from, int row, void* tile) const {
  if (bf16) {
    uint16_t* to = static_cast<uint16_t*>(tile) + row * innerDim;
    std::memcpy(to, from, size_t(headDim) * 2);
    std::memset(to + headDim, 0, size_t(innerDim - headDim) * 2);
    return;
  }
  widen(static_cast<const char*>(from), dtype, headDim, static_cast<float*>(tile) + row * innerDim);
}

void AttentionPack::keys(const void* from, int64_t stride, int64_t count, void* tile) const {
  const char* keys = static_cast<const char*>(from);
  uint32_t* to = static_cast<uint32_t*>(tile);
  stride *= int64_t(sizeOf(dtype));
  if (tiles) return keysInTiles(keys, stride, count, to);
  const int64_t elementsPerWord = bf16 ? 2 : 1, words = headDim / elementsPerWord;
  std::memset(to + words * kTileKeys, 0,
              size_t(innerDim / elementsPerWord - words) * kTileKeys * sizeof(uint32_t));
  // Products of what was there before would cost more than zeros: subnormals do.
  const int64_t end = roundUp(count, kKeyStep);
  for (int64_t w = 0; w < words; ++w)
    std::fill(to + w * kTileKeys + count, to + w * kTileKeys + end, 0u);
  if (!bf16 && dtype == DType::BF16) {
    // Keys are widened in pieces that stay in the innermost cache.
    constexpr int64_t pieceKeys = 16, pieceDim = 64;
    float piece[pieceKeys * pieceDim];
    for (int64_t j = 0; j < count; j += pieceKeys)
      for (int64_t d = 0; d < headDim; d += pieceDim) {
        const int64_t rows = std::min(pieceKeys, count - j), dims = std::min(pieceDim, headDim - d);
        for (int64_t r = 0; r < rows; ++r)
          widen(keys + (j + r) * stride + d * 2, dtype, dims, piece + r * pieceDim);
        transpose(reinterpret_cast<const char*>(piece), pieceDim * 4, rows, dims,
                  to + d * kTileKeys + j, kTileKeys);
      }
    return;
  }
  transpose(keys, stride, count, words, to, kTileKeys);
  if (headDim % elementsPerWord == 0) return;
  for (int64_t j = 0; j < count; ++j) {
    uint16_t last;
    std::memcpy(&last, keys + j * stride + (headDim - 1) * 2, 2);
    to[words * kTileKeys + j] = last;
  }
}

// Of 16 keys all pairs, then those of the next 16; `stride` in bytes.
void AttentionPack::keysInTiles(const char* from, int64_t stride, int64_t count,
                                uint32_t* tile) const {
  const int64_t words = headDim / 2, depth = innerDim / 2, end = roundUp(count, kKeyStep);
  for (int64_t j = 0; j < end; j += 16, from += 16 * stride, tile += depth * 16) {
    const int64_t some = std::clamp<int64_t>(count - j, 0, 16), whole = some == 16 ? words : 0;
    std::memset(tile + whole * 16, 0, size_t(depth - whole) * 64);
    if (some > 0) transpose(from, stride, some, words, tile, 16);
    if (headDim % 2 == 0) continue;
    for (int64_t i = 0; i < some; ++i) {
      uint16_t last;
      std::memcpy(&last, from + i * stride + (headDim - 1) * 2, 2);
      tile[words * 16 + i] = last;
    }
  }
}

// Of 16 columns the pairs of all keys, then those of the next 16.
void AttentionPack::valuesInTiles(const uint16_t* from, int64_t stride, int64_t count,
                                  uint32_t* tile) const {
  const int64_t pairs = (count + 1) / 2, end = roundUp(count, kKeyStep) / 2;
  constexpr uint16_t none[16] = {};
  for (int64_t d0 = 0; d0 < valueColumns; d0 += 16, tile += kTileKeys / 2 * 16) {
    const int64_t some = std::clamp<int64_t>(valueDim - d0, 0, 16);
    if (some < 16) std::memset(tile, 0, size_t(end) * 64);
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const uint16_t* even = from + 2 * pair * stride + d0;
      const uint16_t* odd = 2 * pair + 1 < count ? even + stride : none;
      for (int64_t d = 0; d < some; ++d) tile[pair * 16 + d] = uint32_t(odd[d]) << 16 | even[d];
    }
    std::memset(tile + pairs * 16, 0, size_t(end - pairs) * 64);
  }
}

void AttentionPack::values(const void* from, int64_t stride, int64_t count, void* tile) const {
  if (tiles)
    return valuesInTiles(static_cast<const uint16_t*>(from), stride, count,
                         static_cast<uint32_t*>(tile));
  const size_t rowBytes = size_t(valueColumns) * elementBytes();
  const int64_t first = valueColumns > valueDim ? 0 : bf16 ? roundUp(count, 2) : count;
  const int64_t end = std::max(first, roundUp(count, kKeyStep));
  std::memset(static_cast<char*>(tile) + size_t(first) * rowBytes, 0,
              size_t(end - first) * rowBytes);
  if (!bf16) {
    const char* row = static_cast<const char*>(from);
    stride *= int64_t(sizeOf(dtype));
    for (int64_t j = 0; j < count; ++j, row += stride)
      widen(row, dtype, valueDim, static_cast<float*>(tile) + j * valueColumns);
    return;
  }
  uint32_t* to = static_cast<uint32_t*>(tile);
  const uint16_t* values = static_cast<const uint16_t*>(from);
  for (int64_t j = 0; j < count; j += 2, to += valueColumns) {
    const uint16_t* even = values + j * stride;
    if (j + 1 < count) {
      const uint16_t* odd = even + stride;
      for (int64_t d = 0; d < valueDim; ++d) to[d] = uint32_t(odd[d]) << 16 | even[d];
    } else {
      for (int64_t d = 0; d < valueDim; ++d) to[d] = even[d];
    }
  }
}

}  // namespace lathe::cpu
