// SPDX-License-Identifier: Apache-2.0
// Which way a product is run: candidates, and a model of their time on an H200.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/device/library_matmul.h"
#include "backends/cuda/lowering/kernel/hopper_facts.h"
#include "backends/cuda/lowering/matmul/gemm_choices.h"
#include "backends/cuda/templates/lathe_matmul_plan.cuh"

namespace lathe::cuda {
namespace {

constexpr double kClock = 1.7e9;
constexpr double kLatency = 8e-7;       // of a load that misses every cache
constexpr double kTiledReach = 0.75;    // of the bandwidth, by asynchronous copies of tiles
constexpr double kBusyLatency = 1e-6;   // while the memory is near its bandwidth
constexpr double kOneProcessor = 8e10;  // bytes per second that one processor can draw
constexpr int64_t kSharedPerProcessor = 227 * 1024;
constexpr int kRegistersPerProcessor = 65536;
constexpr int kMostGemmRegisters = 250;  // of a thread, as gemmRegisters estimates them

double ceilOf(double a, double b) { return std::ceil(a / b); }

// Products of a warp's sums that GemvDot keeps, and 16-byte loads of a batch.
constexpr int kDotSums = 32, kBatchLoads = 8;

double gemvSeconds(const MatmulKernel& p, const MatmulSizes& s, const MatmulChoice& c) {
  const double bytes = double(sizeOf(p.dtype)), columns = s.n * (p.hooks.pairs ? 2 : 1);
  const bool mma = c.method == MatmulMethod::GemvMma;
  const GemvPlan plan = gemvPlan(p, s, c);
  const double warps = c.warpsN * c.warpsK;
  const double blockBytes = double(plan.groupColumns) * c.warpsN * plan.coveredK * bytes / c.splits;
  // The busiest processor: its blocks of the grid stride over whole blocks of columns.
  const double along = double(std::min(plan.blocks, plan.together));
  const double onProcessor = ceilOf(along * c.splits, kMultiprocessors);
  const double busy = std::min<double>(plan.resident, onProcessor);
  const double perProcessor = ceilOf(double(plan.blocks), along) * onProcessor * blockBytes;
  const double width = gemvWidth(int(s.k), int(bytes));
  // Warp instructions for the 512 bytes of one load.
  const double tiles = ceilOf(double(s.rows), 8);
  const double perLoad =
      mma ? 4 + 3 * tiles
          : 4 + width * (1 + double(s.rows)) + double(s.rows) * (2 + width) / c.columns;
  const double issue = perProcessor / (32 * width * bytes) * perLoad / (4 * kClock);
  // A batch is on its way while the other one is multiplied: a warp's turn is a latency and the
  // instructions of its scheduler's warps.
  const double batchBytes = 32 * plan.loads * width * bytes;
  const double turn = kBusyLatency + plan.loads * perLoad * busy * warps / (4 * kClock);
  const double rate = std::min(kOneProcessor, busy * warps * batchBytes / turn);
  const double memory = columns * double(s.k) * bytes / kMemoryBandwidth;
  // Rows are staged once per block; a norm needs them twice. Rows from L2 cost like weights there.
  const double rowBytes = double(s.rows) * double(s.k) * bytes;
  const double residentRows =
      plan.source == GemvSource::Global
          ? rowBytes * ceilOf(double(plan.blocks), along) * onProcessor / c.splits / kOneProcessor
          : rowBytes / (2 * kOneProcessor) + 1e-6;
  double joins = c.splits > 1 ? 1.5e-6 : c.warpsK > 1 ? 1e-7 : 0;
  if (mma) joins += 5e-7;  // sums of eight rows, however few there are
  if (p.hooks.sumPairs) joins += plan.cluster > 1 ? 6e-7 + 1e-7 * plan.cluster : 3e-7;
  // Near the memory's bandwidth requests wait for each other: the two times come together smoothly.
  const double streamed = std::pow(std::pow(memory, 4) + std::pow(perProcessor / rate, 4), 0.25);
  return kLaunchSeconds + std::max(streamed, issue) + residentRows + joins;
}

double gemmSeconds(const MatmulKernel& p, const MatmulSizes& s, const MatmulChoice& c) {
  const double halves = p.hooks.pairs ? 2 : 1, bytes = double(sizeOf(p.dtype));
  const double tiles =
      ceilOf(double(s.rows), c.tileM) * ceilOf(double(s.n), c.tileN) * double(s.batch) * c.splits;
  const double steps = ceilOf(ceilOf(double(s.k), kGemmTileK), c.splits);
  double step = 0;  // clocks of a processor for a step of one tile
  int64_t resident = 4;
  if (c.method == MatmulMethod::Gemm) {
    const int64_t shared = gemmSharedBytes(c.tileM, c.tileN, c.stages, p.hooks.pairs);
    const int threads = 32 * c.warpsM * c.warpsN;
    resident = std::min<int64_t>(kSharedPerProcessor / (shared + 1024), 512 / threads);
    const double tileN = halves * c.tileN;
    const double multiply = c.tileM * tileN * kGemmTileK / 1270.0;
    // Every warp reads its rows of both tiles; the tiles are written once.
    const double shuffled = (c.tileM * c.warpsN + tileN * c.warpsM + c.tileM + tileN) * 128.0;
    const double fetched = (c.tileM + tileN) * 128.0;
    step = std::max({multiply, shuffled / 128, fetched / 40});
  } else {
    step = double(c.tileM) * c.tileN * kGemmTileK / (p.dtype == DType::F32 ? 60.0 : 25.0);
  }
  // Fewer tiles than places share a processor with nobody: the ring must cover the latency alone.
  const double waves = ceilOf(tiles, kMultiprocessors);
  const double alone = (c.tileM + halves * c.tileN) * 128.0 * std::max(1, c.stages - 1);
  const double together = std::min<double>(double(std::max<int64_t>(resident, 1)), waves);
  const double stepSeconds =
      std::max(step / kClock, (c.tileM + halves * c.tileN) * 128.0 / (together * alone / kLatency));
  const double epilogue =
      c.tileM * c.tileN * halves * (c.splits > 1 ? 24.0 : 8.0) / 100 / kClock + 5e-7;
  // Every tile begins with an empty ring: its neighbours on the processor work meanwhile.
  const double fill = 1.5 * kLatency / together;
  // Rows that are normed on their way are read once before, by every tile.
  const double norm = p.hooks.staged ? waves * (std::min<double>(double(s.rows), c.tileM) *
                                                    double(s.k) * bytes / kOneProcessor +
                                                kLatency)
                                     : 0;
  const double moved = bytes * double(s.batch) *
                       (double(s.rows) * double(s.k) + halves * double(s.n) * double(s.k) +
                        double(s.rows) * double(s.n));
  return kLaunchSeconds + (c.splits > 1 ? 3e-6 : 0) + norm +
         std::max(waves * (steps * stepSeconds + epilogue),
                  moved / (kTiledReach * kMemoryBandwidth)) +
         waves * fill;
}

// As NVIDIA's library does: wgmma at the rate that a chip sustains at its power limit, less for
// smaller tiles, of which it takes those that fill the chip best.
double librarySeconds(const MatmulKernel& p, const MatmulSizes& s) {
  struct Tile {
    double m, n, share;
  };
  constexpr Tile kTiles[] = {{128, 256, 1}, {128, 128, 0.85}, {64, 128, 0.7}, {64, 64, 0.5}};
  const double rate = (p.dtype == DType::F32 ? 45e12 : 700e12) / kMultiprocessors;
  double compute = std::numeric_limits<double>::infinity();
  for (const Tile& t : kTiles)
    for (double splits : {1, 2, 4}) {
      const double tiles = ceilOf(double(s.rows), t.m) * ceilOf(double(s.n), t.n) * splits;
      const double each = 2 * t.m * t.n * double(s.k) / splits / (t.share * rate);
      compute =
          std::min(compute, ceilOf(tiles, kMultiprocessors) * each + (splits > 1 ? 1.5e-6 : 0));
    }
  const double moved =
      double(sizeOf(p.dtype)) *
      (double(s.rows) * double(s.k) + double(s.n) * double(s.k) + double(s.rows) * double(s.n));
  return kLaunchSeconds + 1.5e-6 + std::max(compute, moved / (0.8 * kMemoryBandwidth));
}

bool isSmall(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; }

// Weights that lie row by row, of constant sizes.
bool canStream(const MatmulKernel& p, const MatmulSizes& s) {
  auto n = p.n.asConstant(), k = p.k.asConstant();
  return p.batch.empty() && !p.transposedB && n && k && *n >= 1 && *k >= 1 && *k < 1 << 24 &&
         s.rows <= 16 && (isSmall(p.dtype) || p.dtype == DType::F32);
}

void addGemv(std::vector<MatmulChoice>& out, const MatmulKernel& p, const MatmulSizes& s) {
  const int bytes = int(sizeOf(p.dtype)), width = gemvWidth(int(s.k), bytes);
  for (MatmulMethod method : {MatmulMethod::GemvDot, MatmulMethod::GemvMma}) {
    const bool mma = method == MatmulMethod::GemvMma;
    if (mma && !(isSmall(p.dtype) && width == 8)) continue;
    for (int columns : {1, 2, 4}) {
      if (mma ? columns != 4 : columns * s.rows > kDotSums) continue;  // 4: loads of a step
      if (p.hooks.pairs && columns % 2) continue;
      for (int warpsK : {1, 2, 4, 8})
        for (int splits : {1, 2, 4})
          for (int steps : {1, 2, 4, 8}) {
            if (steps * columns > kBatchLoads) continue;
            MatmulChoice c;
            c.method = method;
            c.warpsN = 8 / warpsK;
            c.warpsK = warpsK;
            c.splits = splits;
            c.columns = columns;
            c.steps = steps;
            const GemvPlan plan = gemvPlan(p, s, c);
            // No more than a fifth of the loads beyond the end of k.
            const int64_t least = (s.k + plan.step - 1) / plan.step * plan.step;
            const bool wasteful = plan.coveredK * 4 > least * 5 && warpsK * splits * steps > 1;
            if (!wasteful && plan.resident >= 1) out.push_back(c);
          }
    }
  }
}

void addGemm(std::vector<MatmulChoice>& out, const MatmulKernel& p, const MatmulSizes& s) {
  auto add = [&](int tileM, int tileN, int stages, int warpsM, int warpsN) {
    for (int splits : {1, 2, 4, 8}) {
      // Partial sums need room that is known when compiling.
      const bool bounded = s.rows <= 512 && p.n.asConstant() && p.batch.empty();
      if (splits > 1 && (!bounded || s.k < 256 * splits)) continue;
      MatmulChoice c;
      c.method = MatmulMethod::Gemm;
      c.tileM = tileM;
      c.tileN = tileN;
      c.stages = stages;
      c.warpsM = warpsM;
      c.warpsN = warpsN;
      c.splits = splits;
      // A head's sum is that of columns of one tile.
      if (p.hooks.sumPairs && tileN % p.hooks.sumPairs) continue;
      if (gemmRegisters(c, p.hooks.pairs) <= kMostGemmRegisters) out.push_back(c);
    }
  };
  if (s.rows <= 32) {
    add(32, 64, 4, 1, 4);
    add(32, 128, 4, 1, 4);
  }
  add(64, 64, 4, 2, 2);
  add(64, 128, 4, 2, 2);
  add(64, 128, 4, 2, 4);
  if (!p.hooks.pairs) {
    add(128, 128, 3, 2, 2);
    add(128, 128, 3, 2, 4);
    add(128, 128, 4, 2, 4);
    add(128, 256, 3, 2, 4);
  } else {
    add(128, 64, 3, 2, 4);
    add(128, 128, 3, 2, 4);
  }
}

}  // namespace

GemvPlan gemvPlan(const MatmulKernel& p, const MatmulSizes& s, const MatmulChoice& c) {
  const bool mma = c.method == MatmulMethod::GemvMma;
  const int bytes = int(sizeOf(p.dtype)), k = int(s.k);
  GemvPlan plan;
  plan.step = mma ? 64 : 32 * gemvWidth(k, bytes);
  plan.groupColumns = mma ? 16 : c.columns;
  plan.loads = c.steps * c.columns;
  plan.coveredK = gemvCoveredK(k, plan.step, c.warpsK * c.splits, c.steps);
  const int64_t here = p.hooks.pairs ? plan.groupColumns / 2 : plan.groupColumns;
  plan.blocks = (s.n + here * c.warpsN - 1) / (here * c.warpsN);
  plan.rows = mma ? (s.rows + 7) / 8 * 8 : s.rows;
  const int64_t stride = mma ? gemvMmaStride(plan.coveredK) : gemvDotStride(plan.coveredK, bytes);
  plan.sharedBytes = s.rows * stride * bytes;
  plan.source = p.hooks.staged ? GemvSource::Staged : GemvSource::Copied;
  if (plan.sharedBytes > kGemvSharedLimit && !p.hooks.staged) {
    plan.source = GemvSource::Global;
    plan.sharedBytes = 0;
  }
  const int64_t terms = p.hooks.sumPairs ? 4 * c.warpsN * here * plan.rows : 0;
  const int64_t joined = 2 * 4 * c.warpsN * c.warpsK * plan.groupColumns * plan.rows + terms;
  const int64_t shared = plan.sharedBytes + joined + 2048;
  // Two batches of loads, the sums (and what adds them up over a warp), one column's weights and
  // the row's values as floats, addresses.
  const int width = gemvWidth(k, bytes),
            sums = mma ? int(plan.rows) / 8 * 16 : c.columns * int(s.rows);
  const int widened = mma ? 8 : width * (c.columns + 1);
  plan.registers = 2 * 4 * plan.loads + sums * 3 / 2 + widened + 24;
  const int64_t byRegisters =
      std::max(1, kRegistersPerProcessor / (plan.registers * 32 * c.warpsN * c.warpsK));
  plan.resident = int(std::min<int64_t>({kSharedPerProcessor / shared, byRegisters, 2}));
  const int cluster = gemvCluster(int(here) * c.warpsN, p.hooks.sumPairs);
  plan.cluster = std::max(cluster, 1);
  plan.together = int64_t(kMultiprocessors) * plan.resident;
  if (cluster > 1) plan.together = kGroups * (kGroupProcessors * plan.resident / cluster) * cluster;
  if (cluster == 0 || (p.hooks.sumPairs && c.splits > 1)) plan.resident = 0;
  return plan;
}

int gemmRegisters(const MatmulChoice& c, bool pairs) {
  const int halves = pairs ? 2 : 1, threads = 32 * c.warpsM * c.warpsN;
  const int tilesM = c.tileM / c.warpsM / 16, tilesN = halves * c.tileN / c.warpsN / 8;
  // Sums; the fragments of two steps of k; addresses of the 16-byte words that a thread copies, at
  // most four of them at a time for each operand.
  const int copies = std::min((c.tileM + halves * c.tileN) * kGemmTileK / 8 / threads, 8);
  return 4 * tilesM * tilesN + 2 * (4 * tilesM + 2 * tilesN) + 4 * copies;
}

double matmulSeconds(const MatmulKernel& matmul, const MatmulSizes& sizes,
                     const MatmulChoice& choice) {
  switch (choice.method) {
    case MatmulMethod::GemvDot:
    case MatmulMethod::GemvMma:
      return gemvSeconds(matmul, sizes, choice);
    case MatmulMethod::Gemm:
    case MatmulMethod::Simt:
      return gemmSeconds(matmul, sizes, choice);
    case MatmulMethod::Library:
      // The order is the library's; measured, another may be ahead.
      return librarySeconds(matmul, sizes) * (1 + 1e-3 * choice.rank);
  }
  return 0;
}

std::vector<MatmulChoice> matmulCandidates(const MatmulKernel& matmul, const MatmulSizes& sizes) {
  std::vector<MatmulChoice> out;
  const MatmulHooks& hooks = matmul.hooks;
  if (sizes.rows > hooks.mostRows) return out;
  if (canStream(matmul, sizes)) addGemv(out, matmul, sizes);
  // Hooks for few rows alone take tiles where there is no stream, or none whose rows fit in shared
  // memory.
  const bool isForFew = hooks.mostRows < std::numeric_limits<int64_t>::max();
  if (!hooks.staged || hooks.normed) {
    if (isSmall(matmul.dtype)) {
      if (!isForFew || out.empty()) addGemm(out, matmul, sizes);
    } else if (!hooks.pairs && (!isForFew || out.empty())) {
      MatmulChoice simt;
      simt.warpsM = 8;
      out.push_back(simt);
    }
    // Below, the launches of a decode step overlap, which a library's do not.
    constexpr int64_t kLibraryRows = 128;
    MatmulChoice library;
    library.method = MatmulMethod::Library;
    if (matmul.plain && sizes.rows > kLibraryRows &&
        (isSmall(matmul.dtype) || matmul.dtype == DType::F32))
      for (; library.rank < kLibraryRanks; ++library.rank) out.push_back(library);
  }
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t i = 0; i < out.size(); ++i)
    ranked.emplace_back(matmulSeconds(matmul, sizes, out[i]), i);
  std::sort(ranked.begin(), ranked.end());
  std::vector<MatmulChoice> sorted;
  for (const auto& [seconds, index] : ranked) sorted.push_back(out[index]);
  return sorted;
}

}  // namespace lathe::cuda
