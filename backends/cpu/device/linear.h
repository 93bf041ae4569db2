// SPDX-License-Identifier: Apache-2.0
#pragma once
// C[m, n] = activation(A[m, k] x W[k, n] + bias) + residual with weights packed once for every m.
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/packed_weights.h"
#include "backends/cpu/device/panel_kernels.h"
#include "lathe/runtime/enums.h"

namespace lathe::cpu {

/// What is fixed about a linear layer before the number of rows is known.
struct LinearSpec {
  PackedShape weights;          ///< its dtype is also A's
  DType outDType = DType::F32;  ///< F32, or the weights' dtype
  bool hasBias = false;
  DType biasDType = DType::F32;  ///< F32 or BF16
  Activation activation = Activation::none;
  int64_t lda = 0;  ///< elements between rows of A, >= k; 0 means k
  int64_t ldc = 0;  ///< elements between rows of C, >= n; 0 means n
  /// C is [m, n / 2] (gated.h), where gatesInside says so. Then there is neither bias nor residual
  /// nor another activation.
  std::optional<Activation> gate = {};
};

/// Operands of one call; nothing is owned. `residual` has C's dtype and may be C itself.
struct LinearArgs {
  int64_t m = 0;
  const void* a = nullptr;
  const void* weights = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  int64_t ldr = 0;  ///< elements between rows of the residual; 0 means n
};

/// Creates the oneDNN primitives that any m may use, so that none is created in steady state, and
/// returns the scratch bytes that `linear` needs for every m on a pool of `threads`.
/// Throws Error(Unsupported) for dtypes other than f32 and bf16.
size_t prepareLinear(const LinearSpec& spec, int threads, KernelIsa isa = KernelIsa::current());

/// Whether `linear` takes such a spec with its `gate` for `m` rows.
bool gatesInside(const LinearSpec& spec, int64_t m, KernelIsa isa = KernelIsa::current());

/// Runs the layer. Products are summed in f32; bias, activation and residual follow in f32 before
/// the one rounding to the output's dtype. m = 0 does nothing; k = 0 leaves the products 0. Throws
/// Error(InvalidArgument) if `scratch` is smaller than prepareLinear said.
void linear(const LinearSpec& spec, const LinearArgs& args, ThreadPool& pool, Scratch scratch,
            KernelIsa isa = KernelIsa::current());

/// One line per oneDNN primitive made so far by `linear` and `matmul`.
struct PrimitiveInfo {
  std::string shape;  ///< "bf16 256x896x1152 packed"
  std::string impl;   ///< oneDNN's implementation name, "brg:avx512_core_amx"
  bool slow = false;  ///< a reference or generic jit implementation, for the compile report
};
std::vector<PrimitiveInfo> primitiveReport();

}  // namespace lathe::cpu
