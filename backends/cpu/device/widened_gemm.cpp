// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/widened_gemm.h"

#include <algorithm>
#include <array>

#include "backends/cpu/device/primitives.h"
#include "backends/cpu/device/tiled_gemm.h"

namespace lathe::cpu {
namespace {

// oneDNN takes m in multiples of this.
constexpr int64_t kWidenedStep = 8;
// Rows of the primitives.
constexpr std::array<int64_t, 6> kRowBuckets = {256, 128, 64, 32, 16, kWidenedStep};
// Rows of A that are widened at a time, and panels of weights: the latter stay in the L2 cache.
constexpr int64_t kRows = 512, kPanels = 4;

MatmulKey keyOf(const WidenedProduct& p, int64_t m, int64_t n) {
  MatmulKey key;
  key.m = m;
  key.k = p.k;
  key.n = n;
  key.aRow = p.rowLength;
  key.packedB = true;
  key.cRow = n;
  return key;
}

// A as f32 for all, and each worker's panels.
struct Sizes {
  size_t a = 0, scratchpad = 0, sums = 0, panels = 0;
  size_t slice() const { return scratchpad + sums + panels; }
};

Sizes sizesOf(const WidenedProduct& p) {
  Sizes s;
  s.a = alignUp64(size_t(kRows * p.rowLength) * 4);
  constexpr int64_t block = kPanels * kPanelColumns;
  for (int64_t n : {std::min(block, p.n), p.n % block}) {
    if (n == 0) continue;
    for (int64_t m : kRowBuckets)
      s.scratchpad = std::max(s.scratchpad, matmulPrimitive(keyOf(p, m, n))->scratchBytes());
  }
  s.scratchpad = alignUp64(s.scratchpad);
  s.sums = alignUp64(size_t(kRowBuckets[0] * block) * 4);
  s.panels = size_t(kPanels) * size_t(PackedShape{DType::F32, p.k, p.n}.panelBytes());
  return s;
}

}  // namespace

int64_t widenedRows(int64_t m, KernelIsa isa) {
  return isa.tier == Isa::Avx2 ? m : m / kWidenedStep * kWidenedStep;
}

size_t widenedGemmScratchBytes(const WidenedProduct& product, int threads, KernelIsa isa) {
  if (isa.tier == Isa::Avx2) return tiledGemmScratchBytes(product, threads);
  const Sizes sizes = sizesOf(product);
  return sizes.a + sizes.slice() * size_t(threads);
}

void widenedGemm(const WidenedProduct& p, int64_t m, const Epilogue& epilogue, KernelIsa isa,
                 ThreadPool& pool, Scratch scratch) {
  if (isa.tier == Isa::Avx2) return tiledGemm(p, m, epilogue, isa, pool, scratch);
  const PackedShape wide{DType::F32, p.k, p.n};
  const PanelKernels& kernels = panelKernels(isa);
  const Sizes sizes = sizesOf(p);
  char* base = static_cast<char*>(scratch.data);
  float* a = reinterpret_cast<float*>(base);
  for (int64_t row0 = 0; row0 < m; row0 += kRows) {
    const int64_t rows = std::min(kRows, m - row0);
    pool.parallelFor(0, rows, 1, [&](int64_t begin, int64_t end, int) {
      p.widenRows(row0 + begin, row0 + end, a + begin * p.rowLength);
    });
    pool.run(ceilDiv(wide.panels(), kPanels), [&](int64_t index, int worker) {
      char* slice = base + sizes.a + size_t(worker) * sizes.slice();
      float* sums = reinterpret_cast<float*>(slice + sizes.scratchpad);
      char* panels = slice + sizes.scratchpad + sizes.sums;
      const int64_t panel0 = index * kPanels;
      const int64_t panel1 = std::min(wide.panels(), panel0 + kPanels);
      for (int64_t panel = panel0; panel < panel1; ++panel)
        p.widenPanel(panel,
                     reinterpret_cast<float*>(panels + (panel - panel0) * wide.panelBytes()));
      const int64_t col0 = panel0 * kPanelColumns;
      const int64_t columns = std::min(p.n, panel1 * kPanelColumns) - col0;
      for (int64_t row = 0; row < rows;) {
        const int64_t bucket = *std::find_if(kRowBuckets.begin(), kRowBuckets.end(),
                                             [&](int64_t count) { return count <= rows - row; });
        matmulPrimitive(keyOf(p, bucket, columns))
            ->execute(a + row * p.rowLength, panels, sums, slice);
        kernels.store(sums, columns, bucket, columns, row0 + row, col0, epilogue);
        row += bucket;
      }
    });
  }
}

}  // namespace lathe::cpu
