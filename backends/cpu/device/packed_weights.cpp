// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "backends/cpu/device/word_transpose.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

template <class Src, class Dst>
Dst convert(Src value) {
  if constexpr (std::is_same_v<Src, Dst>)
    return value;
  else if constexpr (std::is_same_v<Src, float>)
    return floatToBf16(value);
  else
    return bf16ToFloat(value);
}

// `count` elements of a source that may lie at any address of a mapped file.
template <class Src, class Dst>
void convertRow(const char* src, int64_t count, Dst* dst) {
  for (int64_t i = 0; i < count; ++i) {
    Src value;
    std::memcpy(&value, src + i * int64_t(sizeof(Src)), sizeof(Src));
    dst[i] = convert<Src, Dst>(value);
  }
}

// Rows of words become columns of the panel. `depth` elements along K of `cols` columns; an odd
// bf16 at the end shares its word with a zero.
template <class Dst>
void transposeColumns(WordTranspose transpose, const char* src, int64_t stride, int64_t cols,
                      int64_t depth, uint32_t* dst) {
  constexpr int64_t pair = 4 / sizeof(Dst);
  transpose(src, stride, cols, depth / pair, dst, kPanelColumns);
  if (depth % pair == 0) return;
  for (int64_t n = 0; n < cols; ++n) {
    uint16_t last;
    std::memcpy(&last, src + n * stride + (depth - 1) * 2, 2);
    dst[depth / pair * kPanelColumns + n] = last;
  }
}

// A panel of a row-major [n, k] source.
template <class Src, class Dst>
void packOutIn(const PackedShape& shape, WordTranspose transpose, const char* src, int64_t n0,
               uint32_t* dst) {
  const int64_t cols = std::min(kPanelColumns, shape.n - n0);
  const int64_t stride = shape.k * int64_t(sizeof(Src));
  src += n0 * stride;
  if constexpr (std::is_same_v<Src, Dst>) {
    transposeColumns<Dst>(transpose, src, stride, cols, shape.k, dst);
  } else {
    Dst block[kPanelBlockBytes / sizeof(Dst)];
    const int64_t blockK = shape.blockK();
    for (int64_t k = 0; k < shape.k; k += blockK, dst += kPanelBlockBytes / 4) {
      const int64_t depth = std::min(blockK, shape.k - k);
      for (int64_t n = 0; n < cols; ++n)
        convertRow<Src>(src + n * stride + k * int64_t(sizeof(Src)), depth, block + n * blockK);
      transposeColumns<Dst>(transpose, reinterpret_cast<const char*>(block),
                            blockK * int64_t(sizeof(Dst)), cols, depth, dst);
    }
  }
}

// A panel of a row-major [k, n] source: its rows are rows of the panel.
template <class Src, class Dst>
void packInOut(const PackedShape& shape, const char* src, int64_t n0, uint32_t* dst) {
  const int64_t cols = std::min(kPanelColumns, shape.n - n0);
  const int64_t stride = shape.n * int64_t(sizeof(Src));
  src += n0 * int64_t(sizeof(Src));
  if constexpr (std::is_same_v<Dst, float>) {
    for (int64_t k = 0; k < shape.k; ++k)
      convertRow<Src>(src + k * stride, cols, reinterpret_cast<float*>(dst) + k * kPanelColumns);
  } else {
    uint16_t even[kPanelColumns], odd[kPanelColumns];
    for (int64_t k = 0; k < shape.k; k += 2, dst += kPanelColumns) {
      convertRow<Src>(src + k * stride, cols, even);
      if (k + 1 < shape.k)
        convertRow<Src>(src + (k + 1) * stride, cols, odd);
      else
        std::fill_n(odd, cols, uint16_t(0));
      for (int64_t n = 0; n < cols; ++n) dst[n] = uint32_t(odd[n]) << 16 | even[n];
    }
  }
}

// One panel: 64 columns from `n0`, all of K. Its blocks follow each other, so that it is one matrix
// of words: [k or pairs of k][64 columns].
template <class Src, class Dst>
void packPanel(const PackedShape& shape, WordTranspose transpose, const char* src, bool srcIsOutIn,
               int64_t n0, uint32_t* dst) {
  if (shape.n - n0 < kPanelColumns)
    std::memset(dst, 0, size_t(shape.panelBytes()));
  else if (shape.k % shape.blockK() != 0)
    std::memset(dst + (shape.blocks() - 1) * (kPanelBlockBytes / 4), 0, kPanelBlockBytes);
  if (srcIsOutIn)
    packOutIn<Src, Dst>(shape, transpose, src, n0, dst);
  else
    packInOut<Src, Dst>(shape, src, n0, dst);
}

// The pairs of a panel's blocks, from the places of a PairPlaces{} to those of `to`.
void movePairs(PairPlaces to, int64_t blocks, char* panel) {
  for (char* end = panel + blocks * kPanelBlockBytes; panel < end; panel += kPanelBlockBytes) {
    char block[kPanelBlockBytes];
    std::memcpy(block, panel, sizeof block);
    for (int64_t pair = 0; pair < 16; ++pair)
      for (int64_t column = 0; column < 4; ++column)
        std::memcpy(panel + to.at(pair, column), block + PairPlaces{}.at(pair, column), 64);
  }
}

}  // namespace

PairPlaces pairPlaces(KernelIsa isa) {
  const bool tiles = isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles;
  return tiles ? kTileByTile : PairPlaces{};
}

void packWeights(const PackedShape& shape, const void* src, DType srcDType, bool srcIsOutIn,
                 void* dst, ThreadPool& pool, KernelIsa isa) {
  for (DType dtype : {shape.dtype, srcDType})
    if (dtype != DType::F32 && dtype != DType::BF16)
      throw Error(ErrorCode::Unsupported, "expected weights of f32 or bf16 to pack, got " +
                                              std::string(nameOf(dtype)) + "; cast them first");
  if (shape.k < 0 || shape.n < 0)
    throw Error(ErrorCode::InvalidArgument, "expected weight dims of at least 0, got [" +
                                                std::to_string(shape.k) + ", " +
                                                std::to_string(shape.n) + "]");
  const bool toF32 = shape.dtype == DType::F32, fromF32 = srcDType == DType::F32;
  const auto pack = toF32 ? (fromF32 ? packPanel<float, float> : packPanel<uint16_t, float>)
                          : (fromF32 ? packPanel<float, uint16_t> : packPanel<uint16_t, uint16_t>);
  const WordTranspose transpose = wordTranspose(isa.tier);
  const PairPlaces places = pairPlaces(isa);
  const bool move = !toF32 && places != PairPlaces{};
  pool.run(shape.panels(), [&](int64_t panel, int) {
    char* to = static_cast<char*>(dst) + panel * shape.panelBytes();
    pack(shape, transpose, static_cast<const char*>(src), srcIsOutIn, panel * kPanelColumns,
         reinterpret_cast<uint32_t*>(to));
    if (move) movePairs(places, shape.blocks(), to);
  });
}

}  // namespace lathe::cpu
