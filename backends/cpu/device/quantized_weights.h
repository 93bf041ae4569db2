// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of packed weights in few bits, for every tier.
//
// Weights B[k, n] are stored in panels of 64 columns as unsigned integers, signed ones plus half of
// their range (`center`), in words of 32 bits that hold neighbours along K. 8 bits [n/64][k/4][64]:
// element k + i in byte i. 4 bits [n/64][k/8][64]: element k + i in the low half of byte i, element
// k + 4 + i in its high half. So one mask makes bytes of half a word, as dot products take them. K
// is padded to a multiple of 8 and N to whole panels, with what stands for 0.
#include <cstddef>
#include <cstdint>

#include "backends/cpu/device/packed_weights.h"

namespace lathe::cpu {

/// Shape of quantized weights: K inputs, N outputs, I8, U8, I4 or U4. `block` neighbours along K
/// share a scale: a multiple of 8, or at least K.
struct QuantizedShape {
  DType dtype = DType::I8;
  int64_t k = 0;
  int64_t n = 0;
  int64_t block = 1;

  int bits() const { return isPacked(dtype) ? 4 : 8; }
  /// The middle of the stored range, which kernels take off.
  int center() const { return bits() == 8 ? 128 : 8; }
  bool isUnsigned() const { return dtype == DType::U8 || dtype == DType::U4; }
  int64_t paddedK() const { return roundUp(k, 8); }
  /// Blocks with scales of their own.
  int64_t scales() const { return ceilDiv(k, block); }
  int64_t panels() const { return ceilDiv(n, kPanelColumns); }
  int64_t panelBytes() const { return paddedK() * kPanelColumns * bits() / 8; }
  /// Bytes of the packed weights; they want 64-byte alignment.
  size_t bytes() const { return size_t(panels()) * size_t(panelBytes()); }
};

/// Packs a row-major [n, k] source of the shape's dtype, two elements a byte where it has 4 bits.
/// Every tier reads the same bytes. Throws Error (Unsupported) for other dtypes and blocks.
void packQuantized(const QuantizedShape& shape, const void* src, void* dst, ThreadPool& pool,
                   KernelIsa isa = KernelIsa::current());

}  // namespace lathe::cpu
