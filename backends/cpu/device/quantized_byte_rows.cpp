// SPDX-License-Identifier: Apache-2.0
// Many rows in 8 bits (byte_rows.h) without tiles: a panel stays in the L2 cache while the rows of
// a chunk, which were brought into the kernels' form once, meet it by dot products of bytes.
#include "backends/cpu/device/quantized_operands.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kChunkRows = 256;

// Rows of a chunk as records, the sums of their elements, and a row in f32 for each worker.
struct ByteScratch {
  ByteScratch(const QuantizedShape& w, int64_t elementBytes, int threads)
      : chunks(w, kByteChunk),
        stride(chunks.count * fixedPointBytes(chunks.depth, elementBytes)),
        rows(alignUp64(size_t(kChunkRows * stride))),
        sums(alignUp64(size_t(kChunkRows * chunks.count) * 4)),
        row(alignUp64(size_t(w.paddedK()) * 4)),
        bytes(rows + sums + row * size_t(threads)) {}
  Chunks chunks;
  int64_t stride;
  size_t rows, sums, row, bytes;
};

const ByteRowKernels& kernelsOf(const QuantizedShape& w, KernelIsa isa) {
  return *quantizedKernels(isa).byteRows(w.bits());
}

}  // namespace

size_t byteRowsScratchBytes(const QuantizedLinearSpec& spec, int threads, KernelIsa isa) {
  return ByteScratch(spec.weights, kernelsOf(spec.weights, isa).elementBytes, threads).bytes;
}

void multiplyByteRows(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                      const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool, Scratch scratch) {
  const QuantizedShape& w = spec.weights;
  const QuantizedOperands layer(spec, args, isa);
  const ByteRowKernels& kernels = kernelsOf(w, isa);
  const PanelKernels& panels = panelKernels(isa);
  const ByteScratch sizes(w, kernels.elementBytes, pool.threads());
  const Chunks& chunks = sizes.chunks;
  char* memory = static_cast<char*>(scratch.data);
  float* sums = reinterpret_cast<float*>(memory + sizes.rows);
  for (int64_t row0 = 0; row0 < args.m; row0 += kChunkRows) {
    const int64_t rows = std::min(kChunkRows, args.m - row0);
    pool.parallelFor(0, rows, 8, [&](int64_t begin, int64_t end, int worker) {
      float* row = reinterpret_cast<float*>(memory + sizes.rows + sizes.sums) +
                   size_t(worker) * (sizes.row / 4);
      for (int64_t r = begin; r < end; ++r)
        layer.byteRecordsOf(kernels, chunks, args.a, row0 + r, row, memory + r * sizes.stride,
                            sums + r * chunks.count);
    });
    pool.runDynamic(w.panels(), [&](int64_t index, int) {
      alignas(64) float acc[kQuantizedRows * kPanelColumns], tail[2 * kPanelColumns];
      QuantizedPanel panel = layer.panel(index, tail);
      panel.chunk = chunks.depth;
      const int64_t col0 = index * kPanelColumns, cols = std::min(kPanelColumns, w.n - col0);
      for (int64_t r = 0; r < rows; r += kQuantizedRows) {
        const int64_t some = std::min<int64_t>(kQuantizedRows, rows - r);
        std::fill(acc, acc + some * kPanelColumns, 0.0f);
        const QuantizedRows x{memory + r * sizes.stride, sizes.stride,
                              spec.hasZero ? sums + r * chunks.count : nullptr, chunks.count};
        kernels.panel[some - 1](panel, x, 0, chunks.count, acc);
        panels.store(acc, kPanelColumns, some, cols, row0 + r, col0, epilogue);
      }
    });
  }
}

}  // namespace lathe::cpu
