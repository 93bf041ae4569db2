// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of many rows of bf16, or of bytes that bf16 is rounded to (byte_rows.h), on AMX tiles,
// whatever the weights are stored in.
//
// Loop order, from outside in: chunks of rows whose A is copied into tiles once; groups of panels,
// which workers take from each other and whose f32 sums stay in the L2 cache; parts of K whose A
// stays in L2, beside this panel's weights and the next one's; panels; 32-row blocks; slices of K
// whose A stays in L1; 32-column halves of the panel. The innermost loop is 2 x 2 tiles: four loads
// feed four products, and the way from L2 is what they wait for. A comes that way once for both
// halves; the weights pass L1 by.
//
// Of gated products (gated.h) a panel of gates is followed by the panel of what they gate, and the
// sums of the first are kept for those of the second.
#include <algorithm>

#include "backends/cpu/device/amx_blocks.h"
#include "backends/cpu/device/amx_sums.h"
#include "backends/cpu/device/panel_kernels.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMostChunkRows = 512;
constexpr int64_t kChunkBlocks = 32;  // of K, for which so many rows of A stay in L2: 1 MiB
constexpr int64_t kChunkRows = 256;   // of A in tiles at a time, where there are more
constexpr int64_t kOuterBlocks = 40;  // K blocks of A in L2: 256 x 1280 x 2 = 640 KiB
constexpr int64_t kSliceBlocks = 14;  // K blocks of 32 rows of A in L1: 28 KiB
constexpr int64_t kGroupPanels = 8;   // panels whose sums are kept: 8 x 256 x 64 x 4 = 512 KiB
constexpr size_t kSumBytes = size_t(kGroupPanels * kChunkRows * kPanelColumns) * 4;

constexpr int64_t chunkRows(int64_t blocks) {
  return blocks <= kChunkBlocks ? kMostChunkRows : kChunkRows;
}
// Sums of a panel of a chunk. Of a short K no panel's but a gate's are kept.
constexpr int64_t panelSums(int64_t blocks) { return chunkRows(blocks) * kPanelColumns; }

// A piece of C.
struct Share {
  int64_t row0, row1, panel0, panel1;
};

// C[m, n] = A[m, k] x W through `epilogue`.
struct RowsMatmul {
  int64_t k, n;
  const uint16_t* a;
  int64_t lda;
  const Epilogue& epilogue;
  const PanelKernels& kernels;
  int64_t depth = 32;  // of a K block, which is 64 bytes of a row

  int64_t blocks() const { return (k + depth - 1) / depth; }
  int64_t panels() const { return (n + kPanelColumns - 1) / kPanelColumns; }
  // Of K, of equal size: a short last one would pay its sums' way for nothing.
  int64_t parts() const { return (blocks() + kOuterBlocks - 1) / kOuterBlocks; }
  bool gated() const { return epilogue.gate.has_value(); }
  // Shares and groups count panels in the order in which they are multiplied.
  int64_t panelAt(int64_t turn) const {
    return gated() ? turn / 2 + turn % 2 * (n / kPanelColumns / 2) : turn;
  }
  int64_t columnAt(int64_t turn) const { return (gated() ? turn / 2 : turn) * kPanelColumns; }
};
// C in shares that workers take from each other, some for each of them: the groups of panels of a
// chunk of rows, then those of the next one. A gate's panel and what it gates stay together.
class RowsTasks {
 public:
  // In at least `leastChunks`, if there are as many rows of tiles.
  RowsTasks(const RowsMatmul& p, int64_t m, int64_t leastChunks, int64_t threads)
      : m_(m),
        together_(p.gated() ? 2 : 1),
        units_(p.panels() / together_),
        rowBlocks_(ceilDiv(m, 32)) {
    chunks_ = std::min(rowBlocks_, std::max(ceilDiv(m, chunkRows(p.blocks())), leastChunks));
    // Sums that are kept from part to part of K repay reading A again for some panels together.
    const int64_t least = p.parts() > 1 ? 4 : 2, wanted = kThreadTasks * threads;
    const int64_t group =
        std::clamp(ceilDiv(p.panels() * chunks_, wanted), least, kGroupPanels) / together_;
    groups_ = ceilDiv(units_, group);
  }
  int64_t count() const { return chunks_ * groups_; }
  Share at(int64_t index) const {
    const int64_t chunk = index / groups_, group = index % groups_;
    return {rowBlocks_ * chunk / chunks_ * 32,
            std::min(m_, rowBlocks_ * (chunk + 1) / chunks_ * 32),
            units_ * group / groups_ * together_, units_ * (group + 1) / groups_ * together_};
  }

 private:
  static constexpr int64_t kThreadTasks = 4;
  int64_t m_, together_, units_, rowBlocks_, chunks_, groups_;
};
// Bytes of a chunk of A in tiles.
constexpr size_t chunkBytes(int64_t blocks) { return size_t(chunkRows(blocks) * blocks * 64); }

// K blocks [k0, k0 + count) of a panel.
struct PanelPart {
  int64_t panel = -1, k0 = 0, count = 0;
};

// Finished sums [rows][32] that wait for their way through the epilogue.
struct Finished {
  float* sums = nullptr;
  int64_t rows = 0, cols = 0, row0 = 0, col0 = 0;
  SumScales scales;
  bool isGate = false;          // they are kept: nothing is stored
  const float* gate = nullptr;  // the sums of their gates
};

LATHE_ISA_BEGIN(LATHE_TARGET_AMX)

inline void storeRows(const RowsMatmul& p, Finished& f, int64_t most) {
  const int64_t rows = f.rows < most ? f.rows : most;
  if (f.gate) {  // whose columns are whole blocks
    const Epilogue& e = p.epilogue;
    gateSums(f.gate, f.sums, rows, f.scales, *e.gate,
             static_cast<uint16_t*>(e.c) + f.row0 * e.ldc + f.col0, e.ldc);
    f.gate += rows * kSumColumns;
  } else if (f.isGate) {
    scaleSums(f.sums, rows, f.scales);
  } else if (f.cols == kSumColumns) {
    storeSums(f.sums, rows, f.row0, f.col0, f.scales, p.epilogue);
  } else {
    scaleSums(f.sums, rows, f.scales);
    p.kernels.store(f.sums, kSumColumns, rows, f.cols, f.row0, f.col0, p.epilogue);
  }
  f.scales = f.scales.behind(rows);
  f.sums += rows * kSumColumns;
  f.row0 += rows;
  f.rows -= rows;
}

// What the steps of a product do beside it, since the tiles leave the other units idle: prepare the
// weights that the worker reads next, fetch the rows of C that it will write, and store what is
// finished.
template <class Panels>
struct Beside {
  const RowsMatmul& matmul;
  Panels& panels;
  Finished finished = {};
  const char* c = nullptr;
  int64_t cStride = 0, cRows = 0;
  int64_t fetched = 1, stored = 4;  // rows a step

  void begin(int64_t steps) {
    fetched = (32 + steps - 1) / steps;
    stored = fetched > 4 ? fetched : 4;
  }
  void step() {
    panels.step();
    for (int64_t i = 0; i < fetched && cRows > 0; ++i, --cRows, c += cStride)
      __builtin_prefetch(c, 1);  // to be written
    if (finished.rows > 0) storeRows(matmul, finished, stored);
  }
};

// `Panels` gives the weights:
//   kBytes: whether they and the rows are bytes
//   part(PanelPart): where they lie as bf16, or as bytes, and places() how
//   prepare(PanelPart, steps): the part that will be asked for next, `steps` steps later
//   step(): one of them
//   finish(Finished&, half, row): how sums are scaled; `row` counts from the chunk's first
//   beginRows(row0, rows): the chunk
//   tileRows(row0, rows, paddedRows, tiles), of bytes: A in tiles
template <class Panels>
void multiplyRows(const RowsMatmul& p, const RowsTasks& tasks, ThreadPool::Claims& claims,
                  Panels& panels, char* tiles, float* sums) {
  const int64_t blocks = p.blocks(), parts = p.parts();
  const int64_t part = (blocks + parts - 1) / parts;
  const int64_t size = p.epilogue.outDType == DType::F32 ? 4 : 2;
  Beside<Panels> beside{p, panels};
  beside.cStride = p.epilogue.ldc * size;
  int64_t chunk = -1;  // whose A is in tiles
  tileConfigure(kAmxTiles);
  // The following task is taken before this one is done, so that its weights can be prepared.
  for (int64_t task = claims.next(), following; task >= 0; task = following) {
    following = claims.next();
    const Share share = tasks.at(task);
    const int64_t row0 = share.row0, rows = share.row1 - row0, rowBlocks = (rows + 31) / 32;
    if (row0 != chunk) {
      // The sums of A's rows that what is finished waits for are the chunk's.
      while (beside.finished.rows > 0) storeRows(p, beside.finished, 32);
      if constexpr (Panels::kBytes)
        panels.tileRows(row0, rows, rowBlocks * 32, tiles);
      else
        tileA(p.a + row0 * p.lda, p.lda, rows, rowBlocks * 32, p.k, blocks, 32, tiles);
      panels.beginRows(row0, rows);
      chunk = row0;
    }
    for (int64_t k0 = 0; k0 < blocks; k0 += part) {
      const int64_t count = blocks - k0 < part ? blocks - k0 : part, rest = blocks - k0 - count;
      for (int64_t panel = share.panel0; panel < share.panel1; ++panel) {
        const char* b = panels.part({p.panelAt(panel), k0, count});
        const PairPlaces places = panels.places();
        PanelPart next{p.panelAt(panel + 1), k0, count};
        if (panel + 1 == share.panel1 && rest > 0)
          next = {p.panelAt(share.panel0), k0 + count, rest < part ? rest : part};
        else if (panel + 1 == share.panel1)
          next = following < 0 ? PanelPart{p.panelAt(share.panel0), 0, 0}
                               : PanelPart{p.panelAt(tasks.at(following).panel0), 0, part};
        panels.prepare(next, 2 * rowBlocks * count);
        const int64_t slices = (count + kSliceBlocks - 1) / kSliceBlocks;
        const int64_t slice = (count + slices - 1) / slices;
        beside.begin(count - (slices - 1) * slice);  // the shortest
        const bool isGate = p.gated() && panel % 2 == 0, hasGate = p.gated() && !isGate;
        // Without parts no sums but those of gates are kept: the block of a half stays hot. It is
        // stored before its next sums are written, at the end of their steps.
        float* kept = sums + (parts > 1 ? panel - share.panel0 : hasGate) * panelSums(blocks);
        const float* gates = hasGate ? kept - panelSums(blocks) : nullptr;
        for (int64_t rb = 0; rb < rowBlocks; ++rb)
          for (int64_t k = 0; k < count; k += slice)
            for (int64_t half = 0; half < 2; ++half) {
              const int64_t i = rb * 2 + half, steps = count - k < slice ? count - k : slice;
              const int64_t row = row0 + rb * 32, col0 = p.columnAt(panel) + half * 32;
              const int64_t cols = p.n - col0 < 32 ? p.n - col0 : 32;
              if (cols <= 0) continue;
              float* block = kept + (parts > 1 || isGate ? i : half) * 1024;
              const int64_t blockRows = rows - rb * 32 < 32 ? rows - rb * 32 : 32;
              const bool ends = rest == 0 && k + steps == count;
              if (ends && !isGate) {
                beside.c =
                    static_cast<const char*>(p.epilogue.c) + row * beside.cStride + col0 * size;
                beside.cRows = blockRows;
              }
              tiles2x2<Panels::kBytes ? Operands::bytes : Operands::bf16>(
                  tiles + (rb * blocks + k0 + k) * 2 * kTileBytes,
                  b + half * 2 * places.column + k * kPanelBlockBytes, places, steps, k0 + k == 0,
                  block, beside);
              if (!ends) continue;
              beside.finished = {block, blockRows, cols, row, col0};
              beside.finished.isGate = isGate;
              if (hasGate) beside.finished.gate = gates + i * 1024;
              panels.finish(beside.finished, half, rb * 32);
            }
      }
    }
  }
  while (beside.finished.rows > 0) storeRows(p, beside.finished, 32);
  tileRelease();
}

LATHE_ISA_END

const PanelKernels& amxStoreKernels() { return panelKernels({Isa::Amx, true}); }

}  // namespace
}  // namespace lathe::cpu
