// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/quantized_linear.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/device/amx_quantized.h"
#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/quantized_kernels.h"
#include "backends/cpu/device/tiled_gemm.h"
#include "backends/cpu/device/widened_gemm.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// Rows that are brought into the kernels' form at a time.
constexpr int64_t kChunkRows = 256;

// Where the operands of all panels lie.
class Layer {
 public:
  Layer(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args)
      : spec_(spec), args_(args), w_(spec.weights) {
    const PackedShape scales{spec.scaleDType, w_.scales(), w_.n};
    scaleBytes_ = w_.scales() > 1 ? scales.panelBytes() : kPanelColumns * 4;
  }

  // `tail` holds 64 scales and as many zero points of the last panel, where memory ends before
  // them.
  QuantizedPanel panel(int64_t index, float* tail) const {
    QuantizedPanel p;
    p.q = static_cast<const char*>(args_.weights) + index * w_.panelBytes();
    p.scale = at(args_.scale, index, tail);
    if (spec_.hasZero) p.zero = at(args_.zero, index, tail + kPanelColumns);
    p.bf16 = w_.scales() > 1 && spec_.scaleDType == DType::BF16;
    p.oneScale = w_.scales() == 1;
    p.depth = w_.paddedK();
    p.chunk = w_.chunk();
    p.center = w_.isUnsigned() ? float(w_.center()) : 0.0f;
    return p;
  }

  void rowOf(const void* a, int64_t row, float* to) const { elementsOf(a, row, 0, w_.k, to); }
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
  int64_t scaleBytes_;
};

// Several panels `stride` apart, a chunk of each in turn.
void runGroup(const Layer& layer, const QuantizedShape& w, QuantizedPanelFn kernel,
              const QuantizedRows& from, int64_t row0, int rows, int64_t first, int64_t stride,
              int count, const PanelKernels& kernels, const Epilogue& epilogue) {
  alignas(64) float acc[kMaxReadStreams][kQuantizedRows * kPanelColumns];
  alignas(64) float tails[kMaxReadStreams][2 * kPanelColumns];
  QuantizedPanel panels[kMaxReadStreams];
  std::memset(acc, 0, sizeof(acc[0]) * size_t(count));
  for (int s = 0; s < count; ++s) {
    panels[s] = layer.panel(first + s * stride, tails[s]);
    panels[s].prefetch = calibration().reading.prefetch;
  }
  // About as many bytes at a time as a block of a bf16 panel has.
  const int64_t step =
      count == 1
          ? w.chunks()
          : std::max<int64_t>(1, kPanelBlockBytes / (w.chunk() * kPanelColumns * w.bits() / 8));
  for (int64_t chunk = 0; chunk < w.chunks(); chunk += step)
    for (int s = 0; s < count; ++s)
      kernel(panels[s], from, chunk, std::min(w.chunks(), chunk + step), acc[s]);
  for (int s = 0; s < count; ++s) {
    const int64_t col0 = (first + s * stride) * kPanelColumns;
    kernels.store(acc[s], kPanelColumns, rows, std::min(kPanelColumns, w.n - col0), row0, col0,
                  epilogue);
  }
}

void runPanels(const Layer& layer, const QuantizedShape& w, const QuantizedKernels& quantized,
               const PanelKernels& kernels, const QuantizedRows& x, int64_t row0, int64_t rows,
               int64_t panel0, int64_t panel1, const Epilogue& epilogue) {
  const QuantizedPanelFn* table = w.bits() == 8 ? quantized.int8 : quantized.int4;
  const int64_t count = panel1 - panel0;
  // A panel shared by several groups of rows comes from the cache: one stream will do.
  const int64_t rounds =
      rows > kQuantizedRows ? count : ceilDiv(count, calibration().reading.streams);
  for (int64_t round = 0; round < rounds; ++round)
    for (int64_t r = 0; r < rows; r += kQuantizedRows) {
      const int step = int(std::min<int64_t>(kQuantizedRows, rows - r));
      QuantizedRows from = x;
      from.x += r * x.stride;
      if (from.sums) from.sums += r * x.sumStride;
      // Streams are `rounds` panels apart; the last may have fewer panels than the others.
      const int streams = int(ceilDiv(count - round, rounds));
      runGroup(layer, w, table[step - 1], from, row0 + r, step, panel0 + round, rounds, streams,
               kernels, epilogue);
    }
}

FixedPointFn fixedPointOf(const QuantizedKernels& kernels, const QuantizedShape& w) {
  return w.bits() == 8 ? kernels.toFixed8 : kernels.toFixed4;
}

// Rows of A in the kernels' form, the sums of their chunks, and one row in f32.
struct RowsScratch {
  RowsScratch(const QuantizedShape& w, const QuantizedKernels& kernels)
      : stride(fixedPointOf(kernels, w)
                   ? std::max(w.paddedK() * 4, w.chunks() * fixedPointBytes(w.chunk()))
                   : w.paddedK() * 4),
        rows(alignUp64(size_t(kChunkRows * stride))),
        sums(alignUp64(size_t(kChunkRows * w.chunks()) * 4)),
        row(alignUp64(size_t(w.paddedK()) * 4)) {}
  size_t bytes() const { return rows + sums + row; }
  int64_t stride;
  size_t rows, sums, row;
};

// Brings rows of A into the kernels' form; nothing where they have none in it.
std::optional<QuantizedRows> prepareRows(const QuantizedLinearSpec& spec, const Layer& layer,
                                         const QuantizedKernels& kernels, const void* a,
                                         int64_t row0, int64_t rows, char* scratch) {
  const QuantizedShape& w = spec.weights;
  const RowsScratch sizes(w, kernels);
  const FixedPointFn toFixedPoint = fixedPointOf(kernels, w);
  float* sums = reinterpret_cast<float*>(scratch + sizes.rows);
  float* row = reinterpret_cast<float*>(scratch + sizes.rows + sizes.sums);
  for (int64_t r = 0; r < rows; ++r) {
    char* to = scratch + r * sizes.stride;
    float* x = toFixedPoint ? row : reinterpret_cast<float*>(to);
    layer.rowOf(a, row0 + r, x);
    std::fill(x + w.k, x + w.paddedK(), 0.0f);
    for (int64_t c = 0; c < w.chunks(); ++c) {
      const int64_t first = c * w.chunk(), depth = std::min(w.chunk(), w.paddedK() - first);
      if (spec.hasZero) {
        float sum = 0;
        for (int64_t k = first; k < first + depth; ++k) sum += x[k];
        sums[r * w.chunks() + c] = sum;
      }
      if (toFixedPoint && !toFixedPoint(x + first, depth, w.chunk(), w.center(),
                                        to + c * fixedPointBytes(w.chunk())))
        return std::nullopt;
    }
  }
  return QuantizedRows{scratch, sizes.stride, spec.hasZero ? sums : nullptr, w.chunks()};
}

void panelProduct(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                  const Layer& layer, const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool,
                  Scratch scratch) {
  const QuantizedShape& w = spec.weights;
  char* memory = static_cast<char*>(scratch.data);
  for (int64_t row0 = 0; row0 < args.m; row0 += kChunkRows) {
    const int64_t rows = std::min(kChunkRows, args.m - row0);
    const QuantizedKernels* kernels = &quantizedKernels(isa);
    if (args.m > kernels->fixedRows) kernels = &floatQuantizedKernels(isa);
    auto x = prepareRows(spec, layer, *kernels, args.a, row0, rows, memory);
    if (!x) {
      // A NaN or an infinity: they come out as f32 products make them.
      kernels = &floatQuantizedKernels(isa);
      x = prepareRows(spec, layer, *kernels, args.a, row0, rows, memory);
    }
    pool.parallelFor(0, w.panels(), 1, [&](int64_t panel0, int64_t panel1, int) {
      runPanels(layer, w, *kernels, panelKernels(isa), *x, row0, rows, panel0, panel1, epilogue);
    });
  }
}

// --- several rows that share each piece of a panel ---

// Elements along K that are unpacked at a time: they stay in the L1 cache.
constexpr int64_t kPieceDepth = 32, kF32Block = 16;

// A by chunks, so that rows which share a piece are read as one stream: [chunks][rows][depth], the
// depth padded with zeros to whole blocks of the f32 kernels.
struct SharedRows {
  int64_t rows, depth;
  float *x, *sums;  // sums of A's elements, [chunks][rows]
};

SharedRows orderByChunks(const QuantizedLinearSpec& spec, const Layer& layer, const void* a,
                         int64_t rows, KernelIsa isa, ThreadPool& pool, char* scratch) {
  const QuantizedShape& w = spec.weights;
  const SharedRows to{
      rows, roundUp(w.chunk(), kF32Block), reinterpret_cast<float*>(scratch),
      reinterpret_cast<float*>(scratch + RowsScratch(w, floatQuantizedKernels(isa)).rows)};
  pool.parallelFor(0, w.chunks(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t chunk = begin; chunk < end; ++chunk)
      for (int64_t r = 0; r < rows; ++r) {
        float* x = to.x + (chunk * rows + r) * to.depth;
        const int64_t first = chunk * w.chunk();
        const int64_t count = std::clamp<int64_t>(w.k - first, 0, w.chunk());
        layer.elementsOf(a, r, first, count, x);
        std::fill(x + count, x + to.depth, 0.0f);
        float sum = 0;
        for (int64_t k = 0; spec.hasZero && k < count; ++k) sum += x[k];
        to.sums[chunk * rows + r] = sum;
      }
  });
  return to;
}

// One panel: each of its pieces comes from memory and is unpacked once, for all rows.
void sharedPanel(const Layer& layer, const QuantizedShape& w, const QuantizedKernels& quantized,
                 const PanelKernels& kernels, const SharedRows& a, int64_t index,
                 const Epilogue& epilogue) {
  alignas(64) float acc[kMostSharing * kPanelColumns], sums[kMostSharing * kPanelColumns];
  alignas(64) float piece[kPieceDepth * kPanelColumns], tail[2 * kPanelColumns];
  std::fill(acc, acc + a.rows * kPanelColumns, 0.0f);
  std::fill(sums, sums + a.rows * kPanelColumns, 0.0f);
  const QuantizedPanel panel = layer.panel(index, tail);
  const UnpackQuantizedFn unpack = w.bits() == 8 ? quantized.unpack8 : quantized.unpack4;
  const int64_t groups = ceilDiv(a.rows, kernels.rows);
  for (int64_t chunk = 0; chunk < w.chunks(); ++chunk) {
    const int64_t first = chunk * w.chunk(), depth = std::min(w.chunk(), w.paddedK() - first);
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

void sharedProduct(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                   const Layer& layer, const Epilogue& epilogue, KernelIsa isa, ThreadPool& pool,
                   Scratch scratch) {
  const SharedRows a =
      orderByChunks(spec, layer, args.a, args.m, isa, pool, static_cast<char*>(scratch.data));
  pool.parallelFor(0, spec.weights.panels(), 1, [&](int64_t panel0, int64_t panel1, int) {
    for (int64_t panel = panel0; panel < panel1; ++panel)
      sharedPanel(layer, spec.weights, quantizedKernels(isa), panelKernels(isa), a, panel,
                  epilogue);
  });
}

int64_t rowLengthOf(const QuantizedShape& w) {
  const PackedShape wide{DType::F32, w.k, w.n};
  return wide.blocks() * wide.blockK();
}

class WidenedIntegers final : public WidenedProduct {
 public:
  WidenedIntegers(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args, KernelIsa isa)
      : WidenedProduct(spec.weights.k, spec.weights.n, rowLengthOf(spec.weights)),
        layer_(spec, args),
        a_(args.a),
        bits_(spec.weights.bits()),
        widen_(bits_ == 8 ? quantizedKernels(isa).widen8 : quantizedKernels(isa).widen4) {}
  void widenRows(int64_t row0, int64_t row1, float* to) const override {
    for (int64_t row = row0; row < row1; ++row, to += rowLength) {
      layer_.rowOf(a_, row, to);
      std::fill(to + k, to + rowLength, 0.0f);
    }
  }
  void widenPanel(int64_t panel, float* to) const override {
    alignas(64) float tail[2 * kPanelColumns];
    widen_(layer_.panel(panel, tail), to);
    // Zero points are taken off the padding, too: what lies behind K is zero again.
    std::fill(to + k * kPanelColumns, to + rowLength * kPanelColumns, 0.0f);
  }
  void widenTile(int64_t panel, int64_t k0, int64_t depth, float* to) const override {
    alignas(64) float tail[2 * kPanelColumns];
    const QuantizedPanel from = layer_.panel(panel, tail);
    bits_ == 8 ? widenTile8(from, k0, depth, to) : widenTile4(from, k0, depth, to);
  }

 private:
  Layer layer_;
  const void* a_;
  int bits_;
  WidenQuantizedFn widen_;
};

// Fewer rows than these are faster by dot products.
constexpr int64_t kLeastTileRows = 5;

bool onTiles(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles &&
         spec.dtype == DType::BF16 && amxQuantizedTakes(spec.weights);
}

}  // namespace

std::string whyNotQuantized(const QuantizedLinearSpec& spec) {
  const QuantizedShape& w = spec.weights;
  auto isFloat32Or16 = [](DType d) { return d == DType::F32 || d == DType::BF16; };
  if (!isFloat32Or16(spec.dtype)) return "quantized weights are multiplied with f32 and bf16";
  if (w.scales() > 1 && w.block % 8) return "blocks that share a scale are multiples of 8 elements";
  if (!isFloat32Or16(spec.scaleDType) || (w.scales() <= 1 && spec.scaleDType != DType::F32))
    return "scales are f32, or bf16 where a row has several";
  if (w.isUnsigned() && !spec.hasZero) return "unsigned weights have zero points";
  return "";
}

size_t prepareQuantizedLinear(const QuantizedLinearSpec& spec, int threads, KernelIsa isa) {
  if (std::string why = whyNotQuantized(spec); !why.empty())
    throw Error(ErrorCode::Unsupported, "quantized linear: " + why);
  if (spec.weights.n == 0) return 0;
  size_t bytes = RowsScratch(spec.weights, quantizedKernels(isa)).bytes();
  if (onTiles(spec, isa))
    bytes = std::max(bytes, amxQuantizedScratchBytes(spec.weights, threads));
  else if (spec.weights.k > 0)
    bytes = std::max(bytes, widenedGemmScratchBytes(WidenedIntegers(spec, {}, isa), threads, isa));
  return bytes;
}

bool roundsWeights(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa) {
  return onTiles(spec, isa) && amxQuantizedRounds(spec.weights, m);
}

void quantizedLinear(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args,
                     ThreadPool& pool, Scratch scratch, KernelIsa isa) {
  const QuantizedShape& w = spec.weights;
  if (args.m <= 0 || w.n == 0) return;
  const size_t needed = prepareQuantizedLinear(spec, pool.threads(), isa);
  if (scratch.bytes < needed)
    throw Error(ErrorCode::InvalidArgument, "expected " + std::to_string(needed) +
                                                " bytes of scratch for a quantized layer, got " +
                                                std::to_string(scratch.bytes) +
                                                "; ask prepareQuantizedLinear");
  if (spec.gate && !gatesInside(spec, args.m, isa))
    throw Error(ErrorCode::InvalidArgument, "expected a layer whose gate is applied inside, got " +
                                                std::to_string(args.m) + " rows of [" +
                                                std::to_string(w.k) + ", " + std::to_string(w.n) +
                                                "]; ask gatesInside");
  if (spec.gate && (spec.activation != Activation::none || args.bias || args.residual))
    throw Error(ErrorCode::InvalidArgument,
                "expected a gated layer without another activation, bias and residual, got " +
                    std::string(args.bias       ? "a bias"
                                : args.residual ? "a residual"
                                                : nameOf(spec.activation)) +
                    "; leave the gate to gateProducts");
  Epilogue epilogue;
  epilogue.gate = spec.gate;
  epilogue.bias = args.bias;
  epilogue.biasDType = spec.dtype;
  epilogue.activation = spec.activation;
  epilogue.residual = args.residual;
  epilogue.ldr = epilogue.ldc = spec.gate ? w.n / 2 : w.n;
  epilogue.c = args.c;
  epilogue.outDType = spec.dtype;
  const Layer layer(spec, args);
  if (args.m >= kLeastTileRows && onTiles(spec, isa))
    return amxQuantizedGemm(
        {w, args.m, static_cast<const uint16_t*>(args.a), spec.hasZero, epilogue,
         [&](int64_t panel, float* tail) { return layer.panel(panel, tail); }},
        pool, scratch);
  const QuantizedKernels& kernels = quantizedKernels(isa);
  if (args.m >= kernels.leastSharing && args.m <= kernels.mostSharing && w.k > 0)
    return sharedProduct(spec, args, layer, epilogue, isa, pool, scratch);
  // More rows repay widening the weights for them.
  if (!onTiles(spec, isa) && args.m > kQuantizedRows && w.k > 0)
    return widenedGemm(WidenedIntegers(spec, args, isa), args.m, epilogue, isa, pool, scratch);
  panelProduct(spec, args, layer, epilogue, isa, pool, scratch);
}

}  // namespace lathe::cpu
