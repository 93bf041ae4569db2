// SPDX-License-Identifier: Apache-2.0
// The CPU backend's kernels on the shapes of a 0.5B-parameter Llama-like model, as shares of roofs
// measured in the same process: `cpu_kernels_bench [threads]`.
// Clock rates of shared machines change within seconds, so the peak is measured again around every
// sample, and a share is the shortest time against the highest peak seen around any of its samples.
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

void linearRow(ThreadPool& pool, KernelIsa isa, const char* name, int64_t m, int64_t k, int64_t n,
               double readRoof) {
  LinearSpec spec;
  spec.weights = {DType::BF16, k, n};
  spec.outDType = DType::BF16;
  // Weights must come from memory, as in a model: rotate over half a GiB of copies.
  const size_t bytes = spec.weights.bytes();
  const int copies = int(std::max<size_t>(2, (size_t(512) << 20) / bytes));
  Memory weights(bytes * size_t(copies)), a(size_t(m * k) * 2), c(size_t(m * n) * 2);
  const size_t needed = prepareLinear(spec, pool.threads(), isa);
  Memory scratch(needed);
  LinearArgs args{m, a.data.get(), nullptr, c.data.get()};
  auto run = [&](int i) {
    args.weights = reinterpret_cast<char*>(weights.data.get()) + size_t(i % copies) * bytes;
    linear(spec, args, pool, {scratch.data.get(), needed}, isa);
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
  std::printf("| %-12s | %4ld | %5ld | %6ld | %9.3f | %6.2f | %5.1f %% | %6.1f | %5.1f %% |\n",
              name, long(m), long(k), long(n), perCall * 1e3, work / perCall * 1e-12, s.share * 100,
              double(bytes) / perCall * 1e-9, double(bytes) / perCall / readRoof * 100);
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

int runAll(int threads) {
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

  // What the tiers below the machine's do with the same shapes: on AMX, AVX-512 with bf16 is
  // oneDNN, which uses the tiles too.
  std::vector<std::pair<const char*, KernelIsa>> tiers{{"this tier", best}};
  if (best.tier == Isa::Amx) tiers.push_back({"oneDNN", KernelIsa::of(Isa::Avx512)});

  std::printf(
      "\n| linear, bf16 |    m |     k |      n |        ms | TF/s   | of peak | GB/s   | of roof "
      "|\n");
  for (int64_t m : {1, 4, 16, 64, 512})
    for (auto [k, n] : {std::pair<int64_t, int64_t>{896, 1152},
                        {896, 896},
                        {896, 9728},
                        {4864, 896},
                        {896, 151936}})
      for (auto& [name, isa] : tiers)
        if (m > 4 || isa.tier == best.tier) linearRow(pool, isa, name, m, k, n, roofs.best());

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
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    if (std::from_chars(argv[1], end, threads).ptr != end || threads < 1) {
      std::fprintf(stderr, "expected a number of threads of at least 1, got \"%s\"\n", argv[1]);
      return 2;
    }
  }
  try {
    return runAll(threads);
  } catch (const lathe::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
