// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention_pack.h"

#include <cstring>

namespace lathe::cpu {
namespace {

const char* at(const void* base, int64_t index, DType dtype) {
  return static_cast<const char*>(base) + index * int64_t(sizeOf(dtype));
}

float loadFloat(const void* base, int64_t index, DType dtype) {
  return dtype == DType::F32 ? static_cast<const float*>(base)[index]
                             : bf16ToFloat(static_cast<const uint16_t*>(base)[index]);
}

}  // namespace

AttentionPack::AttentionPack(const AttentionArgs& args, const AttentionKernels& kernels)
    : dtype(args.dtype),
      bf16(kernels.bf16Operands),
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
  float* to = static_cast<float*>(tile) + row * innerDim;
  for (int64_t d = 0; d < headDim; ++d) to[d] = loadFloat(from, d, dtype);
}

void AttentionPack::keys(const void* from, int64_t stride, int64_t count, void* tile) const {
  if (count < kTileKeys || innerDim > headDim) std::memset(tile, 0, keyBytes());
  if (!bf16) {
    float* to = static_cast<float*>(tile);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t d = 0; d < headDim; ++d)
        to[d * kTileKeys + j] = loadFloat(from, j * stride + d, dtype);
    return;
  }
  uint32_t* to = static_cast<uint32_t*>(tile);
  for (int64_t j = 0; j < count; ++j) {
    const char* key = at(from, j * stride, dtype);
    for (int64_t pair = 0; pair < headDim / 2; ++pair)
      std::memcpy(to + pair * kTileKeys + j, key + pair * 4, 4);
    if (headDim % 2 != 0) {
      uint16_t last;
      std::memcpy(&last, key + (headDim - 1) * 2, 2);
      to[headDim / 2 * kTileKeys + j] = last;
    }
  }
}

void AttentionPack::values(const void* from, int64_t stride, int64_t count, void* tile) const {
  if (count < kTileKeys || valueColumns > valueDim) std::memset(tile, 0, valueBytes());
  if (!bf16) {
    float* to = static_cast<float*>(tile);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t d = 0; d < valueDim; ++d)
        to[j * valueColumns + d] = loadFloat(from, j * stride + d, dtype);
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
