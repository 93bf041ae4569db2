// SPDX-License-Identifier: Apache-2.0
#pragma once
// bf16 GEMM on AMX tiles, reading packed weights; for any number of rows.
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {

/// C[m, n] = A[m, k] x W through `epilogue`; A is bf16 with `lda` elements between rows.
struct AmxGemm {
  PackedShape shape;
  int64_t m = 0;
  const uint16_t* a = nullptr;
  int64_t lda = 0;
  const void* weights = nullptr;
  Epilogue epilogue;
};

/// Up to so many rows are one row of tiles, which waits for the weights.
inline constexpr int64_t kAmxFewRows = 16;

/// Scratch bytes for any m.
size_t amxGemmScratchBytes(const PackedShape& shape, int threads);
/// Needs the Amx tier; the caller has checked it.
void amxGemm(const AmxGemm& gemm, ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
