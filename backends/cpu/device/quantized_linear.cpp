// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/quantized_linear.h"

#include <algorithm>

#include "backends/cpu/device/amx_gemm.h"
#include "backends/cpu/device/amx_quantized.h"
#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/quantized_operands.h"
#include "backends/cpu/device/tiled_gemm.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

class QuantizedMatmul final : public WidenedMatmul {
 public:
  QuantizedMatmul(const QuantizedLinearSpec& spec, const QuantizedLinearArgs& args, KernelIsa isa)
      : WidenedMatmul(spec.weights.k, spec.weights.n, spec.weights.k),
        layer_(spec, args, isa),
        a_(args.a),
        weights_(static_cast<const char*>(args.weights)),
        panelBytes_(spec.weights.panelBytes()),
        lineBytes_(spec.weights.bits() * kPanelColumns / 8),
        widen_(spec.weights.bits() == 8 ? quantizedKernels(isa).widen8
                                        : quantizedKernels(isa).widen4) {}
  void widenRow(int64_t row, float* to) const override { layer_.rowOf(a_, row, to); }
  const float* widenPiece(int64_t panel, int64_t k0, int64_t depth, float* to) const override {
    alignas(64) float tail[2 * kPanelColumns];
    widen_(layer_.panel(panel, tail), k0, depth, to);
    return to;
  }
  std::span<const char> stored(int64_t panel, int64_t k0, int64_t depth) const override {
    return {weights_ + panel * panelBytes_ + k0 * lineBytes_, size_t(depth * lineBytes_)};
  }

 private:
  QuantizedOperands layer_;
  const void* a_;
  const char* weights_;
  const int64_t panelBytes_, lineBytes_;  // of a panel, and of an element of K in it
  const WidenQuantizedFn widen_;
};

// How rows are multiplied: as bytes on tiles, many or a few, as bf16 on tiles, as bytes in vector
// registers, by kernels that unpack a piece of weights for all rows, as f32, or few at a time.
enum class Path { AmxBytes, AmxFewBytes, Amx, ByteRows, Sharing, Tiled, FewRows };

bool hasTiles(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return isa.tier == Isa::Amx && isa.arithmetic == Bf16Arithmetic::Tiles &&
         spec.dtype == DType::BF16;
}
bool onTiles(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return hasTiles(spec, isa) && amxQuantizedTakes(spec.weights);
}
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
bool asBytes(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return spec.quantizesX && hasTiles(spec, isa) && amxBytesTake(spec.weights);
}
bool fewAsBytes(const QuantizedLinearSpec& spec, KernelIsa isa) {
  return spec.quantizesX && hasTiles(spec, isa) && amxFewBytesTake(spec.weights);
}

Path choosePath(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa) {
  const QuantizedShape& w = spec.weights;
  const bool few = m <= kAmxFewRows;
  if (!few && asBytes(spec, isa)) return Path::AmxBytes;
  if (few && m >= leastByteRows(w) && fewAsBytes(spec, isa)) return Path::AmxFewBytes;
  if (m >= kLeastTileRows && !spec.quantizesX && onTiles(spec, isa)) return Path::Amx;
  if (byDots(spec, isa)) return m > kMostFewRows ? Path::ByteRows : Path::FewRows;
  if (w.k == 0) return Path::FewRows;
  const QuantizedKernels& kernels = quantizedKernels(isa);
  if (m >= kernels.leastSharing && m <= kernels.mostSharing) return Path::Sharing;
  // More rows repay widening the weights for them.
  return !onTiles(spec, isa) && m > std::max<int64_t>(kQuantizedRows, kernels.fixedRows)
             ? Path::Tiled
             : Path::FewRows;
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
    bytes = std::max(bytes, tiledGemmScratchBytes(QuantizedMatmul(spec, {}, isa), threads, isa));
  return bytes;
}

bool gatesInside(const QuantizedLinearSpec& spec, int64_t m, KernelIsa isa) {
  if (spec.outDType.value_or(spec.dtype) != spec.dtype || !gatesByPanels(spec.weights.n))
    return false;
  switch (choosePath(spec, m, isa)) {
    case Path::AmxBytes:
    case Path::ByteRows:
    case Path::Tiled:
      return true;
    case Path::Amx:
      return m > kAmxFewRows;
    default:
      return false;
  }
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
  switch (choosePath(spec, args.m, isa)) {
    case Path::AmxBytes:
      return amxBytesGemm(tiles, pool, scratch);
    case Path::AmxFewBytes:
      return amxFewBytesGemm(tiles, pool, scratch);
    case Path::Amx:
      return amxQuantizedGemm(tiles, pool, scratch);
    case Path::ByteRows:
      return multiplyByteRows(spec, args, epilogue, isa, pool, scratch);
    case Path::Sharing:
      return multiplySharingRows(spec, args, epilogue, isa, pool, scratch);
    case Path::Tiled:
      return tiledGemm(QuantizedMatmul(spec, args, isa), args.m, epilogue, isa, pool, scratch);
    case Path::FewRows:
      return multiplyFewRows(spec, args, epilogue, isa, pool, scratch);
  }
}

}  // namespace lathe::cpu
