// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/quantized_weights.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/device/word_transpose.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// The source's words of 32 bits of `cols` rows become columns of the panel (word_transpose.h), and
// each of them what `change` makes of it.
template <class Change>
void packWords(WordTranspose transpose, const uint8_t* src, int64_t stride, int64_t cols,
               int64_t words, uint32_t* dst, Change change) {
  transpose(reinterpret_cast<const char*>(src), stride, cols, words, dst, kPanelColumns);
  for (int64_t line = 0; line < words; ++line)
    for (uint32_t* word = dst + line * kPanelColumns; word < dst + line * kPanelColumns + cols;
         ++word)
      *word = change(*word);
}

// A panel of bytes: four neighbours of a row become a word.
void packBytes(const QuantizedShape& shape, WordTranspose transpose, const uint8_t* src, int64_t n0,
               uint32_t* dst) {
  const int64_t cols = std::min(kPanelColumns, shape.n - n0), words = shape.k / 4;
  const auto flip = uint32_t(shape.isUnsigned() ? 0 : shape.center()) * 0x01010101u;
  packWords(transpose, src + n0 * shape.k, shape.k, cols, words, dst,
            [=](uint32_t word) { return word ^ flip; });
  auto* bytes = reinterpret_cast<uint8_t*>(dst);
  for (int64_t n = 0; n < cols; ++n)
    for (int64_t k = words * 4; k < shape.k; ++k)
      bytes[(words * kPanelColumns + n) * 4 + k % 4] = src[(n0 + n) * shape.k + k] ^ uint8_t(flip);
}

// Four halves side by side as the low halves of four bytes.
constexpr uint32_t spreadHalves(uint32_t four) {
  four = (four | four << 8) & 0x00ff00ffu;
  return (four | four << 4) & 0x0f0f0f0fu;
}

uint32_t halfByte(const uint8_t* src, int64_t i) {
  return uint32_t(src[i / 2] >> (i % 2 * 4)) & 15;
}

// A panel of halves: eight neighbours of a row become a word.
void packHalves(const QuantizedShape& shape, WordTranspose transpose, const uint8_t* src,
                int64_t n0, uint32_t* dst) {
  const int64_t cols = std::min(kPanelColumns, shape.n - n0);
  const auto flip = uint32_t(shape.isUnsigned() ? 0 : shape.center());
  if (shape.k % 8 == 0) {
    packWords(transpose, src + n0 * shape.k / 2, shape.k / 2, cols, shape.k / 8, dst,
              [=](uint32_t word) {
                return (spreadHalves(word & 0xffffu) | spreadHalves(word >> 16) << 4) ^
                       flip * 0x11111111u;
              });
    return;
  }
  for (int64_t n = 0; n < cols; ++n) {
    const int64_t row = (n0 + n) * shape.k;
    for (int64_t k = 0; k < shape.k; ++k) {
      const int64_t i = k % 8;
      uint32_t& word = dst[k / 8 * kPanelColumns + n];
      const int shift = int(i % 4 * 8 + i / 4 * 4);
      word = (word & ~(15u << shift)) | (halfByte(src, row + k) ^ flip) << shift;
    }
  }
}

}  // namespace

void packQuantized(const QuantizedShape& shape, const void* src, void* dst, ThreadPool& pool,
                   KernelIsa isa) {
  if (shape.dtype != DType::I8 && shape.dtype != DType::U8 && !isPacked(shape.dtype))
    throw Error(ErrorCode::Unsupported, "expected quantized weights of i8, u8, i4 or u4, got " +
                                            std::string(nameOf(shape.dtype)));
  if (shape.k < 0 || shape.n < 0 || shape.block < 1 || (shape.scales() > 1 && shape.block % 8))
    throw Error(ErrorCode::Unsupported,
                "expected blocks of a multiple of 8, or of a whole row, got " +
                    std::to_string(shape.block) + " of [" + std::to_string(shape.n) + ", " +
                    std::to_string(shape.k) + "]");
  const auto* from = static_cast<const uint8_t*>(src);
  const WordTranspose transpose = wordTranspose(isa.tier);
  pool.run(shape.panels(), [&](int64_t panel, int) {
    char* to = static_cast<char*>(dst) + panel * shape.panelBytes();
    if (shape.paddedK() != shape.k || shape.n - panel * kPanelColumns < kPanelColumns)
      std::memset(to, shape.bits() == 8 ? 0x80 : 0x88, size_t(shape.panelBytes()));
    (shape.bits() == 8 ? packBytes : packHalves)(shape, transpose, from, panel * kPanelColumns,
                                                 reinterpret_cast<uint32_t*>(to));
  });
}

}  // namespace lathe::cpu
