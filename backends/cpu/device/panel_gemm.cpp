// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/panel_gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/device/calibration.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kChunkRows = 256;
// Rows whose sums stay in the L1 cache beside a block of weights.
constexpr int64_t kSharingRows = 24;

// What all groups of rows have in common.
struct Panels {
  const PackedShape& shape;
  const PanelKernels& kernels;
  const char* weights;
  const Epilogue& epilogue;
  const bool bf16 = shape.dtype == DType::BF16;
  // How one thread reads weights from memory fastest, as it was measured.
  const ReadPattern& reading = readPatternOf(shape);
  const PanelFn* const table = bf16 ? kernels.bf16 : kernels.f32;
  const int64_t aBytes = bf16 && kernels.bf16Dot ? 2 : 4;

  void store(const float* acc, int64_t row0, int64_t rows, int64_t panel) const {
    const int64_t col0 = panel * kPanelColumns;
    kernels.store(acc, kPanelColumns, rows, std::min(kPanelColumns, shape.n - col0), row0, col0,
                  epilogue);
  }
};

// One group of rows, and several panels, a K block of each in turn.
void runGroup(const Panels& p, const PanelRows& x, int64_t row0, int rows,
              const PanelGroups::Group& panels) {
  const auto [first, stride, count] = panels;
  alignas(64) float acc[kMaxReadStreams][kPanelRows * kPanelColumns];
  std::memset(acc, 0, sizeof(acc[0]) * size_t(count));
  const PackedShape& shape = p.shape;
  const int64_t panelBytes = shape.panelBytes(), prefetch = p.reading.prefetch;
  const PanelFn kernel = p.table[rows - 1];
  const char* a = static_cast<const char*>(x.a);
  if (count == 1) {
    kernel(a, x.stride, p.weights + first * panelBytes, shape.blocks(), prefetch, acc[0]);
  } else {
    for (int64_t block = 0; block < shape.blocks(); ++block)
      for (int s = 0; s < count; ++s)
        kernel(a + block * x.blockStride * p.aBytes, x.stride,
               p.weights + (first + s * stride) * panelBytes + block * kPanelBlockBytes, 1,
               prefetch, acc[s]);
  }
  for (int s = 0; s < count; ++s) p.store(acc[s], row0, rows, first + s * stride);
}

// Several groups of rows of about the same size, and one panel: each of its blocks comes from
// memory once, for the first group, and from the L1 cache for the others.
void runGroups(const Panels& p, const PanelRows& x, int64_t row0, int64_t rows, int64_t panel) {
  alignas(64) float acc[kSharingRows * kPanelColumns];
  std::memset(acc, 0, sizeof(float) * size_t(rows * kPanelColumns));
  const int64_t groups = ceilDiv(rows, p.kernels.rows);
  const char* b = p.weights + panel * p.shape.panelBytes();
  const char* a = static_cast<const char*>(x.a);
  for (int64_t block = 0; block < p.shape.blocks(); ++block) {
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = rows * group / groups, end = rows * (group + 1) / groups;
      p.table[end - first - 1](a + first * x.stride * p.aBytes, x.stride, b, 1,
                               group == 0 ? p.reading.prefetch : kInCache,
                               acc + first * kPanelColumns);
    }
    a += x.blockStride * p.aBytes;
    b += kPanelBlockBytes;
  }
  p.store(acc, row0, rows, panel);
}

// Panels of one group, which rows in several groups take one at a time.
PanelGroups groupsOf(const Panels& p, int64_t rows, int64_t panels, int threads) {
  return {panels, threads, rows <= p.kernels.rows ? p.reading.streams : 1};
}
void runRows(const Panels& p, const PanelRows& x, int64_t row0, int64_t rows,
             const PanelGroups::Group& panels) {
  if (rows <= p.kernels.rows) {
    runGroup(p, x, row0, int(rows), panels);
    return;
  }
  for (int64_t r = 0; r < rows; r += kSharingRows) {
    const PanelRows from{static_cast<const char*>(x.a) + r * x.stride * p.aBytes, x.stride,
                         x.blockStride};
    runGroups(p, from, row0 + r, std::min(kSharingRows, rows - r), panels.first);
  }
}

// All rows of a block of K side by side: several groups of rows that share a block of weights read
// A as one stream.
PanelRows orderByBlocks(const PackedShape& shape, const PanelKernels& kernels, const void* a,
                        int64_t lda, int64_t rows, void* buffer, ThreadPool& pool) {
  const bool bf16 = shape.dtype == DType::BF16, dot = bf16 && kernels.bf16Dot;
  const int64_t blockK = shape.blockK();
  pool.parallelFor(0, shape.blocks(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      // A view of one block, copied as a matrix of its own.
      const PackedShape part{shape.dtype, std::min(blockK, shape.k - block * blockK), shape.n};
      copyPanelRows(part, kernels,
                    static_cast<const char*>(a) + block * blockK * int64_t(sizeOf(shape.dtype)),
                    lda, rows, static_cast<char*>(buffer) + block * blockK * rows * (dot ? 2 : 4));
    }
  });
  return {buffer, blockK, blockK * rows};
}

}  // namespace

size_t panelRowsBytes(const PackedShape& shape, int64_t rows) {
  return alignUp64(size_t(rows * shape.blocks() * shape.blockK()) * 4);
}

void copyPanelRows(const PackedShape& shape, const PanelKernels& kernels, const void* a,
                   int64_t lda, int64_t rows, void* buffer) {
  const bool dot = shape.dtype == DType::BF16 && kernels.bf16Dot;
  const int64_t padded = shape.blocks() * shape.blockK();
  if (shape.dtype == DType::BF16 && !dot) {
    const uint16_t* from = static_cast<const uint16_t*>(a);
    float* to = static_cast<float*>(buffer);
    for (int64_t r = 0; r < rows; ++r, from += lda, to += padded) {
      for (int64_t k = 0; k < shape.k; ++k) to[k] = bf16ToFloat(from[k]);
      std::fill(to + shape.k, to + padded, 0.0f);
    }
  } else {
    const size_t size = dot ? 2 : 4;
    const char* from = static_cast<const char*>(a);
    char* to = static_cast<char*>(buffer);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(to, from, size_t(shape.k) * size);
      std::memset(to + size_t(shape.k) * size, 0, size_t(padded - shape.k) * size);
      from += size_t(lda) * size;
      to += size_t(padded) * size;
    }
  }
}

PanelRows preparePanelRows(const PackedShape& shape, const PanelKernels& kernels, const void* a,
                           int64_t lda, int64_t rows, void* buffer) {
  const bool widen = shape.dtype == DType::BF16 && !kernels.bf16Dot;
  const int64_t padded = shape.blocks() * shape.blockK();
  if (!widen && padded == shape.k) return {a, lda, shape.blockK()};
  copyPanelRows(shape, kernels, a, lda, rows, buffer);
  return {buffer, padded, shape.blockK()};
}

void runPanels(const PackedShape& shape, const PanelKernels& kernels, const PanelRows& x,
               int64_t row0, int64_t rows, const void* weights, int64_t panel0, int64_t panel1,
               const Epilogue& epilogue) {
  const Panels p{shape, kernels, static_cast<const char*>(weights), epilogue};
  const PanelGroups groups = groupsOf(p, rows, panel1 - panel0, 1);
  for (int64_t index = 0; index < groups.count(); ++index) {
    PanelGroups::Group panels = groups[index];
    panels.first += panel0;
    runRows(p, x, row0, rows, panels);
  }
}

size_t panelGemmScratchBytes(const PackedShape& shape) { return panelRowsBytes(shape, kChunkRows); }

void panelGemm(const PackedShape& shape, KernelIsa isa, int64_t m, const void* a, int64_t lda,
               const void* weights, const Epilogue& epilogue, ThreadPool& pool, Scratch scratch) {
  const PanelKernels& kernels = panelKernels(isa);
  const size_t size = sizeOf(shape.dtype);
  for (int64_t row0 = 0; row0 < m; row0 += kChunkRows) {
    int64_t rows = std::min(kChunkRows, m - row0);
    const char* from = static_cast<const char*>(a) + size_t(row0 * lda) * size;
    const PanelRows x = rows > kernels.rows
                            ? orderByBlocks(shape, kernels, from, lda, rows, scratch.data, pool)
                            : preparePanelRows(shape, kernels, from, lda, rows, scratch.data);
    const Panels p{shape, kernels, static_cast<const char*>(weights), epilogue};
    const PanelGroups groups = groupsOf(p, rows, shape.panels(), pool.threads());
    pool.runClaims(groups.count(), [&](ThreadPool::Claims& claims) {
      for (auto group = groups.next(claims); group.count; group = groups.next(claims))
        runRows(p, x, row0, rows, group);
    });
  }
}

}  // namespace lathe::cpu
