// SPDX-License-Identifier: Apache-2.0
// A few rows: panels are read from memory once, as several streams, and from the cache for each
// group of as many rows as a kernel takes.
#include <optional>

#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/quantized_operands.h"

namespace lathe::cpu {
namespace {

// Several panels, a few chunks of each in turn.
void runGroup(const QuantizedOperands& layer, const QuantizedShape& w, const Chunks& chunks,
              const QuantizedPanelFn* table, const QuantizedRows& x, int64_t row0, int64_t rows,
              const PanelGroups::Group& group, const PanelKernels& kernels,
              const Epilogue& epilogue) {
  const auto [first, stride, count] = group;
  alignas(64) float acc[kMaxReadStreams][kMostFewRows * kPanelColumns];
  alignas(64) float tails[kMaxReadStreams][2 * kPanelColumns];
  QuantizedPanel panels[kMaxReadStreams];
  for (int s = 0; s < count; ++s) std::fill(acc[s], acc[s] + rows * kPanelColumns, 0.0f);
  for (int s = 0; s < count; ++s) {
    panels[s] = layer.panel(first + s * stride, tails[s]);
    panels[s].chunk = chunks.depth;
    panels[s].prefetch = readPatternOf(w).prefetch;
  }
  const int64_t chunkBytes = chunks.depth * kPanelColumns * w.bits() / 8;
  const int64_t step = chunksOfTurn(count, chunks.count, chunkBytes);
  for (int64_t chunk = 0; chunk < chunks.count; chunk += step)
    for (int s = 0; s < count; ++s)
      for (int64_t r = 0; r < rows; r += kQuantizedRows) {
        const int64_t some = std::min<int64_t>(kQuantizedRows, rows - r);
        QuantizedRows from = x;
        from.x += r * x.stride;
        if (from.sums) from.sums += r * x.sumStride;
        table[some - 1](panels[s], from, chunk, std::min(chunks.count, chunk + step),
                        acc[s] + r * kPanelColumns);
      }
  for (int s = 0; s < count; ++s) {
    const int64_t col0 = (first + s * stride) * kPanelColumns;
    kernels.store(acc[s], kPanelColumns, rows, std::min(kPanelColumns, w.n - col0), row0, col0,
                  epilogue);
  }
}

FixedPointFn fixedPointOf(const QuantizedKernels& kernels, const QuantizedShape& w) {
  return w.bits() == 8 ? kernels.toFixed8 : kernels.toFixed4;
}
// Null where rows are not multiplied as bytes.
const ByteRowKernels* byteKernelsOf(const QuantizedLinearSpec& spec,
                                    const QuantizedKernels& kernels) {
  const auto& bytes = kernels.byteRows(spec.weights.bits());
  return spec.quantizesX && bytes ? &*bytes : nullptr;
}
const QuantizedPanelFn* tableOf(const QuantizedLinearSpec& spec, const QuantizedKernels& kernels) {
  if (const ByteRowKernels* bytes = byteKernelsOf(spec, kernels)) return bytes->panel;
  return spec.weights.bits() == 8 ? kernels.int8 : kernels.int4;
}

Chunks chunksOf(const QuantizedLinearSpec& spec, const QuantizedKernels& kernels) {
  return Chunks(spec.weights, byteKernelsOf(spec, kernels) ? kByteChunk : kernels.chunk);
}
// Of a row that is no f32: bytes of a chunk's record; 0 where rows are f32.
int64_t recordBytesOf(const QuantizedLinearSpec& spec, const QuantizedKernels& kernels,
                      const Chunks& chunks) {
  if (const ByteRowKernels* bytes = byteKernelsOf(spec, kernels))
    return fixedPointBytes(chunks.depth, bytes->elementBytes);
  return fixedPointOf(kernels, spec.weights) ? fixedPointBytes(chunks.depth) : 0;
}

// Up to kMostFewRows of A in the kernels' form, the sums of their chunks, and one row in f32.
struct RowsScratch {
  RowsScratch(const QuantizedLinearSpec& spec, const QuantizedKernels& kernels)
      : chunks(chunksOf(spec, kernels)),
        // Rows that have no form in fixed point are f32 after all.
        stride(std::max(spec.weights.paddedK() * 4,
                        chunks.count * recordBytesOf(spec, kernels, chunks))),
        rows(alignUp64(size_t(kMostFewRows * stride))),
        sums(alignUp64(size_t(kMostFewRows * chunks.count) * 4)),
        row(alignUp64(size_t(spec.weights.paddedK()) * 4)) {}
  size_t bytes() const { return rows + sums + row; }
  Chunks chunks;
  int64_t stride;
  size_t rows, sums, row;
};

// Brings rows of A into the kernels' form; nothing where they have none in it.
std::optional<QuantizedRows> prepareRows(const QuantizedLinearSpec& spec,
                                         const QuantizedOperands& layer,
                                         const QuantizedKernels& kernels, const void* a,
                                         int64_t row0, int64_t rows, char* scratch) {
  const QuantizedShape& w = spec.weights;
  const RowsScratch sizes(spec, kernels);
  const Chunks& chunks = sizes.chunks;
  const FixedPointFn toFixedPoint = fixedPointOf(kernels, w);
  const ByteRowKernels* bytes = byteKernelsOf(spec, kernels);
  float* sums = reinterpret_cast<float*>(scratch + sizes.rows);
  float* row = reinterpret_cast<float*>(scratch + sizes.rows + sizes.sums);
  for (int64_t r = 0; r < rows; ++r) {
    char* to = scratch + r * sizes.stride;
    if (bytes) {
      layer.byteRecordsOf(*bytes, chunks, a, row0 + r, row, to, sums + r * chunks.count);
      continue;
    }
    float* x = toFixedPoint ? row : reinterpret_cast<float*>(to);
    layer.rowOf(a, row0 + r, x);
    std::fill(x + w.k, x + w.paddedK(), 0.0f);
    for (int64_t c = 0; c < chunks.count; ++c) {
      const int64_t first = c * chunks.depth, depth = std::min(chunks.depth, w.paddedK() - first);
      if (spec.hasZero) sums[r * chunks.count + c] = sumOf(x + first, depth);
      if (toFixedPoint && !toFixedPoint(x + first, depth, chunks.depth, w.center(),
                                        to + c * fixedPointBytes(chunks.depth)))
        return std::nullopt;
    }
  }
  return QuantizedRows{scratch, sizes.stride, spec.hasZero ? sums : nullptr, chunks.count};
}

// Panels that one worker takes. It brings the rows into the kernels' form by itself: to fetch what
// another worker has written takes longer.
void runPanels(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
               const QuantizedOperands& layer, const Epilogue& epilogue, KernelIsa isa,
               int64_t row0, const PanelGroups& groups, ThreadPool::Claims& claims, char* scratch) {
  PanelGroups::Group group = groups.next(claims);
  if (!group.count) return;
  const int64_t rows = std::min(kMostFewRows, args.m - row0);
  const QuantizedKernels* kernels = &quantizedKernels(isa);
  if (args.m > kernels->fixedRows && !byteKernelsOf(spec, *kernels))
    kernels = &floatQuantizedKernels(isa);
  auto x = prepareRows(spec, layer, *kernels, args.a, row0, rows, scratch);
  if (!x) {
    // They come out as f32 products make them.
    kernels = &floatQuantizedKernels(isa);
    x = prepareRows(spec, layer, *kernels, args.a, row0, rows, scratch);
  }
  const Chunks chunks = chunksOf(spec, *kernels);
  const QuantizedPanelFn* table = tableOf(spec, *kernels);
  for (; group.count; group = groups.next(claims))
    runGroup(layer, spec.weights, chunks, table, *x, row0, rows, group, panelKernels(isa),
             epilogue);
}

}  // namespace

size_t fewRowsScratchBytes(const QuantizedLinearSpec& spec, int threads, KernelIsa isa) {
  return RowsScratch(spec, quantizedKernels(isa)).bytes() * size_t(threads);
}

void multiplyFewRows(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                     const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool, Scratch scratch) {
  const QuantizedOperands layer(spec, args, isa);
  const size_t bytes = fewRowsScratchBytes(spec, 1, isa);
  const PanelGroups groups(spec.weights.panels(), pool.threads(),
                           readPatternOf(spec.weights).streams);
  for (int64_t row0 = 0; row0 < args.m; row0 += kMostFewRows)
    pool.runClaims(groups.count(), [&](ThreadPool::Claims& claims) {
      char* memory = static_cast<char*>(scratch.data) + size_t(claims.worker()) * bytes;
      runPanels(spec, args, layer, epilogue, isa, row0, groups, claims, memory);
    });
}

}  // namespace lathe::cpu
