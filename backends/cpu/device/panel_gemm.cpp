// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/panel_gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/device/calibration.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kChunkRows = 256;

// How one thread reads weights from memory fastest, as it was measured.
const ReadPattern& readPattern() { return calibration().reading; }

// One group of panels `stride` apart, a K block of each in turn.
void runGroup(const PackedShape& shape, PanelFn kernel, int64_t blockK, size_t aBytes,
              const PanelRows& x, int64_t row0, int rows, const char* weights, int64_t first,
              int64_t stride, int count, const PanelKernels& kernels, const Epilogue& epilogue) {
  alignas(64) float acc[kMaxReadStreams][kPanelRows * kPanelColumns];
  std::memset(acc, 0, sizeof(acc[0]) * size_t(count));
  const int64_t panelBytes = shape.panelBytes(), prefetch = readPattern().prefetch;
  const char* a = static_cast<const char*>(x.a);
  if (count == 1) {
    kernel(a, x.stride, weights + first * panelBytes, shape.blocks(), prefetch, acc[0]);
  } else {
    for (int64_t block = 0; block < shape.blocks(); ++block)
      for (int s = 0; s < count; ++s)
        kernel(a + block * blockK * int64_t(aBytes), x.stride,
               weights + (first + s * stride) * panelBytes + block * kPanelBlockBytes, 1, prefetch,
               acc[s]);
  }
  for (int s = 0; s < count; ++s) {
    int64_t col0 = (first + s * stride) * kPanelColumns;
    kernels.store(acc[s], kPanelColumns, rows, std::min(kPanelColumns, shape.n - col0), row0, col0,
                  epilogue);
  }
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
  if (!widen && padded == shape.k) return {a, lda};
  copyPanelRows(shape, kernels, a, lda, rows, buffer);
  return {buffer, padded};
}

void runPanels(const PackedShape& shape, const PanelKernels& kernels, const PanelRows& x,
               int64_t row0, int64_t rows, const void* weights, int64_t panel0, int64_t panel1,
               const Epilogue& epilogue) {
  const bool bf16 = shape.dtype == DType::BF16;
  const size_t aBytes = bf16 && kernels.bf16Dot ? 2 : 4;
  const PanelFn* table = bf16 ? kernels.bf16 : kernels.f32;
  const char* base = static_cast<const char*>(weights);
  const int64_t count = panel1 - panel0;
  // A panel shared by several groups of rows comes from the cache: one stream will do.
  const int64_t rounds = rows > kPanelRows ? count : ceilDiv(count, readPattern().streams);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t r = 0; r < rows; r += kPanelRows) {
      int step = int(std::min<int64_t>(kPanelRows, rows - r));
      PanelRows from{static_cast<const char*>(x.a) + r * x.stride * int64_t(aBytes), x.stride};
      // Streams are `rounds` panels apart; the last may have fewer panels than the others.
      int streams = int(ceilDiv(count - round, rounds));
      runGroup(shape, table[step - 1], shape.blockK(), aBytes, from, row0 + r, step, base,
               panel0 + round, rounds, streams, kernels, epilogue);
    }
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
    PanelRows x = preparePanelRows(shape, kernels, from, lda, rows, scratch.data);
    pool.parallelFor(0, shape.panels(), 1, [&](int64_t panel0, int64_t panel1, int) {
      runPanels(shape, kernels, x, row0, rows, weights, panel0, panel1, epilogue);
    });
  }
}

}  // namespace lathe::cpu
