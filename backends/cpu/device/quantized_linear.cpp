// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/quantized_linear.h"

#include <algorithm>

#include "backends/cpu/device/amx_gemm.h"
#include "backends/cpu/device/amx_quantized.h"
#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/quantized_operands.h"
#include "backends/cpu/device/tiled_gemm.h"
#include "backends/cpu/device/widened_gemm.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

int64_t rowLengthOf(const QuantizedShape& w) {
  const PackedShape wide{DType::F32, w.k, w.n};
  return wide.blocks() * wide.blockK();
}

class WidenedIntegers final : public WidenedMatmul {
 public:
  WidenedIntegers(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args, KernelIsa isa)
      : WidenedMatmul(spec.weights.k, spec.weights.n, rowLengthOf(spec.weights)),
        layer_(spec, args, isa),
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
  QuantizedOperands layer_;
  const void* a_;
  int bits_;
  WidenQuantizedFn widen_;
};

bool hasTiles(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles &&
         spec.dtype == DType::BF16;
}
bool onTiles(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return hasTiles(spec, isa) && amxQuantizedTakes(spec.weights);
}
// Whether rows are multiplied as bytes in vector registers.
bool byDots(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return spec.quantizesX && quantizedKernels(isa).byteRows(spec.weights.bits()) &&
         spec.weights.k > 0;
}
// Fewer rows than these are faster by dot products.
constexpr int64_t kLeastTileRows = 4;
int64_t leastByteRows(const QuantizedShape& w) {
  if (w.scales() > 1) return 9;  // whose sums leave the tiles after every block
  return w.bits() == 8 ? 2 : 5;
}
// Whether many rows are multiplied as bytes on tiles, and whether a few are.
bool asBytes(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return spec.quantizesX && hasTiles(spec, isa) && amxBytesTake(spec.weights);
}
bool fewAsBytes(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return spec.quantizesX && hasTiles(spec, isa) && amxFewBytesTake(spec.weights);
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
  size_t bytes =
      std::max(fewRowsScratchBytes(spec, threads, isa), sharingRowsScratchBytes(spec, isa));
  if (byDots(spec, isa)) bytes = std::max(bytes, byteRowsScratchBytes(spec, threads, isa));
  if (asBytes(spec, isa)) bytes = std::max(bytes, amxBytesScratchBytes(spec.weights, threads));
  if (fewAsBytes(spec, isa))
    bytes = std::max(bytes, amxFewBytesScratchBytes(spec.weights, threads));
  if (onTiles(spec, isa))
    bytes = std::max(bytes, amxQuantizedScratchBytes(spec.weights, threads));
  else if (spec.weights.k > 0)
    bytes = std::max(bytes, widenedGemmScratchBytes(WidenedIntegers(spec, {}, isa), threads, isa));
  return bytes;
}

WeightRounding weightRounding(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa) {
  if (m <= kAmxFewRows || spec.weights.scales() <= 1) return WeightRounding::none;
  if (asBytes(spec, isa)) return WeightRounding::byte;
  return onTiles(spec, isa) ? WeightRounding::bf16 : WeightRounding::none;
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
  epilogue.outDType = spec.outDType.value_or(spec.dtype);
  const QuantizedOperands layer(spec, args, isa);
  const AmxQuantizedGemm tiles{
      w,
      args.m,
      static_cast<const uint16_t*>(args.a),
      spec.hasZero,
      epilogue,
      [&](int64_t panel, float* tail) { return layer.panel(panel, tail); }};
  const bool few = args.m <= kAmxFewRows;
  if (!few && asBytes(spec, isa)) return amxBytesGemm(tiles, pool, scratch);
  if (few && args.m >= leastByteRows(w) && fewAsBytes(spec, isa))
    return amxFewBytesGemm(tiles, pool, scratch);
  if (args.m >= kLeastTileRows && !spec.quantizesX && onTiles(spec, isa))
    return amxQuantizedGemm(tiles, pool, scratch);
  if (byDots(spec, isa))
    return args.m > kMostFewRows ? multiplyByteRows(spec, args, epilogue, isa, pool, scratch)
                                 : multiplyFewRows(spec, args, epilogue, isa, pool, scratch);
  const QuantizedKernels& kernels = quantizedKernels(isa);
  if (args.m >= kernels.leastSharing && args.m <= kernels.mostSharing && w.k > 0)
    return multiplySharingRows(spec, args, epilogue, isa, pool, scratch);
  // More rows repay widening the weights for them.
  if (!onTiles(spec, isa) && args.m > std::max<int64_t>(kQuantizedRows, kernels.fixedRows) &&
      w.k > 0)
    return widenedGemm(WidenedIntegers(spec, args, isa), args.m, epilogue, isa, pool, scratch);
  multiplyFewRows(spec, args, epilogue, isa, pool, scratch);
}

}  // namespace lathe::cpu
