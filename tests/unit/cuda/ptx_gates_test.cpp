// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/ptx_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda_mocks/kernel_texts.h"

namespace lathe::cuda {
namespace {

using test::expectError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PtxGatesTest, CountsInstructionsHoweverTheyAreWritten) {
  PtxCounts c = countPtx(
      "// ld.global.v4.f32 in a comment\n"
      ".visible .entry k(.param .u64 x) .maxntid 32 {\n"
      "\tld.param.u64 %rd1, [x];\n"
      "\tld.global.nc.L1::no_allocate.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];\n"
      "\t@%p1 ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];\n"
      "\t@!%p1\tld.global.v2.f32 {%f1,%f2}, [%rd1]; ld.global.f32 %f5, [%rd1];\n"
      "\tld.global.nc.u16 %rs1, [%rd1];\n"
      "\tst.global.v4.u32 [%rd1], {%r1,%r2,%r3,%r4}; st.global.b16 [%rd1], %rs1;\n"
      "\t// begin inline asm\n"
      "\t{ mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1},{%r1},{%r2},{%f1}; }\n"
      "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r9];\n"
      "\t// end inline asm\n"
      "\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n"
      "\tcp.async.ca.shared.global [%r1], [%rd1], 4;\n"
      "\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n"
      "\tcp.async.bulk.shared::cluster.global [%r1], [%rd1], 16, [%r2];\n"
      "\tcp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;\n"
      "\tst.local.f32 [%rd2], %f1;\n\tld.local.f32 %f1, [%rd2];\n"
      "\tfma.rn.f32 %f1, %f2, %f3, %f4;\n\tfma.rn.f64 %fd1, %fd2, %fd3, %fd4;\n"
      "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n"
      "\tmul.rn.f32 %f1, %f2, %f3;\n"
      "}\n");
  EXPECT_EQ(c.vectorLoads, 2);
  EXPECT_EQ(c.readOnlyLoads, 2);
  EXPECT_EQ(c.scalarLoads, 2);
  EXPECT_EQ(c.vectorStores, 1);
  EXPECT_EQ(c.scalarStores, 1);
  EXPECT_EQ(c.mma, 1);
  EXPECT_EQ(c.wgmma, 0);
  EXPECT_EQ(c.ldmatrix, 1);
  EXPECT_EQ(c.asyncCopies, 2);
  EXPECT_EQ(c.bulkCopies, 1);
  EXPECT_EQ(c.localAccesses, 2);
  EXPECT_EQ(c.fma, 2);
  EXPECT_EQ(c.gridWaits, 1);
  EXPECT_EQ(c.divisionsInLoops, 0);
}

TEST(PtxGatesTest, OnlyDivisionsInsideLoopsCount) {
  const char* ptx =
      "div.rn.f32 %f1, %f2, %f3;\n"
      "@%p9 bra $L_end;\n"
      "$L_outer:\n"
      "  div.rn.f32 %f1, %f2, %f3;\n"
      "$L_inner:\n"
      "  div.rn.f64 %fd1, %fd2, %fd3;\n"
      "  div.full.f32 %f1, %f2, %f3;\n"
      "  div.s64 %rd1, %rd2, %rd3;\n"
      "  @%p1 bra $L_inner;\n"
      "  @%p2 bra.uni $L_outer;\n"
      "$L_end:\n"
      "div.rn.f32 %f1, %f2, %f3;\n";
  EXPECT_EQ(countPtx(ptx).divisionsInLoops, 2);
  EXPECT_EQ(countPtx("").divisionsInLoops, 0);
}

TEST(PtxGatesTest, ArchitectureOnlyInstructionsAreNotPortable) {
  EXPECT_TRUE(isPortable("mma.sync.aligned.m16n8k16 x;\n// wgmma.fence\n"));
  EXPECT_FALSE(isPortable("{ wgmma.fence.sync.aligned; }\n"));
  EXPECT_FALSE(isPortable("\tsetmaxnreg.inc.sync.aligned.u32 232;\n"));
  EXPECT_FALSE(isPortable("@%p1 tensormap.replace.tile.rank.b1024.b32 [%rd1], 2;"));
}

KernelReport sound() {
  KernelReport report;
  report.resources.registers = 64;
  report.resources.maxThreads = 256;
  report.ptx.vectorLoads = 4;
  return report;
}

TEST(PtxGatesTest, ASoundKernelBreaksNothing) {
  EXPECT_THAT(gateViolations("k", sound(), {}), IsEmpty());
  EXPECT_THAT(gateViolations("k", sound(), {.counts = {{"vector_loads", 4, 4}}, .registers = 64}),
              IsEmpty());
  EXPECT_THAT(gateViolations("k", sound(), {.threads = 256}), IsEmpty()) << "as many as it may";
}

TEST(PtxGatesTest, EveryRuleIsToldByName) {
  auto one = [](auto change, const GateSpec& spec, const std::string& expected) {
    KernelReport report = sound();
    change(report);
    EXPECT_THAT(gateViolations("k", report, spec), ElementsAre("kernel 'k' " + expected));
  };
  auto same = [](KernelReport&) {};
  one([](KernelReport& r) { r.resources.maxThreads = 0; }, {}, "has no __launch_bounds__");
  one(same, {.threads = 257}, "is launched with 257 threads, its __launch_bounds__ are 256");
  one([](KernelReport& r) { r.resources.spillLoads = 8; }, {},
      "spills registers: 0 bytes stored, 8 loaded");
  one([](KernelReport& r) { r.resources.stackBytes = 16; }, {},
      "uses local memory: 16 bytes of stack, 0 accesses");
  one([](KernelReport& r) { r.ptx.localAccesses = 2; }, {},
      "uses local memory: 0 bytes of stack, 2 accesses");
  one(same, {.registers = 63}, "takes 64 registers, at most 63 expected");
  one([](KernelReport& r) { r.resources.sharedBytes = 49153; }, {},
      "has 49153 bytes of static shared memory, at most 49152 can be launched; use "
      "LATHE_DYN_SHARED");
  one(same, {.blocks = 5},
      "runs 4 blocks of 256 threads per multiprocessor (limit: registers), at least 5 expected");
  one(same, {.counts = {{"mma", 1}}}, "has 0 mma, expected at least 1");
  one(same, {.counts = {{"vector_loads", 0, 3}}}, "has 4 vector_loads, expected 0 to 3");
  one(same, {.counts = {{"vector_loads", 5, 5}}}, "has 4 vector_loads, expected 5");
}

TEST(PtxGatesTest, SharedMemoryOfABlockIsBounded) {
  KernelReport report = sound();
  report.resources.sharedBytes = 1024;
  EXPECT_THAT(gateViolations("k", report, {.dynamicShared = (227 << 10) - 1024}), IsEmpty());
  EXPECT_THAT(
      gateViolations("k", report, {.dynamicShared = (227 << 10) - 1023}),
      testing::Contains("kernel 'k' takes 232449 bytes of shared memory, a block has 232448"));
}

TEST(PtxGatesTest, ARuleForAnUnknownCountIsAMistake) {
  expectError(ErrorCode::InvalidArgument, "no PTX count is called 'vector_load'",
              [] { gateViolations("k", sound(), {.counts = {{"vector_load"}}}); });
}

TEST(PtxGatesTest, CountsOfTheProjectsKernels) {
  SKIP_WITHOUT_NVRTC();
  auto counts = [](const char* name) {
    return countPtx(
        Nvrtc::library().compile(name, test::kernelFileText(name), deviceHeaders(), "sm_90a").ptx);
  };
  PtxCounts silu = counts("silu_mul");
  EXPECT_GE(silu.vectorLoads, 2);
  EXPECT_GE(silu.vectorStores, 1);
  EXPECT_EQ(silu.scalarLoads, 0);
  EXPECT_EQ(silu.localAccesses, 0);
  PtxCounts attention = counts("attention");
  EXPECT_GE(attention.mma, 64);
  EXPECT_GE(attention.ldmatrix, 32);
  EXPECT_GE(attention.asyncCopies, 16);
  EXPECT_EQ(attention.localAccesses, 0);
  EXPECT_GE(counts("bulk_scale").bulkCopies, 1);
}

}  // namespace
}  // namespace lathe::cuda
