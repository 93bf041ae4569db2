// SPDX-License-Identifier: Apache-2.0
#pragma once
// C[m, n] = activation(A[m, k] x ((Q - zero) scale)[k, n] + bias) + residual, the weights in few
// bits and packed once for every m.
#include <cstdint>

#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/quantized_weights.h"

namespace lathe::cpu {

/// What is fixed about the layer before the number of rows is known.
struct QuantizedLinearSpec {
  QuantizedShape weights;
  DType dtype = DType::F32;  ///< of A and bias: F32 or BF16
  /// Of scales and zero points: F32, or BF16 where blocks have scales of their own. One scale a row
  /// lies as `[n]`; more are packed as weights of `[n, scales]` are (packed_weights.h).
  DType scaleDType = DType::F32;
  bool hasZero = false;
  Activation activation = Activation::none;
  std::optional<Activation> gate = {};  ///< as LinearSpec's
  std::optional<DType> outDType = {};   ///< of C and residual: F32 or, without it, that of A
  bool quantizesX = false;              ///< rows of A are rounded to 8 bits (byte_rows.h)
};

/// Operands of one call; nothing is owned. A, C and the residual are dense.
struct QuantizedLinearArgs {
  int64_t m = 0;
  const void* a = nullptr;
  const void* weights = nullptr;
  const void* scale = nullptr;
  const void* zero = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
};

/// Why the kernels do not take such a layer; empty if they do.
std::string whyNotQuantized(const QuantizedLinearSpec& spec);

/// Creates the oneDNN primitives that any m may use, so that none is created in steady state, and
/// returns the scratch bytes that `quantizedLinear` needs for every m on a pool of `threads`.
/// Throws Error(Unsupported) with what whyNotQuantized says.
size_t prepareQuantizedLinear(const QuantizedLinearSpec& spec, int threads,
                              KernelIsa isa = KernelIsa::current());

/// To what the weights that `m` rows meet were rounded: on AMX tiles, more than 16 rows of bf16
/// meet rounded ones where blocks have scales of their own. What is rounded is (q - zero) scale in
/// f32, to bf16, or for rows in 8 bits to the 127th part of the largest number that the scales and
/// zero points of its column let it be.
enum class WeightRounding : uint8_t { none, bf16, byte };
WeightRounding weightRounding(const QuantizedLinearSpec& spec, int64_t m,
                              KernelIsa isa = KernelIsa::current());

/// Whether `quantizedLinear` takes such a spec with its `gate` for `m` rows.
bool gatesInside(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa = KernelIsa::current());

/// Runs the layer: products with the weights in f32, not rounded before (but for weightRounding),
/// are summed in f32; bias, activation and residual follow in f32 before the one rounding. Throws
/// Error(InvalidArgument) if `scratch` is smaller than prepareQuantizedLinear said.
void quantizedLinear(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                     ThreadPool& pool, Scratch scratch, KernelIsa isa = KernelIsa::current());

}  // namespace lathe::cpu
