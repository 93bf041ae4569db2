// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of more than a few f32 rows on AVX-512, on packed panels and on A as they lie: a group
// of rows keeps its sums in registers for hundreds of elements of K. Every element is a sum over K
// from its first to its last, whatever the number of rows.
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

/// Rows of one call of f32PanelProduct at most.
inline constexpr int64_t kF32Rows = 256;

/// sums[rows][kPanelColumns] = A[rows][k] x the first `columns` columns of a packed f32 panel; what
/// lies behind them in the sums is undefined. `next`: the panel that will be multiplied next, or
/// null. Needs AVX-512.
void f32PanelProduct(const float* panel, int64_t k, int64_t columns, const float* a, int64_t lda,
                     int64_t rows, float* sums, const float* next);

size_t f32GemmScratchBytes(int threads);
/// C = epilogue(A x W), rows of A `lda` floats apart.
void f32Gemm(const PackedShape& shape, KernelIsa isa, int64_t m, const float* a, int64_t lda,
             const void* weights, const Epilogue& epilogue, ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
