// SPDX-License-Identifier: Apache-2.0
// Faults planted into the texts that the compiler prints, or into the templates that these include:
// host execution reports each by its kind, with the kernel's name and the generated line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "lathe/frontend/compile.h"
#include "lathe/ir/ops.h"
#include "tests/unit/cuda/planted_faults.h"

namespace lathe::cuda {
namespace {

Recorded flat() {
  return recorded(DType::F32, {{3, 264}, {3, 264}},
                  [](Graph&, In x) { return fused::glu(x[0], x[1]); });
}
Recorded warpRows() {
  return recorded(DType::F32, {{5, 192}}, [](Graph& g, In x) {
    return fused::rmsNorm(x[0], g.weight("gain", DType::F32, {192}), 1e-5);
  });
}
Recorded blockRows() {
  return recorded(DType::F32, {{3, 8000}}, [](Graph&, In x) { return fused::softmax(x[0], 1); });
}
Recorded normLinear() {
  return recorded(DType::BF16, {{1, 512}}, [](Graph& g, In x) {
    const Tensor normed = fused::rmsNorm(x[0], g.weight("gain", DType::BF16, {512}), 1e-5);
    return fused::linear(normed, g.weight("w", DType::BF16, {96, 512}));
  });
}
Recorded gatedLinear() {
  return recorded(DType::BF16, {{1, 256}}, [](Graph& g, In x) {
    return fused::glu(fused::linear(x[0], g.weight("gate", DType::BF16, {96, 256})),
                      fused::linear(x[0], g.weight("up", DType::BF16, {96, 256})));
  });
}
Recorded gemm() {
  return recorded(DType::BF16, {{100, 512}}, [](Graph& g, In x) {
    return fused::linear(x[0], g.weight("w", DType::BF16, {96, 512}));
  });
}
Recorded decodeAttention() { return attention(1, 1000); }
Recorded tiledAttention() { return attention(100, 200); }
Recorded update(int64_t at) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {1, 40, 24}),
               value = g.input("v", DType::F32, {1, 3, 24});
  g.output("y", lathe::update(x, value, g.input("at", DType::I64, {1}), 1));
  return {std::make_shared<Program>(compile(g, {.backend = "cuda"})),
          "forward",
          {{"x", values(DType::F32, {1, 40, 24})},
           {"v", values(DType::F32, {1, 3, 24})},
           {"at", positions(at)}}};
}
Recorded updateAtTheEnd() { return update(37); }
Recorded largestOfMany() {
  return recorded(DType::F32, {{2, 2000}}, [](Graph&, In x) { return topK(x[0], 50).first; });
}
Recorded runningSum() {
  return recorded(DType::F32, {{2, 2000}}, [](Graph&, In x) { return cumsum(x[0], 1); });
}
// Three tensors side by side in one allocation.
Recorded neighbours() {
  return recorded(DType::F32, {{2, 1024}, {2, 1024}}, [](Graph&, In x) {
    return cumsum(fused::glu(cumsum(x[0], 1), cumsum(x[1], 1)), 1);
  });
}
// A thread holds a row, and reads its halves.
Recorded rotated() {
  return recorded(DType::F32, {{6, 8}, {6, 4}, {6, 4}}, [](Graph&, In x) {
    return fused::rope(cast(x[0], DType::BF16), x[1], x[2], Pairing::half);
  });
}
Recorded turned() {
  return recorded(DType::F32, {{70, 90}},
                  [](Graph&, In x) { return exp(transpose(x[0], {1, 0})); });
}

constexpr char kGemv[] = "lathe_gemv.cuh", kGemm[] = "lathe_gemm.cuh";
constexpr char kDecode[] = "lathe_attention_decode.cuh", kTiled[] = "lathe_attention.cuh";

const Fault kFaults[] = {
    // Printed regions.
    {"flatBound", flat, "region_0(", "if (c + 4 <= 792)", "if (c + 4 <= 1024)",
     "global memory out of bounds: read of 16 bytes", "load_vec<4>(gate + c)"},
    {"misalignedVector", flat, "region_0(", "load_vec<4>(up + c)", "load_vec<4>(up + c + 1)",
     "misaligned 16-byte access", "load_vec<4>(up + c + 1)"},
    {"twoThreadsOneColumn", flat, "region_0(", "blockIdx.x * 256 + threadIdx.x) * 4",
     "blockIdx.x * 256 + threadIdx.x) / 2 * 4",
     "data race \\(write after write\\) on .*\\(global memory\\)", "store_vec(out + c"},
    {"rowBound", warpRows, "region_0(", "if (row < 5)", "if (row < 8)",
     "global memory out of bounds: read of 16 bytes", "load_vec<4>(x + index + c)"},
    {"missingTail", warpRows, "region_0(", "if (c2 < 192)", "if (c2 < 256)",
     "global memory out of bounds: read of 16 bytes at gain", "load_vec<4>(gain + c2)"},
    {"wrongIndex", turned, "region_0(", "vector * 180", "vector * 185",
     "global memory out of bounds: read of 4 bytes", "x[row + vector * 185"},
    {"earlyReturn", blockRows, "region_0(", "const float largest6 = block_reduce",
     "if (lane >= 200) return;\n  const float largest6 = block_reduce", "deadlock|divergent",
     "largest6 = block_reduce"},
    {"divergentReduction", blockRows, "region_0(", "block_reduce<256>(total3, Sum{})",
     "(lane < 128 ? block_reduce<256>(total3, Sum{}) : 0.0f)", "deadlock|divergent",
     "block_reduce<256>(total3"},
    {"elementBehindTheVector", rotated, "region_0(", "sum[j - 4]", "sum[j - 3]",
     "element 4 of a vector of 4: block \\(0,0,0\\) thread \\(\\d,0,0\\) .*: joined\\[j\\] = "
     ".*sum\\[j "
     "- 3\\]",
     "sum[j - 3]"},
    {"elementBeforeTheVector", rotated, "region_0(",
     "joined[j] =", "joined[j - 1] =", "element -1 of a vector of 8: ", "joined[j - 1] ="},
    {"readOfTheNeighbour", neighbours, "glu", "load_vec<4>(gate + c)", "load_vec<4>(gate + c + 4)",
     "global memory out of bounds: read of 16 bytes at gate \\+ 8192 \\(parameter of 8192 bytes "
     "in ",
     "load_vec<4>(gate + c + 4)"},
    {"readBeforeTheTensor", neighbours, "glu", "load_vec<4>(up + c)", "load_vec<4>(up + c - 4)",
     "global memory out of bounds: read of 16 bytes at up - 16 \\(parameter of 8192 bytes in ",
     "load_vec<4>(up + c - 4)"},
    {"writeOfTheNeighbour", neighbours, "glu", "store_vec(out + c", "store_vec(out + c + 4",
     "global memory out of bounds: write of 16 bytes at out \\+ 8192 \\(parameter of 8192 bytes "
     "in ",
     "store_vec(out + c + 4"},
    // A projection with what is fused into it.
    {"uninitialisedRow", normLinear, "normRow", "if (c < 512) {\n    vec<float, 8> product3",
     "if (c < 480) {\n    vec<float, 8> product3", "read of uninitialised dynamic shared memory",
     "return *(const uint4*)(r.x"},
    {"noBarrierBehindTheRow", normLinear, "normRow",
     "    block_sync();\n    run(first, second, Shared", "    run(first, second, Shared",
     "data race \\(read after write\\) on dynamic shared|uninitialised",
     "return *(const uint4*)(r.x", kGemv},
    {"noBarrierBeforeTheJoin", sharedSums, "gemv<", "      block_sync();\n    const int begin",
     "      ;\n    const int begin",
     "data race \\(read after write\\) on parts|uninitialised parts",
     "parts[((q * C::kWarpsN + n) * kHalves + h)", kGemv},
    {"splitCounter", sharedSums, "gemv<", "counters + block, C::kSplits)",
     "counters + block, C::kSplits - 1)", "data race \\(.*\\) on .*\\(global memory\\)",
     "*place(partial,", kGemv},
    {"columnStoredTwice", gatedLinear, "gated(", "out[column]", "out[column / 2]",
     "data race \\(write after write\\) on .*\\(global memory\\)", "out[column / 2]"},
    {"wrongCachePosition", decodeStep, "positions_1", "(e.position + s)) * 64",
     "(e.position + s + 1)) * 64",
     "global memory out of bounds: write of 2 bytes at \\w+ .* in k_cache", "out[0] = x;"},
    // Tiles.
    {"gemmWaitsForTooLittle", gemm, "gemm<Config>", "cp_async_wait<C::kStages - 2>",
     "cp_async_wait<C::kStages - 1>", "asynchronous copy into it is in flight", "ldmatrix_x4(",
     kGemm},
    {"gemmWithoutBarrier", gemm, "gemm<Config>", "block_sync();  // the step's tiles are there",
     ";//", "data race|asynchronous copy into it is in flight", "ldmatrix_x4(", kGemm},
    {"gemmColumnBound", gemm, "gemm<Config>", "right{b + bAt, 96ll", "right{b + bAt, 128ll",
     "global memory out of bounds: read of 16 bytes at b .* in w\\)", "cp_async_16(tile + place"},
    {"decodeCounter", decodeAttention, "attentionDecode", "(u32)splits))", "(u32)splits - 1))",
     "data race \\(write after read\\) on .*\\(global memory\\)", "(float4*)(to + slot * 4) = x",
     kDecode},
    {"decodeKeyBound", decodeAttention, "attentionDecode", "minOf(tile + n * 8 + g, end - 1)",
     "(tile + n * 8 + g)", "global memory out of bounds: read of \\d+ bytes at k .* in x1\\)",
     "k[n][c] = ", kDecode},
    {"tiledWithoutWait", tiledAttention, "attentionTiled", "    cp_async_wait<0>();\n", "\n",
     "asynchronous copy into it is in flight", "ldmatrix_x4(", kTiled},
    {"tiledRowBound", tiledAttention, "attentionTiled", "    if (row > lastRow) break;\n", "",
     "global memory out of bounds: write of \\d+ bytes at y", "st_global_16(a.y", kTiled},
    // Data.
    {"updateBehindTheEnd", updateAtTheEnd, "updateRows", "position + row) *",
     "position + row + 1) *", "global memory out of bounds: write of 16 bytes",
     "position + row + 1)", "lathe_update.cuh"},
    {"topKWithoutBarrier", largestOfMany, "topKOfRow", "    block_sync();\n    for (int d = warp;",
     "    for (int d = warp;", "data race \\(.*\\) on counts", "sum += counts[", "lathe_top_k.cuh"},
    {"cumsumWithoutBarrier", runningSum, "cumsumRows",
     "R::narrow(offset + sum);\n      block_sync();", "R::narrow(offset + sum);",
     "data race \\(write after read\\) on totals", "totals[warp] = sum", "lathe_cumsum.cuh"},
};

class GeneratedFaults : public testing::TestWithParam<Fault> {};

TEST_P(GeneratedFaults, AreReportedWithKernelAndLine) {
  const Fault& f = GetParam();
  Recorded r = f.record();
  EXPECT_EQ(reportOf(r, "check"), "") << "without the fault";
  const auto planted = plant(f, *r.program);
  ASSERT_FALSE(planted.empty()) << "the edit changes nothing";
  const std::string found = reportOf(r, "check") + "\n" + reportOf(r, "check,random,seed=1");
  EXPECT_TRUE(std::regex_search(found, std::regex(f.report))) << found;
  EXPECT_TRUE(namesLine(found, planted, f.line)) << found;
}

// The memory is the program's: without the checks of parameters nothing would be told.
TEST(GeneratedFaults, aNeighbourInOneAllocationIsNoFaultOfMemory) {
  for (const Fault& f : kFaults) {
    if (f.record != neighbours) continue;
    Recorded r = f.record();
    ASSERT_FALSE(plant(f, *r.program).empty()) << f.name;
    EXPECT_EQ(reportOf(r, "fast"), "") << f.name;
  }
}

// Elements of vectors are checked wherever a kernel is looked at closely.
TEST(GeneratedFaults, ElementsAreCheckedWhileDebugging) {
  for (const Fault& f : kFaults) {
    if (f.record != rotated) continue;
    Recorded r = f.record();
    EXPECT_EQ(reportOf(r, "debug"), "") << "without the fault";
    ASSERT_FALSE(plant(f, *r.program).empty()) << f.name;
    EXPECT_TRUE(std::regex_search(reportOf(r, "debug"), std::regex(f.report))) << f.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, GeneratedFaults, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe::cuda
