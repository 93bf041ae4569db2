// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of any number of rows with packed weights on the panel micro-kernels: the decode path
// of every tier, and the whole path where oneDNN has none.
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

/// Rows of A in the form that the panel kernels read: whole K blocks, zero-padded.
struct PanelRows {
  const void* a = nullptr;
  int64_t stride = 0;       ///< elements of the kernels' A dtype between rows
  int64_t blockStride = 0;  ///< and between K blocks of a row
};
/// Bytes that `preparePanelRows` needs for `rows`.
size_t panelRowsBytes(const PackedShape& shape, int64_t rows);
/// Copies A into `buffer`, widened to f32 where the kernels take bf16 so.
void copyPanelRows(const PackedShape& shape, const PanelKernels& kernels, const void* a,
                   int64_t lda, int64_t rows, void* buffer);
/// Refers to A in place where it can, else copies it into `buffer`.
PanelRows preparePanelRows(const PackedShape& shape, const PanelKernels& kernels, const void* a,
                           int64_t lda, int64_t rows, void* buffer);

/// Rows [row0, row0 + rows) x panels [panel0, panel1) of C on the calling thread; `x` starts at
/// row0. One group of rows walks several panels at once, which is how one thread gets most
/// bandwidth; more rows share each block of a panel.
void runPanels(const PackedShape& shape, const PanelKernels& kernels, const PanelRows& x,
               int64_t row0, int64_t rows, const void* weights, int64_t panel0, int64_t panel1,
               const Epilogue& epilogue);

/// C[m, n] for any m on the whole pool.
void panelGemm(const PackedShape& shape, KernelIsa isa, int64_t m, const void* a, int64_t lda,
               const void* weights, const Epilogue& epilogue, ThreadPool& pool, Scratch scratch);
size_t panelGemmScratchBytes(const PackedShape& shape);

}  // namespace lathe::cpu
