// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/amx_gemm.h"

#include <algorithm>

#include "backends/cpu/device/amx_blocks.h"
#include "backends/cpu/device/calibration.h"

// Loop order, from outside in: chunks of rows whose A is copied into tiles once; groups of panels
// whose f32 sums stay in the L2 cache; parts of K whose A stays in L2, beside this panel's weights
// and the next one's; panels; 32-row blocks; 32-column halves of the panel. The innermost loop is
// 2 x 2 tiles: four loads feed four products. Its operands come from L2: a shorter K, whose weights
// would stay in L1, costs more for the way of the sums to the cache and back than it saves.
//
// Few rows wait for the weights: one row of tiles meets several panels that are read as streams of
// memory, some blocks of each in turn, with the pattern that was measured to be fastest.

namespace lathe::cpu {
namespace {

constexpr int64_t kMinRowsPerThread = 128;
constexpr int64_t kTurnBlocks = 4;  // K blocks of a stream before the next one's

size_t tiledABytes(const PackedShape& shape) {
  return size_t(kChunkRows / 16 * shape.blocks() * kTileBytes);
}
constexpr int64_t kGroupSums = kChunkRows * kPanelColumns;  // of a panel
constexpr size_t kSumBytes = size_t(kGroupPanels * kGroupSums) * 4;

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

void runShare(const AmxGemm& g, const Share& share, char* tiles, float* sums,
              const PanelKernels& kernels) {
  const int64_t blocks = g.shape.blocks(), panelBytes = g.shape.panelBytes();
  const char* weights = static_cast<const char*>(g.weights);
  // Parts of K of equal size: a short last one would pay its sums' way for nothing.
  const int64_t parts = (blocks + kOuterBlocks - 1) / kOuterBlocks;
  const int64_t part = (blocks + parts - 1) / parts;
  const int64_t size = g.epilogue.outDType == DType::F32 ? 4 : 2;
  Beside beside;
  beside.kernels = &kernels;
  beside.epilogue = &g.epilogue;
  beside.cStride = g.epilogue.ldc * size;
  int64_t turn = 0;
  tileConfigure(kAmxTiles);
  for (int64_t row0 = share.row0; row0 < share.row1; row0 += kChunkRows) {
    const int64_t rows = share.row1 - row0 < kChunkRows ? share.row1 - row0 : kChunkRows;
    const int64_t rowBlocks = (rows + 31) / 32;
    tileA(g.a + row0 * g.lda, g.lda, rows, rowBlocks * 32, g.shape.k, blocks, 32, tiles);
    beside.lines = (64 + 2 * rowBlocks - 1) / (2 * rowBlocks);
    for (int64_t group = share.panel0; group < share.panel1; group += kGroupPanels) {
      const int64_t groupEnd =
          share.panel1 - group < kGroupPanels ? share.panel1 : group + kGroupPanels;
      for (int64_t k0 = 0; k0 < blocks; k0 += part) {
        const int64_t count = blocks - k0 < part ? blocks - k0 : part;
        const bool last = k0 + count == blocks;
        for (int64_t panel = group; panel < groupEnd; ++panel) {
          const char* b = weights + panel * panelBytes + k0 * kPanelBlockBytes;
          beside.weights = panel + 1 < groupEnd ? b + panelBytes
                           : !last ? weights + group * panelBytes + (k0 + part) * kPanelBlockBytes
                           : groupEnd < share.panel1 ? weights + groupEnd * panelBytes
                                                     : b;
          for (int64_t i = 0; i < 2 * rowBlocks; ++i) {
            const int64_t rb = i / 2, half = i % 2;
            const int64_t row = row0 + rb * 32, col0 = panel * kPanelColumns + half * 32;
            const int64_t cols = g.shape.n - col0 < 32 ? g.shape.n - col0 : 32;
            if (cols <= 0) continue;
            // Without parts no sums are kept: two blocks take turns and stay hot.
            float* block =
                sums + (parts > 1 ? (panel - group) * kGroupSums + i * 1024 : turn++ % 2 * 1024);
            const int64_t blockRows = rows - rb * 32 < 32 ? rows - rb * 32 : 32;
            if (last) {
              beside.c =
                  static_cast<const char*>(g.epilogue.c) + row * beside.cStride + col0 * size;
              beside.cRows = blockRows;
            }
            tiles2x2(tiles + (rb * blocks + k0) * 2 * kTileBytes, b + half * 128, count, k0 == 0,
                     block, beside);
            if (last) beside.finished = {block, blockRows, cols, row, col0};
          }
        }
      }
    }
  }
  storeRows(beside.finished, 32, kernels, g.epilogue);
  tileRelease();
}

// sums[16][64] (+)= one row tile of A x a panel over `blocks` K blocks, fetched `prefetch` bytes
// ahead, if not 0.
void tiles1x4(const char* a, const char* b, int64_t blocks, bool first, float* sums,
              int64_t prefetch) {
  begin1x4(first, sums);
  for (int64_t k = 0; k < blocks; ++k, a += kTileBytes, b += kPanelBlockBytes) {
    for (int64_t i = 0; prefetch && i < kPanelBlockBytes; i += 64)
      _mm_prefetch(b + prefetch + i, _MM_HINT_T0);
    step1x4(a, b);
  }
  end1x4(sums);
}

LATHE_ISA_END

void runFewRows(const AmxGemm& g, const Share& share, char* tiles, float* sums,
                const PanelKernels& kernels) {
  const int64_t blocks = g.shape.blocks(), panelBytes = g.shape.panelBytes();
  const int64_t count = share.panel1 - share.panel0;
  const ReadPattern pattern = calibration().reading;
  AmxTileConfig config;
  for (int tile = 0; tile < 6; ++tile) config.rows[tile] = static_cast<unsigned char>(g.m);
  tileConfigure(config);
  tileA(g.a, g.lda, g.m, kFewRows, g.shape.k, blocks, kFewRows, tiles);
  const int64_t groups = ceilDiv(count, pattern.streams);
  for (int64_t group = 0; group < groups; ++group) {
    // Streams are `groups` panels apart; the last may have fewer panels than the others.
    const int64_t first = share.panel0 + group, streams = ceilDiv(count - group, groups);
    auto panel = [&](int64_t stream) { return first + stream * groups; };
    auto sumsOf = [&](int64_t stream) { return sums + stream * kFewRows * kPanelColumns; };
    for (int64_t block = 0; block < blocks; block += kTurnBlocks)
      for (int64_t s = 0; s < streams; ++s)
        tiles1x4(
            tiles + block * kTileBytes,
            static_cast<const char*>(g.weights) + panel(s) * panelBytes + block * kPanelBlockBytes,
            std::min(kTurnBlocks, blocks - block), block == 0, sumsOf(s), pattern.prefetch);
    for (int64_t s = 0; s < streams; ++s) {
      const int64_t col0 = panel(s) * kPanelColumns;
      kernels.store(sumsOf(s), kPanelColumns, g.m, std::min(kPanelColumns, g.shape.n - col0), 0,
                    col0, g.epilogue);
    }
  }
  tileRelease();
}

}  // namespace

size_t amxGemmScratchBytes(const PackedShape& shape, int threads) {
  return (tiledABytes(shape) + kSumBytes) * size_t(threads);
}

void amxGemm(const AmxGemm& g, ThreadPool& pool, Scratch scratch) {
  const int64_t threads = pool.threads();
  // Rows are split as long as a share keeps enough of them to pay for reading all weights.
  int64_t rowParts = 1;
  for (int64_t parts = 2; parts <= threads; ++parts)
    if (threads % parts == 0 && g.m / parts >= kMinRowsPerThread) rowParts = parts;
  const int64_t panelParts = threads / rowParts, rowBlocks = ceilDiv(g.m, 32);
  const PanelKernels& kernels = panelKernels({Isa::Amx, true});
  pool.run(threads, [&](int64_t index, int worker) {
    int64_t row = index / panelParts, part = index % panelParts;
    Share share{rowBlocks * row / rowParts * 32, rowBlocks * (row + 1) / rowParts * 32,
                g.shape.panels() * part / panelParts, g.shape.panels() * (part + 1) / panelParts};
    if (share.row1 > g.m) share.row1 = g.m;
    if (share.row0 >= share.row1 || share.panel0 >= share.panel1) return;
    char* mine =
        static_cast<char*>(scratch.data) + size_t(worker) * (tiledABytes(g.shape) + kSumBytes);
    auto* sums = reinterpret_cast<float*>(mine + tiledABytes(g.shape));
    (g.m <= kFewRows ? runFewRows : runShare)(g, share, mine, sums, kernels);
  });
}

}  // namespace lathe::cpu
