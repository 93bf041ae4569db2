// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/gated.h"

#include <algorithm>
#include <cstring>

namespace lathe::cpu {
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

void storeGated(const float* gates, const float* sums, int64_t rows, int64_t row0, int64_t col0,
                const Epilogue& e, const PanelKernels& kernels) {
  constexpr int64_t kRows = 8;
  const bool bf16 = e.outDType == DType::BF16;
  const size_t size = sizeOf(e.outDType);
  alignas(64) char gate[kRows * kPanelColumns * 4], up[sizeof(gate)], gated[sizeof(gate)];
  Epilogue rounded;
  rounded.outDType = e.outDType;
  rounded.ldc = kPanelColumns;
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t some = std::min(kRows, rows - row), at = row * kPanelColumns;
    rounded.c = gate;
    kernels.store(gates + at, kPanelColumns, some, kPanelColumns, 0, 0, rounded);
    rounded.c = up;
    kernels.store(sums + at, kPanelColumns, some, kPanelColumns, 0, 0, rounded);
    kernels.gate(gate, up, some * kPanelColumns, bf16, *e.gate, gated);
    for (int64_t r = 0; r < some; ++r)
      std::memcpy(static_cast<char*>(e.c) + size_t((row0 + row + r) * e.ldc + col0) * size,
                  gated + size_t(r * kPanelColumns) * size, kPanelColumns * size);
  }
}

}  // namespace lathe::cpu
