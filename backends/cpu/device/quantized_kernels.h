// SPDX-License-Identifier: Apache-2.0
#pragma once
// Micro-kernels on panels of quantized weights: a few rows of A times one panel of 64 columns.
#include <cstdint>
#include <optional>

#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

/// One panel, and the scales and zero points of its 64 columns. A row of them is 64 f32 numbers, or
/// a half of 64 words that hold the bf16 numbers of two rows (packed_weights.h). Elements count
/// from the middle of their stored range (quantized_weights.h).
struct QuantizedPanel {
  const char* q = nullptr;
  const char* scale = nullptr;
  const char* zero = nullptr;  ///< null: none
  bool bf16 = false;           ///< scales and zero points
  PairPlaces places;           ///< of these, then
  int64_t depth = 0;           ///< K of the panel, a multiple of 8
  int64_t block = 0;           ///< K elements that share a scale, all of them or a multiple of 8
  int64_t chunk = 0;           ///< those that are summed before they are scaled: a part of a block
  float center = 0;            ///< what zero points lack to count from the middle, too
  int64_t prefetch = 0;        ///< bytes ahead that are fetched, 0: none
};

/// Rows of A for the kernels: f32, or for dot products of bytes in fixed point. Then every chunk of
/// a row is a record: a scale and three starting sums (of f32 and i32), then its elements times
/// 1 / scale as whole numbers of 24 bits, their upper bytes first, then the middle and the lower
/// ones, each of them signed. Of rows in 8 bits (byte_rows.h) one piece and the first sum are
/// enough (ByteRowKernels).
struct QuantizedRows {
  const char* x = nullptr;
  int64_t stride = 0;           ///< bytes between rows
  const float* sums = nullptr;  ///< of A's elements by chunk, where there are zero points
  int64_t sumStride = 0;
};
/// Bytes of the fixed-point record of a chunk.
constexpr int64_t fixedPointBytes(int64_t chunk, int pieces = 3) { return 16 + pieces * chunk; }

/// acc[r][0..63] += A[r] x (q - zero) scale over the chunks [chunk0, chunk1), for the kernel's
/// number of rows.
using QuantizedPanelFn = void (*)(const QuantizedPanel& panel, const QuantizedRows& rows,
                                  int64_t chunk0, int64_t chunk1, float* acc);
/// Elements [k0, k0 + depth) of a panel as a piece of f32 (tiled_gemm.h).
using WidenQuantizedFn = void (*)(const QuantizedPanel& panel, int64_t k0, int64_t depth,
                                  float* to);
/// The record of a chunk of `depth` elements, a multiple of 8. `center` is that of the weights.
/// False where fixed point is no match for f32: for a NaN or an infinity, for numbers so small that
/// a unit would be no normal number, and for elements that lose more than kMostLost beside much
/// larger ones, whose weights may be 0.
inline constexpr float kMostLost = 0x1p-17f;  // of the sum of those below a quarter of the largest
using FixedPointFn = bool (*)(const float* x, int64_t depth, int64_t chunk, int center, char* to);

/// The record of a chunk of a row in 8 bits; returns the sum of its whole numbers.
using ByteRecordFn = int32_t (*)(const float* x, int64_t depth, ByteScale scale, int center,
                                 char* to);

/// Elements [k0, k0 + depth) of a panel as whole numbers: 64 floats for each, as a panel of f32
/// weights has them (packed_weights.h).
using UnpackQuantizedFn = void (*)(const QuantizedPanel& panel, int64_t k0, int64_t depth,
                                   float* to);
/// acc[r][0..63] += (sums[r] - zero * sumsOfA[r]) scale with the scales of a chunk; the sums
/// become 0.
using ScaleSumsFn = void (*)(const QuantizedPanel& panel, int64_t chunk, int64_t rows,
                             const float* sumsOfA, float* sums, float* acc);

/// Rows of A that one call may handle, and most of those that share pieces of a panel.
inline constexpr int kQuantizedRows = 4;
inline constexpr int64_t kMostSharing = 24;
/// Rows for which a turn of a panel stays in the cache.
inline constexpr int64_t kMostFewRows = 24;

/// Products of whole numbers with rows in 8 bits.
struct ByteRowKernels {
  ByteRecordFn record = nullptr;
  int64_t elementBytes = 1;  ///< of a record: words of 16 bits where bytes times bytes do not fit
  QuantizedPanelFn panel[kQuantizedRows] = {};
};

struct QuantizedKernels {
  QuantizedPanelFn int8[kQuantizedRows], int4[kQuantizedRows];
  int64_t chunk = 0;  ///< of K, where it is a part of a block; else a chunk is a block
  FixedPointFn toFixed8 = nullptr,
               toFixed4 = nullptr;  ///< null: the rows of `int8`, `int4` are f32
  int64_t fixedRows = 0;            ///< more rows than these are faster as f32
  WidenQuantizedFn widen8 = nullptr, widen4 = nullptr;
  /// From `least` to `most` rows share each piece of a panel, which is unpacked once for all.
  int64_t leastSharing = 0, mostSharing = -1;
  UnpackQuantizedFn unpack8 = nullptr, unpack4 = nullptr;
  ScaleSumsFn scaleSums = nullptr;
  /// For rows in 8 bits; without them these are multiplied as the multiples that they stand for.
  std::optional<ByteRowKernels> byteRows8 = {}, byteRows4 = {};

  const std::optional<ByteRowKernels>& byteRows(int bits) const {
    return bits == 8 ? byteRows8 : byteRows4;
  }
};

const QuantizedKernels& quantizedKernels(KernelIsa isa);
/// Those that take every f32 number.
const QuantizedKernels& floatQuantizedKernels(KernelIsa isa);

// One or two per translation unit of a tier.
extern const QuantizedKernels kQuantizedKernelsAvx2;
extern const QuantizedKernels kQuantizedKernelsAvx2Fixed;
extern const QuantizedKernels kQuantizedKernelsAvx512;
extern const QuantizedKernels kQuantizedKernelsVnni;

}  // namespace lathe::cpu
