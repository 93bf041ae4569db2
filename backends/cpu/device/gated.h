// SPDX-License-Identifier: Apache-2.0
#pragma once
// C[m, n / 2] = activation(P[:, 0..n / 2)) * P[:, n / 2..n), where P = A x W are the products of a
// layer. Their rounding is that of a layer of its own, so that it does not matter where the gate is
// applied: beside products of many rows on AMX tiles, or here behind all others.
#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/quantized_linear.h"

namespace lathe::cpu {

/// Whether `linear` takes such a spec with its `gate` for `m` rows.
bool gatesInside(const LinearSpec& spec, int64_t m, KernelIsa isa = KernelIsa::current());
bool gatesInside(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa = KernelIsa::current());

/// `products` is [m, n] and `c` [m, n / 2], dense, of F32 or BF16; n is even.
void gateProducts(const void* products, int64_t m, int64_t n, DType dtype, Activation activation,
                  void* c, ThreadPool& pool, KernelIsa isa = KernelIsa::current());

}  // namespace lathe::cpu
