// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/matmul.h"

#include <algorithm>

#include "backends/reference/strided.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::reference {
namespace {

// A panel of b is read once for all rows of a: as doubles, in the near cache.
constexpr int64_t kDepth = 128, kWidth = 32, kLanes = 8;

// y[R, width] += a[R, depth] panel[depth, kWidth], in groups of columns that fit registers.
template <int R>
[[gnu::always_inline]] inline void addRows(const double* a, int64_t aRow, const double* panel,
                                           int64_t depth, double* y, int64_t yRow, int64_t width) {
  for (int64_t left = 0; left < width; left += kLanes) {
    const int64_t lanes = std::min(kLanes, width - left);
    double sums[R][kLanes] = {};
    for (int r = 0; r < R; ++r) std::copy_n(y + r * yRow + left, lanes, sums[r]);
    for (int64_t p = 0; p < depth; ++p) {
      const double* right = panel + p * kWidth + left;
      for (int r = 0; r < R; ++r) {
        const double factor = a[r * aRow + p];
        for (int64_t j = 0; j < kLanes; ++j) sums[r][j] += factor * right[j];
      }
    }
    for (int r = 0; r < R; ++r) std::copy_n(sums[r], lanes, y + r * yRow + left);
  }
}

struct Rows {
  const double* a;
  int64_t m, aRow;
  double* y;
  int64_t yRow;
};

[[gnu::always_inline]] inline void addPanelInline(Rows rows, const double* panel, int64_t depth,
                                                  int64_t width) {
  int64_t i = 0;
  for (; i + 4 <= rows.m; i += 4)
    addRows<4>(rows.a + i * rows.aRow, rows.aRow, panel, depth, rows.y + i * rows.yRow, rows.yRow,
               width);
  for (; i + 2 <= rows.m; i += 2)
    addRows<2>(rows.a + i * rows.aRow, rows.aRow, panel, depth, rows.y + i * rows.yRow, rows.yRow,
               width);
  for (; i < rows.m; ++i)
    addRows<1>(rows.a + i * rows.aRow, rows.aRow, panel, depth, rows.y + i * rows.yRow, rows.yRow,
               width);
}

using AddPanel = void (*)(Rows, const double*, int64_t, int64_t);
void addPanelAnywhere(Rows rows, const double* panel, int64_t depth, int64_t width) {
  addPanelInline(rows, panel, depth, width);
}
#ifdef __x86_64__
// Wider registers and the same arithmetic: AVX2 alone has no fused product and sum.
[[gnu::target("avx2")]] void addPanelAvx2(Rows rows, const double* panel, int64_t depth,
                                          int64_t width) {
  addPanelInline(rows, panel, depth, width);
}
AddPanel chooseAddPanel() {
  return __builtin_cpu_supports("avx2") ? addPanelAvx2 : addPanelAnywhere;
}
#else
AddPanel chooseAddPanel() { return addPanelAnywhere; }
#endif

// Rows [top, top + depth) and columns [left, left + width) of a matrix, the rest of the panel's
// columns zero.
template <class From, class Convert>
void pack(const From* from, int64_t down, int64_t right, int64_t depth, int64_t width,
          double* panel, Convert convert) {
  if (width < kWidth) std::fill_n(panel, depth * kWidth, 0.0);
  if (right == 1) {
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t j = 0; j < width; ++j) panel[p * kWidth + j] = convert(from[p * down + j]);
    return;
  }
  for (int64_t j = 0; j < width; ++j)
    for (int64_t p = 0; p < depth; ++p) panel[p * kWidth + j] = convert(from[p * down + j * right]);
}

// Where the matrices of a value begin, in the elements that it lies in.
std::vector<int64_t> offsetsOf(const Dense& x) {
  Shape lead(x.shape.begin(), x.shape.end() - 2);
  const Shape all = stridesIn(x), strides(all.begin(), all.end() - 2);
  return stridedIndices(lead, strides);
}

std::vector<double> squares(const std::vector<double>& values) {
  std::vector<double> y(values.size());
  std::transform(values.begin(), values.end(), y.begin(), [](double v) { return v * v; });
  return y;
}

template <class From, class Convert>
void multiplyAll(const double* a, const From* b, const std::vector<int64_t>& offsetsB, int64_t down,
                 int64_t right, const std::vector<int64_t>& fromA,
                 const std::vector<int64_t>& fromB, int64_t m, int64_t k, int64_t n, double* y,
                 Convert convert) {
  static const AddPanel addPanel = chooseAddPanel();
  const int64_t blocks = (n + kWidth - 1) / kWidth;
  // Each block of columns of each matrix is the work of one thread.
  auto block = [&](int64_t index, double* panel) {
    const int64_t matrix = index / blocks, left = index % blocks * kWidth;
    const int64_t width = std::min(kWidth, n - left);
    const From* from = b + offsetsB[size_t(fromB[size_t(matrix)])] + left * right;
    for (int64_t top = 0; top < k; top += kDepth) {
      const int64_t depth = std::min(kDepth, k - top);
      pack(from + top * down, down, right, depth, width, panel, convert);
      addPanel({a + fromA[size_t(matrix)] * m * k + top, m, k, y + matrix * m * n + left, n}, panel,
               depth, width);
    }
  };
  const int64_t count = int64_t(fromA.size()) * blocks;
  auto some = [&](int64_t begin, int64_t end, int) {
    std::vector<double> panel(size_t(std::min(kDepth, k) * kWidth));
    for (int64_t i = begin; i < end; ++i) block(i, panel.data());
  };
  constexpr int64_t kOneThread = 1 << 20;
  if (int64_t(fromA.size()) * m * k * n < kOneThread)
    some(0, count, 0);
  else
    ThreadPool::global().parallelFor(0, count, 1, some);
}

}  // namespace

std::vector<double> product(const Dense& a, const Dense& b, const std::vector<int64_t>& fromA,
                            const std::vector<int64_t>& fromB, bool squared) {
  const int64_t m = a.shape.end()[-2], k = a.shape.back(), n = b.shape.back();
  std::vector<double> y(fromA.size() * size_t(m * n), 0.0);
  if (y.empty() || k == 0) return y;
  const Dense left = settled(a);
  const std::vector<double> squaredLeft = squared ? squares(*left.reals) : std::vector<double>();
  const double* pa = squared ? squaredLeft.data() : left.reals->data();
  const Shape strides = stridesIn(b);
  auto multiply = [&](const auto* first, auto convert) {
    auto run = [&](auto made) {
      multiplyAll(pa, first, offsetsOf(b), strides.end()[-2], strides.back(), fromA, fromB, m, k, n,
                  y.data(), made);
    };
    if (squared)
      run([=](auto v) { return convert(v) * convert(v); });
    else
      run(convert);
  };
  if (b.stored)
    readStored(*b.stored, multiply);
  else
    multiply(b.reals->data(), [](double v) { return v; });
  return y;
}

}  // namespace lathe::reference
