// SPDX-License-Identifier: Apache-2.0
#pragma once
// Micro-kernels on packed weight panels: a few rows of A times one panel of 64 columns.
#include <cstdint>
#include <optional>

#include "backends/cpu/device/byte_rows.h"
#include "backends/cpu/device/cpu_features.h"
#include "lathe/runtime/dtype.h"
#include "lathe/runtime/enums.h"

namespace lathe::cpu {

/// Rows of A that one call may handle at most.
inline constexpr int kPanelRows = 6;

/// Instead of a distance to fetch ahead: the panel is in the cache, nothing is fetched.
inline constexpr int64_t kInCache = -1;

/// acc[r][0..63] += A[r][0..blocks * blockK) x panel blocks, for the kernel's number of rows.
/// `a` is f32, or bf16 for the dot-product kernels; `aStride` in elements; both A and the panel
/// are readable over whole blocks. `prefetch` bytes ahead of the panel are fetched; 0: only what
/// the processor does not foresee.
using PanelFn = void (*)(const void* a, int64_t aStride, const void* panel, int64_t blocks,
                         int64_t prefetch, float* acc);

/// What happens to a finished piece of C: bias, activation, residual, one rounding.
struct Epilogue {
  const void* bias = nullptr;
  DType biasDType = DType::F32;
  Activation activation = Activation::none;
  const void* residual = nullptr;
  int64_t ldr = 0;
  void* c = nullptr;
  int64_t ldc = 0;
  DType outDType = DType::F32;
  /// C has half of the columns: activation(c) * c' of a column and the one half of them further on
  /// (gated.h), both rounded before; no bias, activation or residual.
  std::optional<Activation> gate;
};

struct PanelKernels {
  PanelFn f32[kPanelRows];
  PanelFn bf16[kPanelRows];
  /// The longest group of rows that has a kernel.
  int64_t rows;
  /// Up to so many rows these kernels are faster than products that first widen or order operands.
  int64_t fewRows;
  /// The bf16 kernels take A in bf16 (dot products); otherwise in f32.
  bool bf16Dot;
  /// Stores acc[rows][cols] (`accStride` floats apart) at C[row0.., col0..] through the epilogue.
  void (*store)(const float* acc, int64_t accStride, int64_t rows, int64_t cols, int64_t row0,
                int64_t col0, const Epilogue& epilogue);
  /// to[0..count) = activation(gate[j]) * up[j] of bf16 or f32, rounded once.
  void (*gate)(const void* gate, const void* up, int64_t count, bool bf16, Activation activation,
               void* to);
  /// The largest magnitude of a row; NaN if it holds a NaN or an infinity.
  float (*largest)(const float* x, int64_t count);
  /// Rounds elements to multiples of scale.size.
  void (*toMultiples)(float* x, int64_t count, ByteScale scale);
};

/// The kernels of a tier; `isa.bf16` picks the dot-product form.
const PanelKernels& panelKernels(KernelIsa isa);

// One per translation unit of a tier.
extern const PanelKernels kPanelKernelsAvx2;
extern const PanelKernels kPanelKernelsAvx512;
extern const PanelKernels kPanelKernelsAvx512Bf16;
extern const PanelKernels kPanelKernelsAmx;  // the same with pairs of bf16 tile by tile

}  // namespace lathe::cpu
