// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "runtime/error.h"

namespace lathe::cpu {
namespace {

// Element `index` of a source that may lie at any address of a mapped file.
template <class Src, class Dst>
Dst convert(const char* src, int64_t index) {
  Src value;
  std::memcpy(&value, src + index * int64_t(sizeof(Src)), sizeof(Src));
  if constexpr (std::is_same_v<Src, Dst>)
    return value;
  else if constexpr (std::is_same_v<Src, float>)
    return floatToBf16(value);
  else
    return bf16ToFloat(value);
}

// One panel: 64 columns from `n0`, all of K. `pair` neighbours along K share a slot.
template <class Src, class Dst>
void packPanel(const PackedShape& shape, const char* src, bool srcIsOutIn, int64_t n0, Dst* dst) {
  constexpr int64_t pair = sizeof(Dst) == 2 ? 2 : 1;
  const int64_t cols = std::min(kPanelColumns, shape.n - n0), blockK = 16 * pair;
  for (int64_t k0 = 0; k0 < shape.k; k0 += blockK, dst += blockK * kPanelColumns) {
    int64_t depth = std::min(blockK, shape.k - k0);
    if (cols < kPanelColumns || depth < blockK) std::fill_n(dst, blockK * kPanelColumns, Dst(0));
    if (srcIsOutIn) {
      for (int64_t n = 0; n < cols; ++n)
        for (int64_t k = 0; k < depth; ++k)
          dst[(k / pair * kPanelColumns + n) * pair + k % pair] =
              convert<Src, Dst>(src, (n0 + n) * shape.k + k0 + k);
    } else {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t n = 0; n < cols; ++n)
          dst[(k / pair * kPanelColumns + n) * pair + k % pair] =
              convert<Src, Dst>(src, (k0 + k) * shape.n + n0 + n);
    }
  }
}

}  // namespace

void packWeights(const PackedShape& shape, const void* src, DType srcDType, bool srcIsOutIn,
                 void* dst, ThreadPool& pool) {
  for (DType dtype : {shape.dtype, srcDType})
    if (dtype != DType::F32 && dtype != DType::BF16)
      throw Error(ErrorCode::Unsupported, "expected weights of f32 or bf16 to pack, got " +
                                              std::string(nameOf(dtype)) + "; cast them first");
  if (shape.k < 0 || shape.n < 0)
    throw Error(ErrorCode::InvalidArgument, "expected weight dims of at least 0, got [" +
                                                std::to_string(shape.k) + ", " +
                                                std::to_string(shape.n) + "]");
  const char* from = static_cast<const char*>(src);
  pool.run(shape.panels(), [&](int64_t panel, int) {
    char* to = static_cast<char*>(dst) + panel * shape.panelBytes();
    int64_t n0 = panel * kPanelColumns;
    if (shape.dtype == DType::F32) {
      float* out = reinterpret_cast<float*>(to);
      if (srcDType == DType::F32)
        packPanel<float, float>(shape, from, srcIsOutIn, n0, out);
      else
        packPanel<uint16_t, float>(shape, from, srcIsOutIn, n0, out);
    } else {
      uint16_t* out = reinterpret_cast<uint16_t*>(to);
      if (srcDType == DType::F32)
        packPanel<float, uint16_t>(shape, from, srcIsOutIn, n0, out);
      else
        packPanel<uint16_t, uint16_t>(shape, from, srcIsOutIn, n0, out);
    }
  });
}

}  // namespace lathe::cpu
