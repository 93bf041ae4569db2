// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/quantized_weights.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// A panel of bytes: four neighbours of a row become a word.
void packBytes(const QuantizedShape& shape, const uint8_t* src, int64_t n0, uint8_t* dst) {
  const int64_t cols = std::min(kPanelColumns, shape.n - n0);
  const auto flip = uint8_t(shape.isUnsigned() ? 0 : shape.center());
  for (int64_t n = 0; n < cols; ++n) {
    const uint8_t* row = src + (n0 + n) * shape.k;
    for (int64_t k = 0; k < shape.k; ++k)
      dst[(k / 4 * kPanelColumns + n) * 4 + k % 4] = row[k] ^ flip;
  }
}

uint32_t halfByte(const uint8_t* src, int64_t i) {
  return uint32_t(src[i / 2] >> (i % 2 * 4)) & 15;
}

// A panel of halves: eight neighbours of a row become a word.
void packHalves(const QuantizedShape& shape, const uint8_t* src, int64_t n0, uint32_t* dst) {
  const int64_t cols = std::min(kPanelColumns, shape.n - n0);
  const auto flip = uint32_t(shape.isUnsigned() ? 0 : shape.center());
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

void packQuantized(const QuantizedShape& shape, const void* src, void* dst, ThreadPool& pool) {
  if (shape.dtype != DType::I8 && shape.dtype != DType::U8 && !isPacked(shape.dtype))
    throw Error(ErrorCode::Unsupported, "expected quantized weights of i8, u8, i4 or u4, got " +
                                            std::string(nameOf(shape.dtype)));
  if (shape.k < 0 || shape.n < 0 || shape.block < 1 || (shape.scales() > 1 && shape.block % 8))
    throw Error(ErrorCode::Unsupported,
                "expected blocks of a multiple of 8, or of a whole row, got " +
                    std::to_string(shape.block) + " of [" + std::to_string(shape.n) + ", " +
                    std::to_string(shape.k) + "]");
  const auto* from = static_cast<const uint8_t*>(src);
  pool.run(shape.panels(), [&](int64_t panel, int) {
    char* to = static_cast<char*>(dst) + panel * shape.panelBytes();
    if (shape.paddedK() != shape.k || shape.n - panel * kPanelColumns < kPanelColumns)
      std::memset(to, shape.bits() == 8 ? 0x80 : 0x88, size_t(shape.panelBytes()));
    if (shape.bits() == 8)
      packBytes(shape, from, panel * kPanelColumns, reinterpret_cast<uint8_t*>(to));
    else
      packHalves(shape, from, panel * kPanelColumns, reinterpret_cast<uint32_t*>(to));
  });
}

}  // namespace lathe::cpu
