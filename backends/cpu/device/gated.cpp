// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/gated.h"

#include <algorithm>

#include "backends/cpu/device/amx_gemm.h"
#include "backends/cpu/device/amx_quantized.h"
#include "backends/cpu/device/panel_kernels.h"

namespace lathe::cpu {
namespace {

// Both columns of a pair lie in panels at the same place, which the tiles multiply in turns.
bool inPairs(int64_t n, int64_t m, KernelIsa isa) {
  return isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles && m > kAmxFewRows &&
         n % (2 * kPanelColumns) == 0;
}

}  // namespace

bool gatesInside(const LinearSpec& spec, int64_t m, KernelIsa isa) {
  return spec.weights.dtype == DType::BF16 && spec.outDType == DType::BF16 && !spec.hasBias &&
         spec.weights.k > 0 && inPairs(spec.weights.n, m, isa);
}

bool gatesInside(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa) {
  const bool takes = spec.quantizesX ? amxBytesTake(spec.weights) : amxQuantizedTakes(spec.weights);
  return spec.dtype == DType::BF16 && spec.outDType.value_or(spec.dtype) == DType::BF16 && takes &&
         inPairs(spec.weights.n, m, isa);
}

void gateProducts(const void* products, int64_t m, int64_t n, DType dtype, Activation activation,
                  void* c, ThreadPool& pool, KernelIsa isa) {
  const bool bf16 = dtype == DType::BF16;
  const int64_t size = bf16 ? 2 : 4, half = n / 2;
  // A few thousand elements repay a second thread; few rows are cut into pieces.
  constexpr int64_t kPiece = 2048;
  const int64_t pieces = ceilDiv(half, kPiece);
  const auto gate = panelKernels(isa).gate;
  pool.parallelFor(0, m * pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / pieces, column = i % pieces * kPiece;
      const char* from = static_cast<const char*>(products) + (row * n + column) * size;
      gate(from, from + half * size, std::min(kPiece, half - column), bf16, activation,
           static_cast<char*>(c) + (row * half + column) * size);
    }
  });
}

}  // namespace lathe::cpu
