// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/f32_gemm.h"

#include <algorithm>

#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

// Rows and vectors of 16 columns whose sums are in registers, and the elements of K for which they
// stay there: a piece of a panel and the rows of A that meet it lie in the L2 cache.
constexpr int64_t kGroupRows = 6, kGroupVectors = 4, kDepth = 512;
// Panels of a task at most, and tasks for each of several threads: what one has not begun another
// takes.
constexpr int64_t kTaskPanels = 8, kThreadTasks = 4;
// Fewer rows do not repay a thread of their own.
constexpr int64_t kLeastTaskRows = 24;

LATHE_ISA_BEGIN(LATHE_TARGET_AVX512)

// sums[rows][64] += a[rows][depth] x b[depth][64], of which `vectors` x 16 columns. `ahead` is
// fetched at `pace` bytes for each element of K.
template <int rows, int vectors>
void groupMatmul(const float* a, int64_t lda, const float* b, int64_t depth, float* sums,
                 const char* ahead, int64_t pace) {
  __m512 sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_loadu_ps(sums + r * 64 + v * 16);
  for (int64_t k = 0; k < depth; ++k, b += 64, ahead += pace) {
    _mm_prefetch(ahead, _MM_HINT_T1);
    __m512 w[vectors];
    for (int v = 0; v < vectors; ++v) w[v] = _mm512_loadu_ps(b + v * 16);
    for (int r = 0; r < rows; ++r) {
      const __m512 x = _mm512_set1_ps(a[r * lda + k]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_fmadd_ps(x, w[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(sums + r * 64 + v * 16, sum[r][v]);
}

LATHE_ISA_END

using GroupFn = void (*)(const float*, int64_t, const float*, int64_t, float*, const char*,
                         int64_t);
template <int vectors>
constexpr GroupFn kGroups[kGroupRows] = {groupMatmul<1, vectors>, groupMatmul<2, vectors>,
                                         groupMatmul<3, vectors>, groupMatmul<4, vectors>,
                                         groupMatmul<5, vectors>, groupMatmul<6, vectors>};
constexpr const GroupFn* kGroupsOf[kGroupVectors] = {kGroups<1>, kGroups<2>, kGroups<3>,
                                                     kGroups<4>};

}  // namespace

void f32PanelProduct(const float* panel, int64_t k, int64_t columns, const float* a, int64_t lda,
                     int64_t rows, float* sums, const float* next) {
  const GroupFn* products = kGroupsOf[ceilDiv(columns, 16) - 1];
  const int64_t groups = ceilDiv(rows, kGroupRows);
  std::fill(sums, sums + rows * kPanelColumns, 0.0f);
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, k - k0);
    const float* piece = panel + k0 * kPanelColumns;
    // The next panel's piece comes to the cache while all groups of rows are at work.
    const char* ahead = reinterpret_cast<const char*>(next ? next + k0 * kPanelColumns : piece);
    const int64_t pace = next ? ceilDiv(kPanelColumns * 4, groups) : 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = rows * group / groups, count = rows * (group + 1) / groups - first;
      products[count - 1](a + first * lda + k0, lda, piece, depth, sums + first * kPanelColumns,
                          ahead + group * pace * depth, pace);
    }
  }
}

size_t f32GemmScratchBytes(int threads) {
  return size_t(kF32Rows * kPanelColumns) * 4 * size_t(threads);
}

void f32Gemm(const PackedShape& shape, KernelIsa isa, int64_t m, const float* a, int64_t lda,
             const void* weights, const Epilogue& epilogue, ThreadPool& pool, Scratch scratch) {
  const PanelKernels& kernels = panelKernels(isa);
  const int64_t panels = shape.panels(), threads = pool.threads();
  const int64_t panelFloats = shape.panelBytes() / 4;
  // Tasks are columns; where there are too few, rows too.
  const int64_t wanted = threads == 1 ? 1 : threads * kThreadTasks;
  const int64_t taskPanels = std::clamp<int64_t>(panels / wanted, 1, kTaskPanels);
  const int64_t columnTasks = ceilDiv(panels, taskPanels);
  const int64_t rowTasks =
      std::max(ceilDiv(m, kF32Rows),
               std::min(ceilDiv(threads, columnTasks), std::max<int64_t>(1, m / kLeastTaskRows)));
  pool.runDynamic(columnTasks * rowTasks, [&](int64_t index, int worker) {
    float* sums = static_cast<float*>(scratch.data) + worker * kF32Rows * kPanelColumns;
    const int64_t row0 = m * (index % rowTasks) / rowTasks;
    const int64_t rows = m * (index % rowTasks + 1) / rowTasks - row0;
    const int64_t first = index / rowTasks * taskPanels;
    const int64_t end = std::min(panels, first + taskPanels);
    for (int64_t panel = first; panel < end; ++panel) {
      const float* from = static_cast<const float*>(weights) + panel * panelFloats;
      const int64_t column = panel * kPanelColumns;
      const int64_t columns = std::min(kPanelColumns, shape.n - column);
      f32PanelProduct(from, shape.k, columns, a + row0 * lda, lda, rows, sums,
                      panel + 1 < end ? from + panelFloats : nullptr);
      kernels.store(sums, kPanelColumns, rows, columns, row0, column, epilogue);
    }
  });
}

}  // namespace lathe::cpu
