// SPDX-License-Identifier: Apache-2.0
#pragma once
// C[m, n / 2] = activation(P[:, 0..n / 2)) * P[:, n / 2..n), where P = A x W are the products of a
// layer. Their rounding is that of a layer of its own, so that it does not matter where the gate is
// applied: beside the products of many rows, or here behind all others.
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

/// `products` is [m, n] and `c` [m, n / 2], dense, of F32 or BF16; n is even.
void gateProducts(const void* products, int64_t m, int64_t n, DType dtype, Activation activation,
                  void* c, ThreadPool& pool, KernelIsa isa = KernelIsa::current());

/// Whether a layer's panels pair up: of each pair of columns both lie at the same place of theirs.
inline bool gatesByPanels(int64_t n) { return n % (2 * kPanelColumns) == 0; }
/// The sums of a panel of gates and of what they gate, [rows][kPanelColumns] each, as
/// C[row0.., col0..] of `e.outDType`.
void storeGated(const float* gates, const float* sums, int64_t rows, int64_t row0, int64_t col0,
                const Epilogue& e, const PanelKernels& kernels);

}  // namespace lathe::cpu
