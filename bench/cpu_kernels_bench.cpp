// SPDX-License-Identifier: Apache-2.0
// The CPU backend's kernels on the shapes of a 0.5B-parameter Llama-like model, as shares of roofs
// measured in the same process: `cpu_kernels_bench [threads] [weights...]`, of f32, bf16, int8,
// int4, and int8x8 and int4x8, whose rows are rounded to 8 bits. Clock rates of shared machines
// change within seconds, so the peak is measured again around every sample, and a share is the
// shortest time against the highest peak seen around any of its samples.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/device/attention.h"
#include "backends/cpu/device/linear.h"
#include "backends/cpu/device/matmul.h"
#include "backends/cpu/device/quantized_linear.h"
#include "backends/cpu/device/roofs.h"
#include "lathe/runtime/error.h"

namespace {

using namespace lathe;
using namespace lathe::cpu;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Page-aligned memory filled with small bf16 numbers.
struct Memory {
  explicit Memory(size_t bytes) {
    size_t rounded = (bytes + 4096) / 4096 * 4096;
    data.reset(static_cast<uint16_t*>(std::aligned_alloc(4096, rounded)));
    for (size_t i = 0; i < rounded / 2; ++i) data.get()[i] = uint16_t(0x3c00 + i * 7 % 64);
  }
  struct Free {
    void operator()(uint16_t* at) const { std::free(at); }
  };
  std::unique_ptr<uint16_t, Free> data;
};

struct Sample {
  double seconds = 0;
  double share = 0;  // of the peak of the same moments
};

// Shortest of `repeats` runs; `work` is the FLOPs of one.
Sample measure(ThreadPool& pool, PeakKind kind, double work, int repeats,
               const std::function<void(int)>& run) {
  Sample best;
  double peak = 0;
  run(0);
  for (int i = 1; i <= repeats; ++i) {
    peak = std::max(peak, measurePeak(kind, pool, 0));
    double start = now();
    run(i);
    double seconds = now() - start;
    if (i == 1 || seconds < best.seconds) best.seconds = seconds;
  }
  best.share = work / best.seconds / std::max(peak, measurePeak(kind, pool, 0));
  return best;
}

// A linear layer whose weights lie in `bytes`, which all are read once.
struct Layer {
  size_t bytes = 0, scratchBytes = 0;
  std::function<void(const char* weights, Scratch scratch)> run;
};

// Weights as they are stored, or in few bits: int8 with a scale for each row, int4 with one for 32.
Layer layerOf(const std::string& weights, ThreadPool& pool, KernelIsa isa, int64_t m, int64_t k,
              int64_t n, const void* a, void* c) {
  if (weights == "f32" || weights == "bf16") {
    LinearSpec spec;
    spec.outDType = weights == "f32" ? DType::F32 : DType::BF16;
    spec.weights = {spec.outDType, k, n};
    return {spec.weights.bytes(), prepareLinear(spec, pool.threads(), isa),
            [=, &pool](const char* w, Scratch scratch) {
              linear(spec, {m, a, w, c}, pool, scratch, isa);
            }};
  }
  QuantizedLinearSpec spec;
  spec.dtype = DType::BF16;
  const bool halves = weights.starts_with("int4");
  spec.quantizesX = weights.ends_with("x8");
  spec.weights = {halves ? DType::I4 : DType::I8, k, n, halves ? 32 : k};
  spec.scaleDType = halves ? DType::BF16 : DType::F32;
  const PackedShape scales{DType::BF16, spec.weights.scales(), n};
  const size_t held = alignUp64(spec.weights.bytes());
  return {held + (halves ? scales.bytes() : size_t(n) * 4),
          prepareQuantizedLinear(spec, pool.threads(), isa),
          [=, &pool](const char* w, Scratch scratch) {
            quantizedLinear(spec, {.m = m, .a = a, .weights = w, .scale = w + held, .c = c}, pool,
                            scratch, isa);
          }};
}

// What oneDNN does with plain f32 weights.
Layer plainLayer(ThreadPool& pool, int64_t m, int64_t k, int64_t n, const void* a, void* c) {
  MatmulArgs args;
  args.a = a;
  args.c = c;
  args.m = m;
  args.k = args.aRowStride = k;
  args.n = args.bRowStride = args.cRowStride = n;
  return {size_t(k * n) * 4, matmulScratchBytes(args, pool.threads()),
          [=, &pool](const char* w, Scratch scratch) mutable {
            args.b = w;
            matmul(args, pool, scratch);
          }};
}

void linearRow(ThreadPool& pool, const std::string& name, const Layer& layer, int64_t m, int64_t k,
               int64_t n, double readRoof) {
  // Weights must come from memory, as in a model: rotate over half a GiB of copies.
  const size_t bytes = alignUp64(layer.bytes);
  const int copies = int(std::max<size_t>(2, (size_t(512) << 20) / bytes));
  Memory weights(bytes * size_t(copies)), scratch(layer.scratchBytes);
  auto run = [&](int i) {
    layer.run(reinterpret_cast<char*>(weights.data.get()) + size_t(i % copies) * bytes,
              {scratch.data.get(), layer.scratchBytes});
  };
  double work = 2.0 * double(m) * double(k) * double(n);
  // Lower tiers are judged by the machine's peak too: oneDNN chooses its own instructions.
  Sample s = measure(pool, bestPeakKind(true), work, 15, run);
  // Small m: a run of calls on cold weights gives the bandwidth, best of five.
  double perCall = m <= 16 ? 1e9 : s.seconds;
  if (m <= 16)
    for (int round = 0; round < 5; ++round) {
      int calls = int(std::max<size_t>(1, (size_t(256) << 20) / bytes));
      double start = now();
      for (int i = 0; i < calls; ++i) run(round * calls + i);
      perCall = std::min(perCall, (now() - start) / calls);
    }
  std::printf("| %-12s | %4ld | %5ld | %6ld | %9.3f | %6.3f | %5.1f %% | %6.1f | %5.1f %% |\n",
              name.c_str(), long(m), long(k), long(n), perCall * 1e3, work / perCall * 1e-12,
              s.share * 100, double(layer.bytes) / perCall * 1e-9,
              double(layer.bytes) / perCall / readRoof * 100);
  std::fflush(stdout);
}

void attentionRow(ThreadPool& pool, KernelIsa isa, const char* name, int64_t queries, int64_t keys,
                  double readRoof) {
  const int64_t heads = 14, kvHeads = 2, dim = 64;
  Memory q(size_t(queries * heads * dim) * 2), k(size_t(keys * kvHeads * dim) * 2),
      v(size_t(keys * kvHeads * dim) * 2), out(size_t(queries * heads * dim) * 2);
  AttentionArgs args;
  args.dtype = DType::BF16;
  args.batch = 1;
  args.qHeads = heads;
  args.kvHeads = kvHeads;
  args.qLen = queries;
  args.kLen = keys;
  args.headDim = args.valueDim = dim;
  args.q = q.data.get();
  args.k = k.data.get();
  args.v = v.data.get();
  args.out = out.data.get();
  args.qStrides = args.outStrides = {heads * queries * dim, dim, heads * dim};
  args.kStrides = args.vStrides = {kvHeads * keys * dim, keys * dim, dim};
  args.scale = 0.125f;
  args.causal = true;
  args.causalOffset = keys - queries;
  const size_t needed = attentionScratchBytes(args, pool.threads(), isa);
  Memory scratch(needed);
  const double pairs = double(queries) * (double(keys) - double(queries - 1) / 2);
  const double work = 4.0 * double(heads * dim) * pairs;
  Sample s = measure(pool, bestPeakKind(true, isa), work, 15,
                     [&](int) { attention(args, pool, {scratch.data.get(), needed}, isa); });
  double bytes = double(keys * kvHeads * dim) * 4;
  std::printf("| %-12s | %5ld | %5ld | %9.3f | %6.3f | %5.1f %% | %6.1f | %5.1f %% |\n", name,
              long(queries), long(keys), s.seconds * 1e3, work / s.seconds * 1e-12, s.share * 100,
              bytes / s.seconds * 1e-9, bytes / s.seconds / readRoof * 100);
}

int runAll(int threads, const std::vector<std::string>& kinds) {
  ThreadPool pool(threads);
  const KernelIsa best = KernelIsa::current();
  std::printf("tier %s, %d threads\n", std::string(nameOf(best.tier)).c_str(), threads);
  for (bool bf16 : {false, true})
    std::printf("peak %s: %.3f TFLOP/s\n", bf16 ? "bf16" : "f32",
                measurePeak(bestPeakKind(bf16), pool) * 1e-12);
  ReadRoofs roofs = measureReadRoofs(pool);
  for (const ReadRoof& r : roofs.tried)
    std::printf("read %2d streams%s: %.1f GB/s\n", r.streams, r.prefetch ? " + prefetch" : "",
                r.bytesPerSecond * 1e-9);

  std::printf(
      "\n| linear       |    m |     k |      n |        ms | TF/s   | of peak | GB/s   | of roof "
      "|\n");
  for (int64_t m : {1, 2, 4, 8, 16, 64, 512})
    for (auto [k, n] : {std::pair<int64_t, int64_t>{896, 1152},
                        {896, 896},
                        {896, 9728},
                        {4864, 896},
                        {896, 151936}}) {
      Memory a(size_t(m * k) * 4), c(size_t(m * n) * 4);
      auto row = [&](const std::string& name, const Layer& layer) {
        linearRow(pool, name, layer, m, k, n, roofs.best());
      };
      for (const std::string& kind : kinds)
        row(kind, layerOf(kind, pool, best, m, k, n, a.data.get(), c.data.get()));
      if (m <= 8) continue;
      // What the tier below does with bf16, which is oneDNN with tiles, and oneDNN in f32 where it
      // reads none of the packed weights.
      if (best.tier == Isa::Amx)
        row("oneDNN bf16",
            layerOf("bf16", pool, KernelIsa::of(Isa::Avx512), m, k, n, a.data.get(), c.data.get()));
      if (best.tier == Isa::Avx2)
        row("oneDNN f32", plainLayer(pool, m, k, n, a.data.get(), c.data.get()));
    }

  std::printf(
      "\n| attention    |     q |     k |        ms | TF/s   | of peak | GB/s   | of roof |\n");
  for (auto [q, k] : {std::pair<int64_t, int64_t>{128, 128},
                      {512, 512},
                      {2048, 2048},
                      {1, 512},
                      {1, 4096},
                      {1, 32768}})
    attentionRow(pool, best, "causal bf16", q, k, roofs.best());

  for (const PrimitiveInfo& info : primitiveReport())
    if (info.slow) std::printf("slow primitive: %s %s\n", info.shape.c_str(), info.impl.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = ThreadPool::global().threads();
  std::vector<std::string> kinds(argv + std::min(argc, 2), argv + argc);
  const std::vector<std::string> known = {"f32", "bf16", "int8", "int4", "int8x8", "int4x8"};
  for (const std::string& kind : kinds)
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      std::fprintf(stderr, "expected f32, bf16, int8, int4, int8x8 or int4x8, got \"%s\"\n",
                   kind.c_str());
      return 2;
    }
  if (kinds.empty()) kinds = {"bf16"};
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    if (std::from_chars(argv[1], end, threads).ptr != end || threads < 1) {
      std::fprintf(stderr, "expected a number of threads of at least 1, got \"%s\"\n", argv[1]);
      return 2;
    }
  }
  try {
    return runAll(threads, kinds);
  } catch (const lathe::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
