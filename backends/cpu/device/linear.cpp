// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/linear.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/device/amx_gemm.h"
#include "backends/cpu/device/gated.h"
#include "backends/cpu/device/panel_gemm.h"
#include "backends/cpu/device/primitives.h"
#include "backends/cpu/device/tiled_gemm.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

// Rows of the primitives; what is left below the smallest runs on the panel kernels.
constexpr std::array<int64_t, 6> kRowBuckets = {256, 128, 64, 32, 16, 8};
constexpr int64_t kMinRowsPerThread = 64;
// Columns of one primitive call at most: its weights stay in the L2 cache over all row chunks.
constexpr int64_t kBlockPanels = 8;

enum class Path { Panels, Tiled, Amx, OneDnn };

Path choosePath(const LinearSpec& spec, int64_t m, KernelIsa isa) {
  const PackedShape& w = spec.weights;
  if (w.k == 0) return Path::Panels;
  // Few rows wait for memory, whatever multiplies. Where dot products are slow they, and no longer
  // memory, would be the limit from 3 rows on.
  const bool slowDot = w.dtype == DType::BF16 && isa.bf16 && isa.arithmetic != Bf16Arithmetic::Dot;
  if (m <= (slowDot ? 2 : panelKernels(isa).fewRows)) return Path::Panels;
  // oneDNN 3.2 reads packed weights only on AVX-512.
  if (isa.tier == Isa::Avx2 || w.dtype == DType::F32) return Path::Tiled;
  switch (isa.arithmetic) {
    case Bf16Arithmetic::Tiles:
      return Path::Amx;
    case Bf16Arithmetic::Dot:
      return Path::OneDnn;
    case Bf16Arithmetic::Widened:
      break;
  }
  return Path::Tiled;
}

// Columns of the blocks that a column split deals out: equal shares, at most kBlockPanels each.
int64_t columnBlock(const PackedShape& w, int threads) {
  int64_t rounds = ceilDiv(w.panels(), threads * kBlockPanels);
  return ceilDiv(w.panels(), threads * rounds) * kPanelColumns;
}

// Products go to a dense f32 block in the cache, so that layers of any output share primitives.
// `dtype` and `aRow` are those of A as the primitive sees it.
MatmulKey chunkKey(const LinearSpec& spec, DType dtype, int64_t aRow, int64_t m, int64_t n) {
  MatmulKey key;
  key.dtype = dtype;
  key.m = m;
  key.k = spec.weights.k;
  key.n = n;
  key.aRow = aRow;
  key.packedB = true;
  key.cRow = n;
  return key;
}

LinearSpec withDefaults(LinearSpec spec) {
  const PackedShape& w = spec.weights;
  if (spec.lda == 0) spec.lda = w.k;
  const int64_t columns = spec.gate ? w.n / 2 : w.n;
  if (spec.ldc == 0) spec.ldc = columns;
  if (w.dtype != DType::F32 && w.dtype != DType::BF16)
    throw Error(ErrorCode::Unsupported,
                "expected packed weights of f32 or bf16, got " + std::string(nameOf(w.dtype)));
  if (spec.outDType != DType::F32 && spec.outDType != w.dtype)
    throw Error(ErrorCode::Unsupported, "expected a linear output of f32 or the weights' " +
                                            std::string(nameOf(w.dtype)) + ", got " +
                                            std::string(nameOf(spec.outDType)));
  if (spec.hasBias && spec.biasDType != DType::F32 && spec.biasDType != DType::BF16)
    throw Error(ErrorCode::Unsupported,
                "expected a bias of f32 or bf16, got " + std::string(nameOf(spec.biasDType)));
  if (w.k < 0 || w.n < 0 || spec.lda < w.k || spec.ldc < columns)
    throw Error(ErrorCode::InvalidArgument,
                "expected lda >= k and ldc >= n, got k " + std::to_string(w.k) + ", lda " +
                    std::to_string(spec.lda) + ", n " + std::to_string(w.n) + ", ldc " +
                    std::to_string(spec.ldc));
  return spec;
}

// One worker's slice of the scratch on the oneDNN path.
struct OneDnnSlice {
  size_t scratchpad = 0, sums = 0, rows = 0;
  size_t bytes() const { return scratchpad + sums + rows; }
};

OneDnnSlice oneDnnSlice(const LinearSpec& spec, int threads) {
  OneDnnSlice slice;
  int64_t block = columnBlock(spec.weights, threads);
  for (int64_t n : {std::min(block, spec.weights.n), spec.weights.n % block}) {
    if (n == 0) continue;
    for (int64_t m : kRowBuckets)
      slice.scratchpad = std::max(
          slice.scratchpad,
          matmulPrimitive(chunkKey(spec, spec.weights.dtype, spec.lda, m, n))->scratchBytes());
  }
  slice.scratchpad = alignUp64(slice.scratchpad);
  slice.sums = alignUp64(size_t(kRowBuckets[0] * block) * 4);
  slice.rows = panelRowsBytes(spec.weights, kRowBuckets.back());
  return slice;
}

class PackedMatmul final : public WidenedMatmul {
 public:
  PackedMatmul(const LinearSpec& spec, const LinearArgs& args, KernelIsa isa)
      : WidenedMatmul(spec.weights.k, spec.weights.n,
                      spec.weights.blocks() * spec.weights.blockK()),
        spec_(spec),
        args_(args),
        isa_(isa) {}
  void widenRow(int64_t row, float* to) const override {
    const PackedShape& w = spec_.weights;
    const char* from =
        static_cast<const char*>(args_.a) + size_t(row * spec_.lda) * sizeOf(w.dtype);
    copyPanelRows(w, kPanelKernelsAvx2, from, spec_.lda, 1, to);
  }
  const float* widenPiece(int64_t panel, int64_t k0, int64_t depth, float* to) const override {
    return cpu::widenPiece(spec_.weights, at(panel), k0, depth, isa_, to);
  }
  std::span<const char> stored(int64_t panel, int64_t k0, int64_t depth) const override {
    return storedPiece(spec_.weights, at(panel), k0, depth);
  }

 private:
  const char* at(int64_t panel) const {
    return static_cast<const char*>(args_.weights) + panel * spec_.weights.panelBytes();
  }

  const LinearSpec& spec_;
  const LinearArgs& args_;
  const KernelIsa isa_;
};

size_t pathScratchBytes(Path path, const LinearSpec& spec, int threads, KernelIsa isa) {
  switch (path) {
    case Path::Panels:
      break;
    case Path::Amx:
      return amxGemmScratchBytes(spec.weights, threads);
    case Path::OneDnn:
      return oneDnnSlice(spec, threads).bytes() * size_t(threads);
    case Path::Tiled:
      return tiledGemmScratchBytes(PackedMatmul(spec, {}, isa), threads, isa);
  }
  return panelGemmScratchBytes(spec.weights);
}

// Rows [row0, row1) x columns [col0, col1) on the calling thread, in chunks of the bucket sizes.
void runOneDnn(const LinearSpec& spec, const LinearArgs& args, const Epilogue& epilogue,
               const PanelKernels& kernels, int64_t row0, int64_t row1, int64_t col0, int64_t col1,
               char* slice, const OneDnnSlice& sizes) {
  const PackedShape& w = spec.weights;
  const char* a = static_cast<const char*>(args.a);
  const char* panels =
      static_cast<const char*>(args.weights) + col0 / kPanelColumns * w.panelBytes();
  float* sums = reinterpret_cast<float*>(slice + sizes.scratchpad);
  while (row0 < row1) {
    const char* from = a + size_t(row0 * spec.lda) * sizeOf(w.dtype);
    auto bucket = std::find_if(kRowBuckets.begin(), kRowBuckets.end(),
                               [&](int64_t rows) { return rows <= row1 - row0; });
    if (bucket == kRowBuckets.end()) {
      PanelRows x = preparePanelRows(w, kernels, from, spec.lda, row1 - row0,
                                     slice + sizes.scratchpad + sizes.sums);
      runPanels(w, kernels, x, row0, row1 - row0, args.weights, col0 / kPanelColumns,
                ceilDiv(col1, kPanelColumns), epilogue);
      return;
    }
    matmulPrimitive(chunkKey(spec, w.dtype, spec.lda, *bucket, col1 - col0))
        ->execute(from, panels, sums, slice);
    kernels.store(sums, col1 - col0, *bucket, col1 - col0, row0, col0, epilogue);
    row0 += *bucket;
  }
}

void oneDnnGemm(const LinearSpec& spec, const LinearArgs& args, const Epilogue& epilogue,
                KernelIsa isa, ThreadPool& pool, Scratch scratch) {
  const int threads = pool.threads();
  const PanelKernels& kernels = panelKernels(isa);
  const OneDnnSlice sizes = oneDnnSlice(spec, threads);
  const int64_t n = spec.weights.n, block = columnBlock(spec.weights, threads);
  const bool splitRows = args.m >= threads * kMinRowsPerThread;
  auto slice = [&](int worker) {
    return static_cast<char*>(scratch.data) + size_t(worker) * sizes.bytes();
  };
  auto columns = [&](int64_t row0, int64_t row1, int64_t index, int worker) {
    runOneDnn(spec, args, epilogue, kernels, row0, row1, index * block,
              std::min(n, (index + 1) * block), slice(worker), sizes);
  };
  if (splitRows) {
    pool.parallelFor(0, args.m, kRowBuckets.back(), [&](int64_t row0, int64_t row1, int worker) {
      for (int64_t index = 0; index < ceilDiv(n, block); ++index)
        columns(row0, row1, index, worker);
    });
  } else {
    pool.runDynamic(ceilDiv(n, block),
                    [&](int64_t index, int worker) { columns(0, args.m, index, worker); });
  }
}

}  // namespace

bool gatesInside(const LinearSpec& spec, int64_t m, KernelIsa isa) {
  const PackedShape& w = spec.weights;
  if (spec.outDType != w.dtype || spec.hasBias || !gatesByPanels(w.n)) return false;
  const Path path = choosePath(spec, m, isa);
  return path == Path::Tiled || (path == Path::Amx && m > kAmxFewRows);
}

size_t prepareLinear(const LinearSpec& given, int threads, KernelIsa isa) {
  const LinearSpec spec = withDefaults(given);
  if (spec.weights.n == 0) return 0;
  size_t few = pathScratchBytes(choosePath(spec, 1, isa), spec, threads, isa);
  size_t many = pathScratchBytes(choosePath(spec, kRowBuckets[0], isa), spec, threads, isa);
  return std::max(few, many);
}

void linear(const LinearSpec& given, const LinearArgs& args, ThreadPool& pool, Scratch scratch,
            KernelIsa isa) {
  const LinearSpec spec = withDefaults(given);
  const PackedShape& w = spec.weights;
  if (args.m <= 0 || w.n == 0) return;
  if (spec.gate && !gatesInside(spec, args.m, isa))
    throw Error(ErrorCode::InvalidArgument, "expected a layer whose gate is applied inside, got " +
                                                std::to_string(args.m) + " rows of [" +
                                                std::to_string(w.k) + ", " + std::to_string(w.n) +
                                                "]; ask gatesInside");
  // gatesInside has refused a bias.
  if (spec.gate && (spec.activation != Activation::none || args.residual))
    throw Error(ErrorCode::InvalidArgument,
                "expected a gated layer with neither another activation nor a residual, got " +
                    std::string(args.residual ? "a residual" : nameOf(spec.activation)) +
                    "; leave the gate to gateProducts");
  const Path path = choosePath(spec, args.m, isa);
  const size_t needed = pathScratchBytes(path, spec, pool.threads(), isa);
  if (scratch.bytes < needed)
    throw Error(ErrorCode::InvalidArgument, "expected " + std::to_string(needed) +
                                                " bytes of scratch for a linear layer, got " +
                                                std::to_string(scratch.bytes) +
                                                "; ask prepareLinear");
  Epilogue epilogue;
  epilogue.bias = spec.hasBias ? args.bias : nullptr;
  epilogue.biasDType = spec.biasDType;
  epilogue.activation = spec.activation;
  epilogue.gate = spec.gate;
  epilogue.residual = args.residual;
  epilogue.ldr = args.ldr ? args.ldr : w.n;
  epilogue.c = args.c;
  epilogue.ldc = spec.ldc;
  epilogue.outDType = spec.outDType;
  switch (path) {
    case Path::Panels:
      panelGemm(w, isa, args.m, args.a, spec.lda, args.weights, epilogue, pool, scratch);
      break;
    case Path::Amx:
      amxGemm({w, args.m, static_cast<const uint16_t*>(args.a), spec.lda, args.weights, epilogue},
              pool, scratch);
      break;
    case Path::OneDnn:
      oneDnnGemm(spec, args, epilogue, isa, pool, scratch);
      break;
    case Path::Tiled:
      tiledGemm(PackedMatmul(spec, args, isa), args.m, epilogue, isa, pool, scratch);
      break;
  }
}

}  // namespace lathe::cpu
