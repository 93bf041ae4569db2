// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/cubin_report.h"

#include <elf.h>

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "tests/cuda_mocks/kernel_texts.h"

namespace lathe::cuda {
namespace {

using test::expectError;

const char* const kTwo =
    "extern \"C\" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(96)\n"
    "small(float* x, float d) {\n"
    "  __shared__ float s[100];\n"
    "  s[threadIdx.x] = x[threadIdx.x] / d;\n"
    "  __syncthreads();\n"
    "  x[threadIdx.x] = s[95 - threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(1024, 2) spills(float* x, int n) {\n"
    "  float v[64];\n"
    "  #pragma unroll\n"
    "  for (int i = 0; i < 64; ++i) v[i] = x[threadIdx.x + i * 1024];\n"
    "  __syncthreads();\n"
    "  float sum = 0;\n"
    "  #pragma unroll\n"
    "  for (int i = 0; i < 64; ++i)\n"
    "    sum += v[i] * v[63 - i];\n"
    "  #pragma unroll\n"
    "  for (int i = 0; i < 64; ++i) x[threadIdx.x + i * 1024] = v[i] * sum;\n"
    "}\n";

NvrtcOutput compiledTwo() { return Nvrtc::library().compile("two", kTwo, {}, "sm_90a"); }

TEST(CubinReportTest, ReadsWhatTheCompilerSays) {
  SKIP_WITHOUT_NVRTC();
  NvrtcOutput two = compiledTwo();
  auto kernels = readCubin(two.cubin, two.log);
  ASSERT_EQ(kernels.size(), 2u) << "out-of-line division is no kernel";
  const KernelResources& small = kernels.at("small");
  EXPECT_EQ(small.sharedBytes, 400);
  EXPECT_EQ(small.maxThreads, 96);
  EXPECT_EQ(small.cluster, (std::array<int, 3>{4, 1, 1}));
  EXPECT_EQ(small.stackBytes, 0);
  EXPECT_EQ(small.spillStores, 0);
  const KernelResources& spills = kernels.at("spills");
  EXPECT_EQ(spills.registers, 32) << "what 2,048 threads leave";
  EXPECT_EQ(spills.maxThreads, 1024);
  EXPECT_EQ(spills.cluster, (std::array<int, 3>{0, 0, 0}));
  EXPECT_GT(spills.spillStores, 0);
  EXPECT_GT(spills.spillLoads, 0);
  EXPECT_GE(spills.stackBytes, spills.spillStores / 4);
  // The log is the same compiler's other account of it.
  EXPECT_NE(two.log.find("Used " + std::to_string(small.registers) + " registers"),
            std::string::npos)
      << two.log;
  EXPECT_NE(two.log.find(std::to_string(spills.stackBytes) + " bytes stack frame, " +
                         std::to_string(spills.spillStores) + " bytes spill stores"),
            std::string::npos)
      << two.log;
}

TEST(CubinReportTest, StaticSharedMemoryIsReadBeyondWhatCanBeLaunched) {
  SKIP_WITHOUT_NVRTC();
  const char* text =
      "extern \"C\" __global__ void __launch_bounds__(32) wide(float* x) {\n"
      "  __shared__ float s[20000];\n"
      "  s[threadIdx.x * 600] = x[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  x[threadIdx.x] = s[19999 - threadIdx.x * 600];\n"
      "}\n";
  NvrtcOutput wide = Nvrtc::library().compile("wide", text, {}, "sm_90a");
  EXPECT_EQ(readCubin(wide.cubin, wide.log).at("wide").sharedBytes, 80000);
}

TEST(CubinReportTest, RefusesWhatIsNoCubin) {
  auto refuses = [](std::string_view bytes) {
    expectError(ErrorCode::InvalidFile,
                "the cubin cannot be read: ", [&] { readCubin(bytes, ""); });
  };
  refuses("");
  refuses("\177ELF");
  refuses(std::string(64, 'x'));
  std::string header(sizeof(Elf64_Ehdr), '\0');
  std::memcpy(header.data(), ELFMAG, SELFMAG);
  refuses(header);
}

TEST(CubinReportTest, DamagedCubinsAreErrorsAndNothingWorse) {
  SKIP_WITHOUT_NVRTC();
  const NvrtcOutput two = compiledTwo();
  int refused = 0;
  // What is read lies in the first half; program headers are at the end.
  for (size_t size = 0; size < two.cubin.size() / 2; size += 97)
    EXPECT_THROW(readCubin(two.cubin.substr(0, size), two.log), Error) << size;
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = two.cubin;
    for (int change = 0; change < 4; ++change) damaged[random() % damaged.size()] = char(random());
    for (int change = 0; change < 2; ++change) damaged[random() % 64] = char(random());
    try {
      readCubin(damaged, two.log);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

// Expected values: NVIDIA's occupancy calculator for compute capability 9.0.
TEST(CubinReportTest, OccupancyOfHopper) {
  struct Case {
    int registers, threads;
    int64_t staticShared, dynamicShared;
    int blocks;
    const char* limit;
  };
  for (const Case& c :
       std::vector<Case>{{32, 256, 0, 0, 8, "warps"},
                         {32, 32, 0, 0, 32, "blocks"},
                         {32, 1024, 0, 0, 2, "warps"},
                         {33, 1024, 0, 0, 1, "registers"},  // 1,280 registers per warp
                         {64, 1024, 0, 0, 1, "registers"},
                         {65, 1024, 0, 0, 0, "registers"},
                         {128, 256, 0, 0, 2, "registers"},
                         {139, 128, 0, 40960, 3, "registers"},
                         {168, 384, 0, 0, 1, "registers"},
                         {255, 256, 0, 0, 1, "registers"},
                         {255, 288, 0, 0, 0, "registers"},
                         {32, 33, 0, 0, 32, "warps"},
                         {32, 96, 1024, 0, 21, "warps"},
                         {32, 128, 8208, 0, 16, "warps"},
                         {32, 128, 0, 100 << 10, 2, "shared memory"},
                         {32, 128, 48 << 10, 67 << 10, 1, "shared memory"},
                         {32, 128, 0, 227 << 10, 1, "shared memory"},
                         {32, 128, 1, 227 << 10, 0, "shared memory"},
                         {32, 1025, 0, 0, 0, "warps"}}) {
    KernelResources kernel;
    kernel.registers = c.registers;
    kernel.sharedBytes = c.staticShared;
    Occupancy o = occupancy(kernel, c.threads, c.dynamicShared);
    const std::string what = std::to_string(c.registers) + " registers, " +
                             std::to_string(c.threads) + " threads, " +
                             std::to_string(c.dynamicShared);
    EXPECT_EQ(o.blocks, c.blocks) << what;
    if (c.blocks != 32) {
      EXPECT_EQ(o.limit, c.limit) << what;
    }
    EXPECT_EQ(o.warps, c.blocks * ((c.threads + 31) / 32)) << what;
  }
}

}  // namespace
}  // namespace lathe::cuda
