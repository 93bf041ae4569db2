// SPDX-License-Identifier: Apache-2.0
// Faults planted into the templates of products, attention and data kernels: barriers, waits,
// counters, groups of asynchronous copies, hazards between launches. Each is reported with its
// kernel and line. What makes numbers wrong and nothing else (the maps of fragments) is told by the
// numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <regex>
#include <set>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "tests/depth.h"
#include "tests/unit/cuda/normed_decoder.h"
#include "tests/unit/cuda/planted_faults.h"

namespace lathe::cuda {
namespace {

Recorded matmul(DType dtype, int64_t rows, int64_t depth, int64_t columns,
                const std::string& wanted = "") {
  return recorded(
      dtype, {{rows, depth}},
      [=](Graph& g, In x) { return fused::linear(x[0], g.weight("w", dtype, {columns, depth})); },
      wanted);
}
Recorded splitGemm() { return matmul(DType::BF16, 30, 4096, 96); }
Recorded shortGemm() { return matmul(DType::BF16, 100, 64, 96); }
Recorded oddGemm() { return matmul(DType::BF16, 100, 512, 90); }
Recorded gemm() { return matmul(DType::BF16, 100, 512, 96); }
Recorded simtGemm() { return matmul(DType::F32, 40, 100, 50); }
Recorded tail() { return matmul(DType::BF16, 1, 520, 64); }
// One row of more chunks than a block has threads.
Recorded longRow() { return matmul(DType::BF16, 1, 4872, 64); }
// More columns than the blocks that run at a time take at once, each with an addend of its own.
Recorded manyBlocks() {
  return recorded(
      DType::BF16, {{1, 256}, {1, 25600}},
      [](Graph& g, In x) {
        return fused::linear(x[0], g.weight("w", DType::BF16, {25600, 256})) + x[1];
      },
      "gemv-dot");
}
// On tensor cores; a warp shares its columns with nobody.
Recorded manyColumns() { return matmul(DType::BF16, 16, 256, 8192, "gemv-mma warps=8x1"); }
// `count` products behind one another; the last adds the first one's result.
Recorded chain(int count, int64_t rows, bool residual) {
  return recorded(DType::BF16, {{rows, 256}}, [=](Graph& g, In x) {
    Tensor y = x[0], first;
    for (int i = 0; i < count; ++i) {
      y = fused::linear(y, g.weight("w" + std::to_string(i), DType::BF16, {256, 256}));
      if (i == 0) first = y;
    }
    return residual ? y + first : y;
  });
}
Recorded two() { return chain(2, 2, false); }
Recorded twoOfOneRow() { return chain(2, 1, false); }
Recorded four() { return chain(4, 2, false); }
Recorded threeWithResidual() { return chain(3, 2, true); }
Recorded fourWithResidual() { return chain(4, 2, true); }
Recorded tiledChain() { return chain(2, 40, false); }
Recorded f32Chain() {
  return recorded(DType::F32, {{40, 64}}, [](Graph& g, In x) {
    return fused::linear(fused::linear(x[0], g.weight("w0", DType::F32, {64, 64})),
                         g.weight("w1", DType::F32, {64, 64}));
  });
}
// The second matrix is made by the launch before.
Recorded computedMatrix() {
  return recorded(DType::BF16, {{40, 128}, {128, 64}}, [](Graph& g, In x) {
    return matmul(x[0], fused::linear(x[1], g.weight("w", DType::BF16, {96, 64})));
  });
}
Recorded projectedAttention() {
  return recorded(DType::BF16, {{1, 2, 1, 64}, {1, 2, 300, 64}, {1, 2, 300, 64}},
                  [](Graph& g, In x) {
                    const Tensor q = fused::linear(x[0], g.weight("w", DType::BF16, {64, 64}));
                    return fused::attention(q, x[1], x[2], {.scale = 0.125});
                  });
}
// A product with the attention in front of it inside, of 8 key heads. Queries, and keys that are no
// state's, come from kernels of this run.
Recorded attended() {
  return recorded(
      DType::BF16, {{1, 8, 1, 64}, {1, 8, 100, 64}, {1, 8, 100, 64}}, [](Graph& g, In x) {
        const Tensor seen = fused::attention(exp(x[0]), exp(x[1]), x[2], {.scale = 0.125});
        return fused::linear(reshape(seen, {1, 512}), g.weight("w", DType::BF16, {256, 512}));
      });
}
// Queries and keys have norms of their own; a cluster of blocks has the columns of a head.
Recorded normedProjection(int64_t hidden, int64_t tokens = 1, const std::string& wanted = "") {
  const NormedDecoder decoder{.hidden = hidden,
                              .heads = 2,
                              .keyHeads = 1,
                              .headDim = 128,
                              .dtype = DType::BF16,
                              .projectsOnly = true};
  return {compiledAs(decoder.graph(), wanted),
          "step",
          {{"ids", Array(DType::I64, {1, tokens})}, {"positions", positions(3)}}};
}
Recorded normedHeadsOfTiles() { return normedProjection(96, 20); }
// Tiles norm their rows on the way.
Recorded normedTiles() {
  return recorded(DType::BF16, {{40, 320}}, [](Graph& g, In x) {
    const Tensor normed = fused::rmsNorm(x[0], g.weight("gain", DType::BF16, {320}), 1e-5);
    return fused::linear(normed, g.weight("w", DType::BF16, {96, 320}));
  });
}
Recorded normedTilesBehindAnother() {
  return recorded(DType::BF16, {{40, 64}}, [](Graph& g, In x) {
    const Tensor first = fused::linear(x[0], g.weight("v", DType::BF16, {320, 64}));
    const Tensor normed = fused::rmsNorm(first, g.weight("gain", DType::BF16, {320}), 1e-5);
    return fused::linear(normed, g.weight("w", DType::BF16, {96, 320}));
  });
}
Recorded normedHeads() { return normedProjection(96, 1, "gemv-dot warps=8x1 splits=1 columns=2"); }
Recorded normedHeadsOnTensorCores() { return normedProjection(256, 1, "gemv-mma warps=8x1"); }
Recorded decodeAttention() { return attention(1, 1000); }
Recorded tiledAttention() { return attention(100, 200); }
Recorded simtAttention() {
  return recorded(DType::F32, {{1, 2, 3, 24}, {1, 2, 400, 24}, {1, 2, 400, 24}},
                  [](Graph&, In x) { return fused::attention(x[0], x[1], x[2], {.scale = 0.2}); });
}
Recorded largestOfMany() {
  return recorded(DType::F32, {{2, 2000}}, [](Graph&, In x) { return topK(x[0], 50).first; });
}
Recorded runningSum() {
  return recorded(DType::F32, {{2, 2000}}, [](Graph&, In x) { return cumsum(x[0], 1); });
}
Recorded columnSums() {
  return recorded(DType::F32, {{300, 96}}, [](Graph&, In x) { return reduceSum(x[0], {0}); });
}
Recorded clusterRows() {
  return recorded(DType::BF16, {{2, 60000}}, [](Graph&, In x) { return fused::softmax(x[0], 1); });
}

constexpr char kGemv[] = "lathe_gemv.cuh", kGemm[] = "lathe_gemm.cuh",
               kSimtGemm[] = "lathe_simt_gemm.cuh", kDecode[] = "lathe_attention_decode.cuh",
               kTiled[] = "lathe_attention.cuh", kSimt[] = "lathe_attention_simt.cuh",
               kAttended[] = "lathe_attended_linear.cuh";

// grid_last_block with a fault of its own, in the place of a call.
#define LAST_BLOCK(before, add, reset, after)                                                     \
  "[&](u32* counter, u32 blocks) { LATHE_SHARED(u32, last, 1); " before                           \
  " if (threadIdx.x == 0) { last[0] = " add " == blocks - 1; if (last[0]) { " reset " } } " after \
  " return last[0] != 0; }("
#define ADD "counter_add_acq_rel(counter, 1)"
#define RESET "counter_store_release(counter, 0);"
constexpr char kNoBarrierInFront[] = LAST_BLOCK("", ADD, RESET, "block_sync();");
constexpr char kBarrierOfAWarp[] = LAST_BLOCK("warp_sync();", ADD, RESET, "block_sync();");
constexpr char kNoBarrierBehind[] = LAST_BLOCK("block_sync();", ADD, RESET, "");
constexpr char kNoReset[] = LAST_BLOCK("block_sync();", ADD, "", "block_sync();");
constexpr char kAddsTwo[] =
    LAST_BLOCK("block_sync();", "counter_add_acq_rel(counter, 2) / 2", "", "block_sync();");
constexpr char kPlainCounter[] =
    LAST_BLOCK("block_sync();", "(*counter)++", "*counter = 0;", "block_sync();");
#undef ADD
#undef RESET
#undef LAST_BLOCK

constexpr char kGlobalRace[] = "data race \\(.*\\) on .*\\(global memory\\)";
constexpr char kSharedRace[] = "data race \\(.*\\) on dynamic shared";
constexpr char kLeft[] = "counter 0 of counters is left at \\d+, expected 0, changed at";
constexpr char kBeforeWait[] =
    "read of .* \\(written by kernel \\w+, 1 launch before\\) before "
    "griddepcontrol.wait";
constexpr char kInFlight[] = "asynchronous copy into it is in flight";

const Fault kFaults[] = {
    // Counters: what the last block reads.
    {"gemvNoBarrierBeforeCounter", sharedSums, "gemv<", "grid_last_block(", kNoBarrierInFront,
     kGlobalRace, "*place(partial, split", kGemv},
    {"gemvCounterOfAWarp", sharedSums, "gemv<", "grid_last_block(", kBarrierOfAWarp, kGlobalRace,
     "*place(partial, split", kGemv},
    {"gemvNoBarrierBehindCounter", sharedSums, "gemv<", "grid_last_block(", kNoBarrierBehind,
     "data race \\(.*\\) on last", "return last[0] != 0", kGemv},
    {"gemvCounterNotReset", sharedSums, "gemv<", "grid_last_block(", kNoReset, kLeft,
     "counter_add_acq_rel", kGemv},
    {"gemmNoBarrierBeforeCounter", splitGemm, "gemm<", "grid_last_block(", kNoBarrierInFront,
     kGlobalRace, "load_vec<8>(meeting.sums", kGemm},
    {"gemmCounterOfAWarp", splitGemm, "gemm<", "grid_last_block(", kBarrierOfAWarp, kGlobalRace,
     "load_vec<8>(meeting.sums", kGemm},
    {"gemmCounterCountsTwice", splitGemm, "gemm<", "grid_last_block(", kAddsTwo, kLeft,
     "counter_add_acq_rel", kGemm},
    {"gemmPlainCounter", splitGemm, "gemm<", "grid_last_block(", kPlainCounter, kGlobalRace,
     "(*counter)++", kGemm},
    {"decodeNoBarrierBeforeCounter", decodeAttention, "attentionDecode", "grid_last_block(",
     kNoBarrierInFront, kGlobalRace, "(long long)s * D::kPartial", kDecode},
    {"decodeCounterNotReset", decodeAttention, "attentionDecode", "grid_last_block(", kNoReset,
     kLeft, "counter_add_acq_rel", kDecode},
    {"simtNoBarrierBeforeCounter", simtAttention, "attentionSimt", "grid_last_block(",
     kNoBarrierInFront, kGlobalRace, "math_fma(w, x[dim], result)", kSimt},
    {"simtPlainCounter", simtAttention, "attentionSimt", "grid_last_block(", kPlainCounter,
     kGlobalRace, "(*counter)++", kSimt},
    // Tiles that norm their rows.
    {"scalesWithoutBarrier", normedTiles, "kNormed = true",
     "    Norm::scale(hooks, scales, row0, m, k);\n    block_sync();\n",
     "    Norm::scale(hooks, scales, row0, m, k);\n", "data race \\(.*\\) on scales",
     "hooks.normed(x[q], scales", kGemm},
    {"normsCopiesThatAreOnTheirWay", normedTiles, "kNormed = true",
     "    cp_async_wait<C::kStages - 2>();\n    if constexpr (C::kNormed)",
     "    if constexpr (C::kNormed)", kInFlight, "ld_shared_16(at)", kGemm},
    {"normsWhatOthersHaveCopied", normedTiles, "kNormed = true",
     "const int c = (int)threadIdx.x + i * S::kThreads;\n      const u32 at",
     "const int c = (int)(threadIdx.x ^ 32) + i * S::kThreads;\n      const u32 at",
     "data race \\(.*\\) on dynamic shared|asynchronous copy into it is in flight",
     "ld_shared_16(at)", kGemm},
    {"rowsBeforeTheWait", normedTilesBehindAnother, "kNormed = true",
     "  if constexpr (C::kConstantB) grid_dep_wait();\n#pragma unroll", "#pragma unroll",
     kBeforeWait, "cp_async_16(tile + place", kGemm},
    {"headTotalsWithoutBarrier", normedHeadsOfTiles, "kNormed = true",
     "      if (lane == 0) totals[t] = sum;\n    }\n    block_sync();\n",
     "      if (lane == 0) totals[t] = sum;\n    }\n", "data race \\(.*\\) on totals",
     "gemmStoreOne<C>(", kGemm},
    {"splitsInOnePlace", splitGemm, "gemm<", "(long long)meeting.split * S::kHalves", "0ll",
     kGlobalRace, "store_vec(meeting.sums", kGemm},
    {"rowsOfSplitsInOnePlace", decodeAttention, "attentionDecode",
     "(long long)row * at.splits + at.split", "(long long)row * at.splits", kGlobalRace,
     "(float4*)(to + slot * 4) = x", kDecode},

    // Launches: what may still run.
    {"gemvWithoutWait", two, "gemv<", "  if constexpr (C::kConstantWeights) grid_dep_wait();\n",
     "\n", kBeforeWait, "ld_global_16(hooks.x", kGemv},
    {"gemvRowWithoutWait", twoOfOneRow, "gemv<",
     "  if constexpr (C::kConstantWeights) grid_dep_wait();\n", "\n", kBeforeWait,
     "ld_global_16(hooks.x + i", kGemv},
    {"gemvStagesBeforeTheWait", two, "gemv<",
     "  if constexpr (C::kConstantWeights) grid_dep_wait();\n",
     "  if (hooks.x[threadIdx.x].bits == 0x7fc1) return;\n  grid_dep_wait();\n", kBeforeWait,
     "hooks.x[threadIdx.x].bits", kGemv},
    {"residualTwoLaunchesBack", threeWithResidual, "const bf16* residual", "  gemv<",
     "  if (residual[threadIdx.x].bits == 0x7fc1) return;\n  gemv<",
     "read of .* \\(written by kernel \\w+, 2 launches before\\) before griddepcontrol.wait",
     "residual[threadIdx.x].bits"},
    {"residualThreeLaunchesBack", fourWithResidual, "const bf16* residual", "  gemv<",
     "  if (residual[threadIdx.x].bits == 0x7fc1) return;\n  gemv<",
     "read of .* \\(written by kernel \\w+, 3 launches before\\) before griddepcontrol.wait",
     "residual[threadIdx.x].bits"},
    {"resultBeforeTheWait", four, "gemv<", "  gemv<",
     "  if (threadIdx.x == 0) y[8 * blockIdx.x] = bf16{0};\n  gemv<",
     "write of .* \\(written by kernel \\w+, 2 launches before\\) before griddepcontrol.wait",
     "y[8 * blockIdx.x] = bf16{0}"},
    {"gemmWithoutWait", tiledChain, "gemm<", "  if constexpr (C::kConstantB) grid_dep_wait();\n",
     "\n", kBeforeWait, "cp_async_16(tile + place", kGemm},
    {"computedMatrixTakenForConstant", computedMatrix, "kTransposedB = true", "kConstantB = false",
     "kConstantB = true", kBeforeWait, "cp_async_16(tile + place"},
    {"simtGemmWithoutWait", f32Chain, "simtGemm<", "  grid_dep_wait();\n", "\n", kBeforeWait,
     "return data[row * rowStride", kSimtGemm},
    {"decodeWithoutWait", projectedAttention, "attentionDecode",
     "if (C::kOverlaps && !C::kOldKeys) grid_dep_wait()", "", kBeforeWait,
     "ld_global_16(from + dim)", kDecode},
    {"newKeysTakenForOld", decodeStep, "attentionDecode", "tile + 16 <= offset", "tile <= offset",
     kBeforeWait, "ld_global_16(", kDecode},
    {"oldKeysWithoutWait", decodeStep, "attentionDecode", "    grid_dep_wait();\n    if (!old",
     "    if (!old", kBeforeWait, "ld_global_16(", kDecode},
    {"attendedWithoutWait", attended, "AttendedHooks",
     "    if constexpr (!Attention::kOldKeys) grid_dep_wait();\n", "", kBeforeWait,
     "ld_global_16(from + ", kAttended},
    {"residualBeforeTheWait", threeWithResidual, "gemv<",
     "  if constexpr (C::kConstantWeights) grid_dep_wait();\n  if (rows <= 0) return;",
     "  if (total > 0) own[0] = Join::request(hooks, blockOf(0), rows);\n  if constexpr "
     "(C::kConstantWeights) grid_dep_wait();\n  if (rows <= 0) return;",
     "read of .* \\(written by kernel \\w+, \\d launch(es)? before\\) before griddepcontrol.wait",
     "residual[row * n + column]", kGemv},
    {"logitsBeforeTheWait", greedySteps, "= argmax", "  grid_dep_wait();\n", "", kBeforeWait,
     "load_vec<"},
    {"chosenBeforeTheWait", greedySteps, "= select", "  grid_dep_wait();\n", "",
     "read of .* \\(written by kernel \\w+, \\d launch(es)? before\\) before griddepcontrol.wait",
     ""},
    {"readOnlyActivations", two, "gemv<", "ld_global_16(hooks.x + (long long)",
     "ld_global_nc_16(hooks.x + (long long)",
     "ld.global.nc of .*, which changes while the kernel may run \\(written by kernel",
     "ld_global_nc_16(hooks.x", kGemv},
    {"readOnlyRow", twoOfOneRow, "gemv<", "ld_global_16(hooks.x + i", "ld_global_nc_16(hooks.x + i",
     "ld.global.nc of .*, which changes while the kernel may run \\(written by kernel",
     "ld_global_nc_16(hooks.x", kGemv},
    {"readOnlyQueries", projectedAttention, "attentionDecode",
     "q[c][h] = dim < C::kDepth ? ld_global_16(", "q[c][h] = dim < C::kDepth ? ld_global_nc_16(",
     "ld.global.nc of .*, which changes while the kernel may run \\(written by kernel",
     "ld_global_nc_16(from + dim)", kDecode},
    {"readOnlyKeys", decodeStep, "attentionDecode", "ld_global_16(from + c * 32)",
     "ld_global_nc_16(from + c * 32)",
     "ld.global.nc of k_cache.*, which changes while the kernel may run \\(written by kernel",
     "ld_global_nc_16(from + c * 32)", kDecode},

    // Barriers.
    {"gemvLanesOfAWarpUnordered", manyColumns, "gemv<GemvMma", "      warp_sync();\n", "      ;\n",
     "data race \\(read after write\\) on parts", "v[h] = parts[", kGemv},
    {"gemvTailNotCleared", tail, "gemv<", "if constexpr (Way::kStride > C::kK) {",
     "if constexpr (false) {", "read of uninitialised dynamic shared", "(const uint4*)(r.x", kGemv},
    {"gemvRowWithoutBarrier", longRow, "gemv<",
     "    gemvStage<C, Way>(hooks, (Input*)shared, rows);\n    block_sync();\n",
     "    gemvStage<C, Way>(hooks, (Input*)shared, rows);\n", "data race|uninitialised",
     "(const uint4*)(r.x", kGemv},
    {"gemvChunksOfARowLeftOut", longRow, "gemv<", "kEach = ceilDiv(kChunks, kThreads)",
     "kEach = kChunks / kThreads", "read of uninitialised dynamic shared", "(const uint4*)(r.x",
     kGemv},
    {"gemvChunksOfARowInOnePlace", longRow, "gemv<", "(to + i * kWidth) = chunks[j]",
     "(to + (int)threadIdx.x * kWidth) = chunks[j]", "read of uninitialised dynamic shared",
     "(const uint4*)(r.x", kGemv},
    {"termsWithoutBarrier", normedHeadsOnTensorCores, "kSumPairs = 64",
     "    block_sync();\n#pragma unroll 1\n    for (int t = (int)warp_id()",
     "#pragma unroll 1\n    for (int t = (int)warp_id()", "data race \\(.*\\) on terms",
     "sum += terms[", kGemv},
    {"totalsWithoutBarrier", normedHeads, "kSumPairs = 64", "      cluster_sync();\n    else",
     "      ;\n    else", "data race|uninitialised", "cluster_read(totals + t", kGemv},
    {"blockLeavesItsCluster", normedHeads, "kSumPairs = 64",
     "if constexpr (Join::kCluster > 1 || C::kSource == kClusterInput) cluster_sync();", "",
     "whose threads have returned", "cluster_read(totals + t", kGemv},
    {"rankBeyondTheCluster", normedHeads, "kSumPairs = 64", "cluster_read(totals + t, (u32)r)",
     "cluster_read(totals + t, (u32)r + 1)", "cluster_read of rank \\d in a cluster of \\d",
     "cluster_read(totals + t", kGemv},
    {"attendedHeadsWithoutBarrier", attended, "AttendedHooks", "    cluster_sync();\n", "",
     "data race|uninitialised", "cluster_read((const uint4*)(own", kAttended},
    {"attendedHeadsBehindABarrierOfTheBlock", attended, "AttendedHooks", "    cluster_sync();\n",
     "    block_sync();\n", "data race|uninitialised", "cluster_read((const uint4*)(own",
     kAttended},
    {"attendedBlockLeavesItsCluster", attended, "AttendedHooks",
     "if constexpr (Join::kCluster > 1 || C::kSource == kClusterInput) cluster_sync();", "",
     "whose threads have returned", "cluster_read((const uint4*)(own", kGemv},
    {"attendedRankBeyondTheCluster", attended, "AttendedHooks", "(u32)(i * kChunk / kPart)",
     "(u32)(i * kChunk / kPart) + 1", "cluster_read of rank \\d in a cluster of \\d",
     "cluster_read((const uint4*)(own", kAttended},
    {"attendedPartsOverTheSums", attended, "AttendedHooks",
     "shared + AttentionDecode<Attention>::kSharedBytes", "shared + 64", "data race|uninitialised",
     "", kAttended},
    {"attendedRowWithoutBarrier", attended, "AttendedHooks",
     "    gemvStage<C, Way>(hooks, (Input*)shared, rows);\n    block_sync();\n",
     "    gemvStage<C, Way>(hooks, (Input*)shared, rows);\n", "data race|uninitialised",
     "(const uint4*)(r.x", kGemv},
    {"gemmRingReadWhileSumsAreWritten", shortGemm, "gemm<",
     "  block_sync();  // nobody reads the ring any more\n", "\n", kSharedRace,
     "store_vec_shared(to", kGemm},
    {"gemmSumsWithoutBarrier", gemm, "gemm<",
     "gemmToShared<C>(sums, (float*)shared);\n  block_sync();",
     "gemmToShared<C>(sums, (float*)shared);", kSharedRace, "load_vec_shared<4>(from", kGemm},
    {"simtGemmTilesWithoutBarrier", simtGemm, "simtGemm<", "    block_sync();\n#pragma unroll\n",
     "#pragma unroll\n", "data race|uninitialised", "left[at * (C::kTileM + 1)", kSimtGemm},
    {"simtGemmTileOverwritten", simtGemm, "simtGemm<", "    block_sync();\n  }\n", "  }\n",
     "data race \\(write after read\\) on (left|right)", "inside ? Element::wide", kSimtGemm},
    {"decodeMaximaWithoutBarrier", decodeAttention, "attentionDecode",
     "  block_sync();\n#pragma unroll\n  for (int h = 0; h < 2; ++h) {\n    const int row",
     "#pragma unroll\n  for (int h = 0; h < 2; ++h) {\n    const int row",
     "data race|uninitialised", "shared[D::kTopAt + ", kDecode},
    {"decodeSumsWithoutBarrier", decodeAttention, "attentionDecode",
     "  block_sync();\n  const long long tileIndex", "  const long long tileIndex",
     "data race|uninitialised", "shared + (w * 16 + row) * D::kPitch", kDecode},
    {"decodeWeightsWithoutBarrier", decodeAttention, "attentionDecode",
     "  block_sync();\n  for (int i = threadIdx.x; i < count * D::kSlots; i += D::kThreads) {\n    "
     "const int r = i",
     "  for (int i = threadIdx.x; i < count * D::kSlots; i += D::kThreads) {\n    const int r = i",
     kSharedRace, "weights[r * C::kMostSplits + s]", kDecode},
    {"decodeHalfABlockLeaves", decodeAttention, "attentionDecode",
     "if ((int)at.split >= share.splits) return;", "if (threadIdx.x >= 96) return;",
     "deadlock|divergent", "block_sync()", kDecode},
    {"tiledBarrierMissing", tiledAttention, "attentionTiled",
     "block_sync();  // this tile is there; nobody reads", ";//",
     "data race|asynchronous copy into it is in flight", "ldmatrix_x4", kTiled},
    {"tiledResultsWithoutBarrier", tiledAttention, "attentionTiled",
     "  block_sync();\n  constexpr int kChunks", "  constexpr int kChunks", kSharedRace,
     "ld_shared_16(shared + r", kTiled},
    {"simtTileOverwritten", simtAttention, "attentionSimt",
     "    block_sync();  // the queries are there, the previous tile is done with\n", "\n",
     kSharedRace, "convert<Real>(", kSimt},
    {"simtTileWithoutBarrier", simtAttention, "attentionSimt", "    block_sync();\n\n    Real dot",
     "    Real dot", "data race|uninitialised", "keys[lane * S::kKeyPitch + d]", kSimt},
    {"simtWeightsUnordered", simtAttention, "attentionSimt", "    warp_sync();\n", "\n",
     kSharedRace, "math_fma(weights[r * 32 + j]", kSimt},
    {"topKCountsOverwritten", largestOfMany, "topKOfRow", "    block_sync();\n    i64 place = -1;",
     "    i64 place = -1;", "data race \\(.*\\) on warpCounts",
     "warpCounts[warp] =", "lathe_top_k.cuh"},
    {"topKSortWithoutBarrier", largestOfMany, "topKOfRow",
     "      block_sync();\n    }\n  for (i64 i = threadIdx.x; i < k",
     "    }\n  for (i64 i = threadIdx.x; i < k", kSharedRace, "entries[low] = b",
     "lathe_top_k.cuh"},
    {"cumsumTotalsWithoutBarrier", runningSum, "cumsumRows",
     "      if (lane == 31) totals[warp] = sum;\n      block_sync();",
     "      if (lane == 31) totals[warp] = sum;", "data race|uninitialised",
     "before = before + totals[w]", "lathe_cumsum.cuh"},
    {"clusterSumsInALoopOfSome", clusterRows, "region_0(", "cluster_reduce<512>(total, Sum{})",
     "(cluster_rank() < 4 ? cluster_reduce<512>(total, Sum{}) : total)", "deadlock",
     "cluster_reduce<512>(total"},
    {"columnsReducedByHalf", columnSums, "region_0(", "columns_reduce<256>(total2, Sum{})",
     "(warp < 4 ? columns_reduce<256>(total2, Sum{}) : total2)", "deadlock",
     "columns_reduce<256>(total2"},
    {"columnStoredByAllWarps", columnSums, "region_0(", "if (warp == 0 && place < 96)",
     "if (place < 96)", kGlobalRace, "out[t] = total3"},

    // Groups of asynchronous copies.
    {"gemmStepNotCommitted", gemm, "gemm<", "    cp_async_commit();\n    gemmMultiply",
     "    gemmMultiply", kInFlight, "ldmatrix_x4(", kGemm},
    {"gemmCopiesIntoTheStageThatIsRead", gemm, "gemm<", "tilesOfA.copy(unused);",
     "tilesOfA.copy(stage);", kInFlight, "ldmatrix_x4(", kGemm},
    {"tiledTileNotCommitted", tiledAttention, "attentionTiled",
     "loadTile(tile + C::kKeys, stage ^ 1);\n    cp_async_commit();",
     "loadTile(tile + C::kKeys, stage ^ 1);", kInFlight, "ldmatrix_x4", kTiled},
    {"tiledStageNotChanged", tiledAttention, "attentionTiled",
     "loadTile(tile + C::kKeys, stage ^ 1)", "loadTile(tile + C::kKeys, stage)", kInFlight,
     "ldmatrix_x4", kTiled},

    // Bounds.
    {"gemmRowBound", gemm, "gemm<", "if (row >= m || column >= n) return;",
     "if (column >= n) return;", "global memory out of bounds: write of 16 bytes at y",
     "store_f32(y + row * n + column", kGemm},
    {"gemmRowsBehindTheEnd", gemm, "gemm<", "some && i * kApart < most ? 16 : 0", "some ? 16 : 0",
     "global memory out of bounds: read of 16 bytes at x", "cp_async_16(tile + place", kGemm},
    {"gemvRowPastItsEnd", tail, "gemv<", "if (i < kChunks) chunks[j] =", "chunks[j] =",
     "global memory out of bounds: read of 16 bytes at x", "ld_global_16(hooks.x + i", kGemv},
    {"gemmOddColumnBound", oddGemm, "gemm<", "if (column + q >= n) continue;", "",
     "data race|global memory out of bounds: write of 2 bytes at y",
     "y[row * n + column] = Element::narrow(value)", kGemm},

    // Which value goes where: the numbers alone are wrong.
    {"gemvFirstChunkForAll", longRow, "gemv<", "(to + i * kWidth) = chunks[j]",
     "(to + i * kWidth) = chunks[0]", "", "", kGemv},
    {"gemvAddendsOfAnotherBlock", manyBlocks, "gemv<", "own[kAhead - 1], i + 1", "own[0], i + 1",
     "", "", kGemv},
    {"gemvAddendsOfTheNextBlock", manyBlocks, "gemv<", "blockOf(number + kAhead)",
     "blockOf(number + 1)", "", "", kGemv},
    {"gemvAddendsOfOneBlock", manyBlocks, "gemv<", "i < kAhead; ++i)\n    if (i < total)",
     "i < kAhead; ++i)\n    if (i < 1)", "", "", kGemv},
    {"gemvFragmentHalves", normedHeadsOnTensorCores, "gemv<GemvMma",
     "even{{low.x, high.x, low.y, high.y}}", "even{{low.x, low.y, high.x, high.y}}", "", "", kGemv},
    {"gemmFragmentOfB", gemm, "gemm<", "column0 + (lane & 7) + (lane >> 4) * 8",
     "column0 + (lane & 15)", "", "", kGemm},
    {"gemmFragmentOfA", gemm, "gemm<", "row0 + (lane & 15), lane >> 4)",
     "row0 + (lane & 15), 1 - (lane >> 4))", "", "", kGemm},
    {"decodeFragmentOfValues", decodeAttention, "attentionDecode",
     "highHalves(w[0][word], w[1][word])", "highHalves(w[1][word], w[0][word])", "", "", kDecode},
    {"tiledFragmentOfValues", tiledAttention, "attentionTiled", "ldmatrix_x4_trans(b",
     "ldmatrix_x4(b", "", "", kTiled},
};

bool equal(const Arrays& a, const Arrays& b) {
  for (const auto& [name, x] : a) {
    const Array& y = b.at(name);
    for (int64_t i = 0; i < x.size(); ++i) {
      const double p = x.at(i), q = y.at(i);
      if (std::memcmp(&p, &q, sizeof p) != 0) return false;
    }
  }
  return true;
}

// What a program says without faults; several faults share one, which is run once.
const Outcome& wholeOf(const Fault& f) {
  static std::map<Recorded (*)(), Outcome> whole;
  if (!whole.count(f.record)) whole[f.record] = outcomeOf(f.record(), "check");
  return whole[f.record];
}

// Of all faults: a template that lost a wait or a barrier is told by the programs that need it.
TEST(ProgramsOfFaults, AreNotReportedWithoutThem) {
  for (const Fault& f : kFaults) EXPECT_EQ(wholeOf(f).report, "") << "program of " << f.name;
}

class TemplateFaults : public testing::TestWithParam<Fault> {};

TEST_P(TemplateFaults, AreReportedWithKernelAndLine) {
  const Fault& f = GetParam();
  Recorded r = f.record();
  const Outcome& whole = wholeOf(f);
  ASSERT_EQ(whole.report, "") << "without the fault";
  const auto planted = plant(f, *r.program);
  ASSERT_FALSE(planted.empty()) << "the edit changes nothing";
  if (!*f.report) {
    const Outcome found = outcomeOf(r, "check");
    EXPECT_EQ(found.report, "");
    EXPECT_FALSE(equal(whole.outputs, found.outputs));
    return;
  }
  std::string found = reportOf(r, "check");
  // Some show only where threads run in another order.
  if (!std::regex_search(found, std::regex(f.report)))
    found += "\n" + reportOf(r, "check,random,seed=1");
  EXPECT_TRUE(std::regex_search(found, std::regex(f.report))) << found;
  EXPECT_TRUE(namesLine(found, planted, f.line)) << found;
}

// For a change every third fault and the first in each template; in depth all.
std::vector<Fault> plantedFaults() {
  std::vector<Fault> faults;
  std::set<std::string> templates;
  for (size_t i = 0; i < std::size(kFaults); ++i)
    if (templates.insert(kFaults[i].header).second || i % 3 == 0 || test::inDepth())
      faults.push_back(kFaults[i]);
  return faults;
}

INSTANTIATE_TEST_SUITE_P(Planted, TemplateFaults, testing::ValuesIn(plantedFaults()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe::cuda
