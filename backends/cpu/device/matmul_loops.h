// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain loops for products that no vector kernel is worth: tiny ones, f64 and integers.
#include "backends/cpu/device/matmul.h"

namespace lathe::cpu {

/// Rows [row0, row1) x columns [col0, col1) of one batch item, whose operands start at a, b and c.
void matmulLoops(const MatmulArgs& args, const void* a, const void* b, void* c, int64_t row0,
                 int64_t row1, int64_t col0, int64_t col1);

/// Copies a strided rows x cols block of F32, BF16 or F16 into a dense f32 one.
void widenBlock(DType dtype, const void* from, int64_t rowStride, int64_t colStride, int64_t rows,
                int64_t cols, float* to);
/// Rounds a dense f32 block into rows `rowStride` elements apart of F32, BF16 or F16.
void narrowBlock(const float* from, int64_t rows, int64_t cols, DType dtype, void* to,
                 int64_t rowStride);

}  // namespace lathe::cpu
