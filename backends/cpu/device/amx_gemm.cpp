// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/amx_gemm.h"

#include <algorithm>

#include "backends/cpu/device/amx_rows.h"
#include "backends/cpu/device/calibration.h"

// Few rows wait for the weights: one row of tiles meets several panels that are read as streams of
// memory, some blocks of each in turn, with the pattern that was measured to be fastest.

namespace lathe::cpu {
namespace {

constexpr int64_t kMinRowsPerThread = 128, kThreadPanels = 6;
constexpr int64_t kTurnBlocks = 4;  // K blocks of a stream before the next one's

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

// Weights as they lie in memory: their lines are fetched into the L2 cache.
struct StoredPanels {
  static constexpr bool kBytes = false;
  const char* weights;
  int64_t panelBytes;
  const char* next = nullptr;
  int64_t lines = 0;  // a step

  const char* part(PanelPart p) const {
    return weights + p.panel * panelBytes + p.k0 * kPanelBlockBytes;
  }
  PairPlaces places() const { return kTileByTile; }
  void prepare(PanelPart p, int64_t steps) {
    next = part(p);
    lines = (p.count * (kPanelBlockBytes / 64) + steps - 1) / steps;
  }
  void step() {
    for (int64_t i = 0; i < lines; ++i, next += 64) _mm_prefetch(next, _MM_HINT_T1);
  }
  void finish(Finished&, int64_t, int64_t) const {}
  void beginRows(int64_t, int64_t) const {}
};

void runManyRows(const RowsMatmul& p, const RowsTasks& tasks, ThreadPool::Claims& claims,
                 StoredPanels panels, char* tiles, float* sums) {
  multiplyRows(p, tasks, claims, panels, tiles, sums);
}

// sums[16][64] (+)= one row tile of A x a panel over `blocks` K blocks, fetched `prefetch` bytes
// ahead, if not 0.
void tiles1x4(const char* a, const char* b, int64_t blocks, bool first, float* sums,
              int64_t prefetch) {
  begin1x4(first, sums);
  for (int64_t k = 0; k < blocks; ++k, a += kTileBytes, b += kPanelBlockBytes) {
    for (int64_t i = 0; prefetch && i < kPanelBlockBytes; i += 64)
      _mm_prefetch(b + prefetch + i, _MM_HINT_T0);
    step1x4<Operands::bf16>(a, b);
  }
  end1x4(sums);
}

LATHE_ISA_END

void runFewRows(const AmxGemm& g, const PanelGroups& groups, ThreadPool::Claims& claims,
                char* tiles, float* sums) {
  PanelGroups::Group group = groups.next(claims);
  if (!group.count) return;
  const int64_t blocks = g.shape.blocks(), panelBytes = g.shape.panelBytes();
  const int64_t prefetch = readPatternOf(g.shape).prefetch;
  AmxTileConfig config;
  for (int tile = 0; tile < 6; ++tile) config.rows[tile] = static_cast<unsigned char>(g.m);
  tileConfigure(config);
  tileA(g.a, g.lda, g.m, kAmxFewRows, g.shape.k, blocks, kAmxFewRows, tiles);
  for (; group.count; group = groups.next(claims)) {
    auto panel = [&](int64_t stream) { return group.first + stream * group.stride; };
    auto sumsOf = [&](int64_t stream) { return sums + stream * kAmxFewRows * kPanelColumns; };
    for (int64_t block = 0; block < blocks; block += kTurnBlocks)
      for (int64_t s = 0; s < group.count; ++s)
        tiles1x4(
            tiles + block * kTileBytes,
            static_cast<const char*>(g.weights) + panel(s) * panelBytes + block * kPanelBlockBytes,
            std::min(kTurnBlocks, blocks - block), block == 0, sumsOf(s), prefetch);
    for (int64_t s = 0; s < group.count; ++s) {
      const int64_t col0 = panel(s) * kPanelColumns;
      amxStoreKernels().store(sumsOf(s), kPanelColumns, g.m,
                              std::min(kPanelColumns, g.shape.n - col0), 0, col0, g.epilogue);
    }
  }
  tileRelease();
}

}  // namespace

size_t amxGemmScratchBytes(const PackedShape& shape, int threads) {
  return (chunkBytes(shape.blocks()) + kSumBytes) * size_t(threads);
}

void amxGemm(const AmxGemm& g, ThreadPool& pool, Scratch scratch) {
  const int64_t threads = pool.threads(), panels = g.shape.panels();
  const size_t tileBytes = chunkBytes(g.shape.blocks());
  auto tilesOf = [&](int worker) {
    return static_cast<char*>(scratch.data) + size_t(worker) * (tileBytes + kSumBytes);
  };
  auto sumsOf = [&](int worker) { return reinterpret_cast<float*>(tilesOf(worker) + tileBytes); };
  if (g.m <= kAmxFewRows) {
    const PanelGroups groups(panels, int(threads), readPatternOf(g.shape).streams);
    pool.runClaims(groups.count(), [&](ThreadPool::Claims& claims) {
      runFewRows(g, groups, claims, tilesOf(claims.worker()), sumsOf(claims.worker()));
    });
    return;
  }
  const RowsMatmul product{g.shape.k, g.shape.n, g.a, g.lda, g.epilogue, amxStoreKernels()};
  // Threads that would have but few panels split the rows, too, as long as a share keeps enough of
  // them to pay for reading all weights.
  int64_t rowParts = 1;
  for (int64_t parts = 2; parts <= threads && panels * rowParts < kThreadPanels * threads; ++parts)
    if (threads % parts == 0 && g.m / parts >= kMinRowsPerThread) rowParts = parts;
  const RowsTasks tasks(product, g.m, rowParts, threads);
  pool.runClaims(tasks.count(), [&](ThreadPool::Claims& claims) {
    runManyRows(product, tasks, claims, {static_cast<const char*>(g.weights), g.shape.panelBytes()},
                tilesOf(claims.worker()), sumsOf(claims.worker()));
  });
}

}  // namespace lathe::cpu
