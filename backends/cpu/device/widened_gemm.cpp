// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/widened_gemm.h"

#include <algorithm>

#include "backends/cpu/device/f32_gemm.h"
#include "backends/cpu/device/tiled_gemm.h"

namespace lathe::cpu {
namespace {

// Rows of A that are widened at a time.
constexpr int64_t kRows = 2 * kF32Rows;

// A as f32 for all; each worker's sums and panel.
struct Sizes {
  explicit Sizes(const WidenedMatmul& p)
      : a(alignUp64(size_t(kRows * p.rowLength) * 4)),
        sums(size_t(kF32Rows * kPanelColumns) * 4),
        panel(size_t(PackedShape{DType::F32, p.k, p.n}.panelBytes())) {}
  size_t slice() const { return sums + panel; }
  size_t a, sums, panel;
};

}  // namespace

size_t widenedGemmScratchBytes(const WidenedMatmul& matmul, int threads, KernelIsa isa) {
  if (isa.tier == Isa::Avx2) return tiledGemmScratchBytes(matmul, threads);
  const Sizes sizes(matmul);
  return sizes.a + sizes.slice() * size_t(threads);
}

void widenedGemm(const WidenedMatmul& p, int64_t m, const Epilogue& epilogue, KernelIsa isa,
                 ThreadPool& pool, Scratch scratch) {
  if (isa.tier == Isa::Avx2) return tiledGemm(p, m, epilogue, isa, pool, scratch);
  const PanelKernels& kernels = panelKernels(isa);
  const Sizes sizes(p);
  char* base = static_cast<char*>(scratch.data);
  float* a = reinterpret_cast<float*>(base);
  for (int64_t row0 = 0; row0 < m; row0 += kRows) {
    const int64_t rows = std::min(kRows, m - row0);
    pool.parallelFor(0, rows, 1, [&](int64_t begin, int64_t end, int) {
      p.widenRows(row0 + begin, row0 + end, a + begin * p.rowLength);
    });
    pool.runDynamic(ceilDiv(p.n, kPanelColumns), [&](int64_t panel, int worker) {
      char* slice = base + sizes.a + size_t(worker) * sizes.slice();
      float* sums = reinterpret_cast<float*>(slice);
      float* wide = reinterpret_cast<float*>(slice + sizes.sums);
      p.widenPanel(panel, wide);
      const int64_t column = panel * kPanelColumns, columns = std::min(kPanelColumns, p.n - column);
      for (int64_t row = 0; row < rows; row += kF32Rows) {
        const int64_t count = std::min(kF32Rows, rows - row);
        f32PanelProduct(wide, p.k, columns, a + row * p.rowLength, p.rowLength, count, sums,
                        nullptr);
        kernels.store(sums, kPanelColumns, count, columns, row0 + row, column, epilogue);
      }
    });
  }
}

}  // namespace lathe::cpu
