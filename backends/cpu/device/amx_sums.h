// SPDX-License-Identifier: Apache-2.0
#pragma once
// The way out of blocks of sums [rows][32] that tiles have made: what they stand for, a gate, and
// what follows a product. Needs AVX512_BF16.
#include <cstdint>

#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

/// Columns of a block.
inline constexpr int64_t kSumColumns = 32;

/// What sums of whole numbers stand for: (sum - (center + zero[column]) aSums[row]) scale[column]
/// sizes[row], in this order: the product of a scale and a size alone may overflow.
struct SumScales {
  const float* scale = nullptr;  ///< null: sums stand for themselves
  const float* zero = nullptr;   ///< null: none
  const float* aSums = nullptr;  ///< of A's rows, where there are zero points or sizes
  const float* sizes = nullptr;  ///< of A's rows in bytes, whose sums are i32; null: sums are f32
  float center = 0;              ///< that bytes of weights count from

  /// For the rows behind the first `rows`.
  SumScales behind(int64_t rows) const {
    return {scale, zero, aSums ? aSums + rows : nullptr, sizes ? sizes + rows : nullptr, center};
  }
};

/// Sums become what they stand for.
void scaleSums(float* sums, int64_t rows, const SumScales& scales);
/// PanelKernels::store of what sums stand for, of all columns.
void storeSums(const float* sums, int64_t rows, int64_t row0, int64_t col0, const SumScales& scales,
               const Epilogue& epilogue);
/// c[rows][kSumColumns] = activation(gates) * what sums stand for, both rounded to bf16 before.
void gateSums(const float* gates, const float* sums, int64_t rows, const SumScales& scales,
              Activation activation, uint16_t* c, int64_t ldc);

}  // namespace lathe::cpu
