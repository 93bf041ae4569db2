// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of bf16 rows and weights in few bits on AMX tiles. Whole numbers of 8 and of 4 bits are
// bf16 numbers: they are unpacked in a cache, their products are exact, and the sums are scaled in
// f32. Where many rows meet blocks of K with scales of their own, weights are rounded to bf16.
//
// Rows that are rounded to 8 bits (byte_rows.h) meet weights in bytes.
#include <functional>

#include "backends/cpu/device/quantized_kernels.h"
#include "backends/cpu/device/quantized_weights.h"

namespace lathe::cpu {

/// C[m, n] = A[m, k] x ((Q - zero) scale) through `epilogue`; A is dense bf16.
struct AmxQuantizedGemm {
  QuantizedShape shape;
  int64_t m = 0;
  const uint16_t* a = nullptr;
  bool hasZero = false;
  Epilogue epilogue;
  /// A panel's operands; `tail` holds 64 scales and as many zero points of the last panel, where
  /// memory ends before them.
  std::function<QuantizedPanel(int64_t panel, float* tail)> panel;
};

/// Blocks that share a scale are whole steps of the tiles.
bool amxQuantizedTakes(const QuantizedShape& shape);
/// Scratch bytes for any m.
size_t amxQuantizedScratchBytes(const QuantizedShape& shape, int threads);
/// Needs the Amx tier and a shape that amxQuantizedTakes; the caller has checked both.
void amxQuantizedGemm(const AmxQuantizedGemm& gemm, ThreadPool& pool, Scratch scratch);

/// Up to kAmxFewRows that are rounded to 8 bits (amx_few_bytes.cpp). Weights in bytes lie as the
/// tiles take them. Blocks that share a scale are whole steps of the tiles.
bool amxFewBytesTake(const QuantizedShape& shape);
size_t amxFewBytesScratchBytes(const QuantizedShape& shape, int threads);
void amxFewBytesGemm(const AmxQuantizedGemm& gemm, ThreadPool& pool, Scratch scratch);

/// Many rows in bytes (amx_bytes.cpp), more than kAmxFewRows of them: the same for blocks of any
/// length. Weights of blocks with scales of their own are rounded to the 127th part of the largest
/// number that scales and zero points let their column hold.
bool amxBytesTake(const QuantizedShape& shape);
size_t amxBytesScratchBytes(const QuantizedShape& shape, int threads);
void amxBytesGemm(const AmxQuantizedGemm& gemm, ThreadPool& pool, Scratch scratch);

}  // namespace lathe::cpu
