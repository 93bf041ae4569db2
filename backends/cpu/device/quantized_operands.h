// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ways of multiplying quantized weights share: the panels of a layer, its rows as f32, and
// K in chunks.
#include <algorithm>
#include <cstring>

#include "backends/cpu/device/quantized_kernels.h"
#include "backends/cpu/device/quantized_linear.h"

namespace lathe::cpu {

/// K in chunks, which kernels sum before they scale.
struct Chunks {
  /// Of `most` elements, unless a block, which has scales of its own, ends elsewhere: then of the
  /// block, or of a part of it whose sums 31 bits hold.
  Chunks(const QuantizedShape& w, int64_t most)
      : depth(w.scales() > 1 && w.block % most ? partOf(w.block) : most),
        count(ceilDiv(w.paddedK(), depth)) {}
  static constexpr int64_t kLongest = 1 << 16;
  static int64_t partOf(int64_t block) {
    int64_t part = block;
    while (part > kLongest || block % part) part -= 8;  // a block is a multiple of 8
    return part;
  }
  int64_t depth, count;
};

/// Elements of a chunk where few rows are in 8 bits: their sums of bytes stay exact for longer than
/// those of rows in 24 bits.
inline constexpr int64_t kByteChunk = 128;

/// Chunks of a panel that are read before those of the next stream: few enough that what is fetched
/// ahead of each of them has come when its turn does. One stream has no others to wait for.
inline int64_t chunksOfTurn(int streams, int64_t chunks, int64_t chunkBytes) {
  constexpr int64_t kTurnBytes = 1024;
  return streams == 1 ? chunks : std::max<int64_t>(1, kTurnBytes / chunkBytes);
}

/// Where the operands of all panels lie.
class QuantizedOperands {
 public:
  QuantizedOperands(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args, KernelIsa isa)
      : spec_(spec),
        args_(args),
        w_(spec.weights),
        kernels_(panelKernels(isa)),
        places_(pairPlaces(isa)) {
    const PackedShape scales{spec.scaleDType, w_.scales(), w_.n};
    scaleBytes_ = w_.scales() > 1 ? scales.panelBytes() : kPanelColumns * 4;
  }

  /// `tail` holds 64 scales and as many zero points of the last panel, where memory ends before
  /// them. Its `chunk` is left to the caller.
  QuantizedPanel panel(int64_t index, float* tail) const {
    QuantizedPanel p;
    p.q = static_cast<const char*>(args_.weights) + index * w_.panelBytes();
    p.scale = at(args_.scale, index, tail);
    if (spec_.hasZero) p.zero = at(args_.zero, index, tail + kPanelColumns);
    p.bf16 = w_.scales() > 1 && spec_.scaleDType == DType::BF16;
    p.places = places_;
    p.depth = w_.paddedK();
    p.block = w_.scales() > 1 ? w_.block : p.depth;
    p.center = w_.isUnsigned() ? float(w_.center()) : 0.0f;
    return p;
  }

  /// A row as the products take it: rounded to 8 bits, if the spec says so.
  void rowOf(const void* a, int64_t row, float* to) const {
    elementsOf(a, row, 0, w_.k, to);
    if (spec_.quantizesX) kernels_.toMultiples(to, w_.k, byteScaleOf(kernels_.largest(to, w_.k)));
  }
  /// A row in 8 bits as the records of its chunks, and the sums of those where there are zero
  /// points; `x` holds paddedK() floats meanwhile.
  void byteRecordsOf(const ByteRowKernels& kernels, const Chunks& chunks, const void* a,
                     int64_t row, float* x, char* to, float* sums) const {
    elementsOf(a, row, 0, w_.k, x);
    std::fill(x + w_.k, x + w_.paddedK(), 0.0f);
    const ByteScale scale = byteScaleOf(kernels_.largest(x, w_.k));
    for (int64_t c = 0; c < chunks.count; ++c) {
      const int64_t first = c * chunks.depth, depth = std::min(chunks.depth, w_.paddedK() - first);
      const int32_t sum =
          kernels.record(x + first, depth, scale, w_.center(),
                         to + c * fixedPointBytes(chunks.depth, kernels.elementBytes));
      if (spec_.hasZero) sums[c] = float(sum) * scale.size;
    }
  }
  /// Elements of a row as they are.
  void elementsOf(const void* a, int64_t row, int64_t k0, int64_t count, float* to) const {
    if (spec_.dtype == DType::F32) {
      const float* from = static_cast<const float*>(a) + row * w_.k + k0;
      std::copy(from, from + count, to);
    } else {
      const uint16_t* from = static_cast<const uint16_t*>(a) + row * w_.k + k0;
      for (int64_t k = 0; k < count; ++k) to[k] = bf16ToFloat(from[k]);
    }
  }

 private:
  const char* at(const void* base, int64_t index, float* tail) const {
    const char* from = static_cast<const char*>(base) + index * scaleBytes_;
    const int64_t columns = std::min(kPanelColumns, w_.n - index * kPanelColumns);
    if (w_.scales() > 1 || (columns == kPanelColumns && w_.scales() == 1)) return from;
    std::memset(tail, 0, size_t(scaleBytes_));
    std::memcpy(tail, from, size_t(columns * w_.scales()) * 4);
    return reinterpret_cast<const char*>(tail);
  }

  const QuantizedLinearSpec& spec_;
  const QuantizedLinearArgs& args_;
  const QuantizedShape& w_;
  const PanelKernels& kernels_;
  PairPlaces places_;
  int64_t scaleBytes_;
};

/// The sum of elements whose number is a multiple of 8.
inline float sumOf(const float* x, int64_t count) {
  float parts[8] = {};
  for (int64_t k = 0; k < count; k += 8)  // chunks are multiples of 8
    for (int i = 0; i < 8; ++i) parts[i] += x[k + i];
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
         ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

/// A few rows, which are brought into the kernels' form by every worker.
size_t fewRowsScratchBytes(const QuantizedLinearSpec& spec, int threads, KernelIsa isa);
void multiplyFewRows(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                     const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool, Scratch scratch);

/// Many rows in 8 bits, where the tier has byteRows.
size_t byteRowsScratchBytes(const QuantizedLinearSpec& spec, int threads, KernelIsa isa);
void multiplyByteRows(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                      const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool, Scratch scratch);

/// From leastSharing to mostSharing rows, for which each piece of a panel is unpacked once; 0 bytes
/// where the tier has no such kernels.
size_t sharingRowsScratchBytes(const QuantizedLinearSpec& spec, KernelIsa isa);
void multiplySharingRows(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                         const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool,
                         Scratch scratch);

}  // namespace lathe::cpu
