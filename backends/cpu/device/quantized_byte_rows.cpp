// SPDX-License-Identifier: Apache-2.0
// Many rows in 8 bits (byte_rows.h) without tiles: a piece of a panel stays in the L1 cache while
// the rows of a group, which were brought into the kernels' form once, meet it by dot products of
// bytes.
#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/quantized_operands.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kGroupRows = 256;
// Elements along K of a chunk at most: its sums of bytes are exact, and bringing them to f32 costs
// as much whatever its length. Of bytes such a chunk fills two thirds of an L1 cache of 48 KiB.
constexpr int64_t kLongChunk = 512;
// Of chunks that meet all rows of a group before others do.
constexpr int64_t kPieceBytes = 24 << 10;

// Rows of a group as records, the sums of their elements, and for each worker a row in f32 or sums
// of products, those of gates too.
struct ByteScratch {
  ByteScratch(const QuantizedShape& w, int64_t elementBytes, int threads)
      : chunks(w, kLongChunk),
        stride(chunks.count * fixedPointBytes(chunks.depth, elementBytes)),
        rows(alignUp64(size_t(kGroupRows * stride))),
        sums(alignUp64(size_t(kGroupRows * chunks.count) * 4)),
        slice(std::max(alignUp64(size_t(w.paddedK()) * 4), 2 * kProducts * 4)),
        bytes(rows + sums + slice * size_t(threads)) {}
  static constexpr size_t kProducts = size_t(kGroupRows * kPanelColumns);
  Chunks chunks;
  int64_t stride;
  size_t rows, sums, slice, bytes;
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
  auto slice = [&](int worker) {
    return reinterpret_cast<float*>(memory + sizes.rows + sizes.sums +
                                    size_t(worker) * sizes.slice);
  };
  const int64_t pieceChunks =
      std::max<int64_t>(1, kPieceBytes / (chunks.depth * w.bits() * kPanelColumns / 8));
  const int64_t columns = epilogue.gate ? w.panels() / 2 : w.panels();
  for (int64_t row0 = 0; row0 < args.m; row0 += kGroupRows) {
    const int64_t rows = std::min(kGroupRows, args.m - row0);
    pool.parallelFor(0, rows, 8, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t r = begin; r < end; ++r)
        layer.byteRecordsOf(kernels, chunks, args.a, row0 + r, slice(worker),
                            memory + r * sizes.stride, sums + r * chunks.count);
    });
    auto multiply = [&](int64_t index, float* products) {
      alignas(64) float tail[2 * kPanelColumns];
      QuantizedPanel panel = layer.panel(index, tail);
      panel.chunk = chunks.depth;
      std::fill(products, products + rows * kPanelColumns, 0.0f);
      for (int64_t chunk = 0; chunk < chunks.count; chunk += pieceChunks)
        for (int64_t r = 0; r < rows; r += kQuantizedRows) {
          const QuantizedRows x{memory + r * sizes.stride, sizes.stride,
                                spec.hasZero ? sums + r * chunks.count : nullptr, chunks.count};
          kernels.panel[std::min<int64_t>(kQuantizedRows, rows - r) - 1](
              panel, x, chunk, std::min(chunks.count, chunk + pieceChunks),
              products + r * kPanelColumns);
        }
    };
    pool.runDynamic(columns, [&](int64_t index, int worker) {
      const int64_t column = index * kPanelColumns;
      float *products = slice(worker), *gated = products + ByteScratch::kProducts;
      multiply(index, products);
      if (epilogue.gate) {
        multiply(index + columns, gated);
        storeGated(products, gated, rows, row0, column, epilogue, panels);
      } else {
        panels.store(products, kPanelColumns, rows, std::min(kPanelColumns, w.n - column), row0,
                     column, epilogue);
      }
    });
  }
}

}  // namespace lathe::cpu
