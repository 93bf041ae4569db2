// SPDX-License-Identifier: Apache-2.0
// Several rows that share each piece of a panel, which is unpacked in the L1 cache once for them
// all.
#include "backends/cpu/device/quantized_operands.h"

namespace lathe::cpu {
namespace {

// Elements along K that are unpacked at a time: they stay in the L1 cache.
constexpr int64_t kPieceDepth = 32, kF32Block = 16;

// A by chunks, so that rows which share a piece are read as one stream: [chunks][rows][depth], the
// depth padded with zeros to whole blocks of the f32 kernels.
struct SharedRows {
  int64_t rows, depth;
  float *x, *sums;  // sums of A's elements, [chunks][rows]
};

size_t rowBytes(const Chunks& chunks) {
  return size_t(chunks.count * kMostSharing * roundUp(chunks.depth, kF32Block)) * 4;
}

SharedRows orderByChunks(const QuantizedLinearSpec& spec, const QuantizedOperands& layer,
                         const Chunks& chunks, const void* a, int64_t rows, ThreadPool& pool,
                         char* scratch) {
  const SharedRows to{rows, roundUp(chunks.depth, kF32Block), reinterpret_cast<float*>(scratch),
                      reinterpret_cast<float*>(scratch + rowBytes(chunks))};
  pool.parallelFor(0, chunks.count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t chunk = begin; chunk < end; ++chunk)
      for (int64_t r = 0; r < rows; ++r) {
        float* x = to.x + (chunk * rows + r) * to.depth;
        const int64_t first = chunk * chunks.depth;
        const int64_t count = std::clamp<int64_t>(spec.weights.k - first, 0, chunks.depth);
        layer.elementsOf(a, r, first, count, x);
        std::fill(x + count, x + to.depth, 0.0f);
        to.sums[chunk * rows + r] = spec.hasZero ? sumOf(x, roundUp(count, 8)) : 0.0f;
      }
  });
  return to;
}

// One panel: each of its pieces comes from memory and is unpacked once, for all rows.
void sharedPanel(const QuantizedOperands& layer, const QuantizedShape& w,
                 const QuantizedKernels& quantized, const PanelKernels& kernels,
                 const SharedRows& a, int64_t index, const Epilogue& epilogue) {
  alignas(64) float acc[kMostSharing * kPanelColumns], sums[kMostSharing * kPanelColumns];
  alignas(64) float piece[kPieceDepth * kPanelColumns], tail[2 * kPanelColumns];
  std::fill(acc, acc + a.rows * kPanelColumns, 0.0f);
  std::fill(sums, sums + a.rows * kPanelColumns, 0.0f);
  const Chunks chunks(w, quantized.chunk);
  QuantizedPanel panel = layer.panel(index, tail);
  panel.chunk = chunks.depth;
  const UnpackQuantizedFn unpack = w.bits() == 8 ? quantized.unpack8 : quantized.unpack4;
  const int64_t groups = ceilDiv(a.rows, kernels.rows);
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const int64_t first = chunk * chunks.depth, depth = std::min(chunks.depth, w.paddedK() - first);
    const float* x = a.x + chunk * a.rows * a.depth;
    for (int64_t k = 0; k < depth; k += kPieceDepth) {
      const int64_t count = std::min(kPieceDepth, depth - k), blocks = ceilDiv(count, kF32Block);
      unpack(panel, first + k, count, piece);
      std::fill(piece + count * kPanelColumns, piece + blocks * kF32Block * kPanelColumns, 0.0f);
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t row = a.rows * group / groups, end = a.rows * (group + 1) / groups;
        kernels.f32[end - row - 1](x + row * a.depth + k, a.depth, piece, blocks, kInCache,
                                   sums + row * kPanelColumns);
      }
    }
    quantized.scaleSums(panel, chunk, a.rows, a.sums + chunk * a.rows, sums, acc);
  }
  const int64_t column = index * kPanelColumns;
  kernels.store(acc, kPanelColumns, a.rows, std::min(kPanelColumns, w.n - column), 0, column,
                epilogue);
}

}  // namespace

size_t sharingRowsScratchBytes(const QuantizedLinearSpec& spec, KernelIsa isa) {
  const QuantizedKernels& quantized = quantizedKernels(isa);
  if (quantized.mostSharing < quantized.leastSharing) return 0;
  const Chunks chunks(spec.weights, quantized.chunk);
  return rowBytes(chunks) + alignUp64(size_t(chunks.count * kMostSharing) * 4);
}

void multiplySharingRows(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                         const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool,
                         Scratch scratch) {
  const QuantizedOperands layer(spec, args, isa);
  const QuantizedKernels& quantized = quantizedKernels(isa);
  const SharedRows a = orderByChunks(spec, layer, Chunks(spec.weights, quantized.chunk), args.a,
                                     args.m, pool, static_cast<char*>(scratch.data));
  pool.runDynamic(spec.weights.panels(), [&](int64_t panel, int) {
    sharedPanel(layer, spec.weights, quantized, panelKernels(isa), a, panel, epilogue);
  });
}

}  // namespace lathe::cpu
