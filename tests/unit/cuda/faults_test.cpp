// SPDX-License-Identifier: Apache-2.0
// Faults planted into correct kernels: each is reported by kind and generated line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "lathe/runtime/error.h"
#include "tests/unit/cuda/host_cases.h"

namespace lathe::cuda {
namespace {

struct Fault {
  const char* name;
  const char* kernel;
  const char* old;  ///< the first occurrence in the text
  const char* now;
  /// A regular expression of the report; "" where only numbers or bank conflicts tell.
  const char* report;
  const char* after = "";  ///< search for `old` behind this
};

const Fault kFaults[] = {
    {"missingBarrier", "softmax_mask", "  block_sync();\n", "  \n",
     "data race \\(read after write\\) on s[ml] \\+ \\d+ \\(array of 16 bytes\\): block "
     "\\(\\d+,0,0\\) thread \\(\\d+,0,0\\) \\[warp \\d lane \\d+\\] at softmax_mask.cu:\\d+, "
     "against thread \\d+ of block \\d+ at softmax_mask.cu:19, no barrier between|read of "
     "uninitialised s[ml]"},
    {"sharedOutOfBounds", "softmax_mask", "sm[threadIdx.x >> 5] = wm",
     "sm[(threadIdx.x >> 5) + 1] = wm",
     "shared memory out of bounds: write of 4 bytes at sm \\+ 16 \\(array of 16 bytes\\) by block "
     "\\(0,0,0\\) thread \\(96,0,0\\) \\[warp 3 lane 0\\] at softmax_mask.cu:19"},
    {"sharedEndsInside", "softmax_mask", "  float m = -1e30f",
     "  LATHE_SHARED(float, odd, 5);\n"
     "  if (threadIdx.x == 0) { for (int i = 0; i < 5; ++i) odd[i] = 0; }\n"
     "  if (threadIdx.x == 0) odd[0] = load_f32_shared<4>(odd + 4).v[0];\n  float m = -1e30f",
     "shared memory out of bounds: read of 16 bytes at odd \\+ 16 \\(array of 20 bytes\\)"},
    {"readByAnotherWarpBefore", "softmax_mask", "  const float inv = bl",
     "  LATHE_SHARED(float, both, 1);\n  if (threadIdx.x == 0) both[0] = 0;\n  block_sync();\n"
     "  if (threadIdx.x == 0 || threadIdx.x == 32) bl += both[0];\n"
     "  if (threadIdx.x == 32) both[0] = 0;\n  const float inv = bl",
     "data race \\(write after read\\) on both \\+ 0 \\(array of 4 bytes\\): .* thread "
     "\\(32,0,0\\) .* against thread 0 of block"},
    {"globalOutOfBounds", "silu_mul", "if (i >= n) return;", "",
     "global memory out of bounds: read of \\d+ bytes at gate \\+ 32784 \\(buffer of 32784 "
     "bytes\\) "
     "by block \\(8,0,0\\) thread \\(1,0,0\\) .* at silu_mul.cu:8"},
    {"waitOffByOne", "attention", "cp_async_wait<1>", "cp_async_wait<2>",
     "read of dynamic shared memory \\+ \\d+ .*while an asynchronous copy into it is in flight "
     "\\(issued by thread \\d+; wait missing\\): .* at attention.cu:\\d+"},
    {"noBarrierAfterWait", "attention", "    block_sync();\n", "    \n",
     "data race|asynchronous copy into it is in flight"},
    {"bufferReuse", "attention", "    block_sync();\n", "    \n",
     "data race \\(write after read\\) on dynamic shared memory .* at attention.cu:\\d+, against "
     "thread \\d+ of block \\d+ at line \\d+|asynchronous copy into it is in flight",
     "mma_bf16(acc[2 * d + 1]"},
    {"wrongFragment", "attention", "p.r[1] = pack_bf16x2(s[2 * kk].r[2]",
     "p.r[1] = pack_bf16x2(s[2 * kk + 1].r[2]", ""},
    {"wrongSwizzle", "attention", "(chunk ^ (row & 7))", "(chunk ^ ((row >> 1) & 7))", ""},
    {"noSwizzle", "attention", "((chunk ^ (row & 7)) * 16)", "(chunk * 16)", ""},
    {"divergentBarrier", "gemv_splitk", "  block_sync();", "  if (threadIdx.x < 64) block_sync();",
     "divergent barrier: .* at gemv_splitk.cu:\\d+, earlier threads at gemv_splitk.cu:19|"
     "deadlock"},
    {"twoBarriers", "softmax_mask", "  block_sync();",
     "  if (threadIdx.x < 64) block_sync();\n  else block_sync();",
     "divergent barrier: .* at softmax_mask.cu:21, earlier threads at softmax_mask.cu:20"},
    {"earlyReturn", "softmax_mask", "  float m = -1e30f",
     "  if ((int)threadIdx.x >= cols - 900) return;\n  float m = -1e30f",
     "deadlock, no thread can run:(.|\n)*threads 96-99: wait at a warp reduction "
     "softmax_mask.cu:18(.|\n)*threads 100-127: have returned"},
    {"divergentReduction", "rmsnorm_warp", "warp_sum(ss)", "(lane < 16 ? warp_sum(ss) : ss)",
     "deadlock(.|\n)*wait at a warp reduction rmsnorm_warp.cu:15"},
    {"reductionsAtTwoLines", "rmsnorm_warp", "warp_sum(ss)",
     "(lane < 16 ? warp_sum(ss)\n : warp_sum(ss))",
     "divergent warp operation in warp \\d+: .* at .*rmsnorm_warp.cu:1[56], lanes before it at "
     ".*rmsnorm_warp.cu:1[56]"},
    {"uninitialisedShared", "softmax_mask", "sl[threadIdx.x >> 5] = wl;", "",
     "read of uninitialised sl \\+ 0 \\(array of 16 bytes\\) by .* at softmax_mask.cu:25"},
    {"gridRace", "gemv_splitk", "counter_add_acq_rel(counter + blockIdx.x, 1) == gridDim.y - 1",
     "blockIdx.y == gridDim.y - 1",
     "data race \\(read after write\\) on ws \\+ \\d+ \\(global memory\\): .* at "
     "gemv_splitk.cu:25, against thread \\d+ of block \\d+ at gemv_splitk.cu:18"},
    {"misaligned", "silu_mul", "gate + i)", "gate + i + 1)",
     "misaligned 16-byte access to gate \\+ 2 \\(buffer of \\d+ bytes\\) by block \\(0,0,0\\) "
     "thread \\(0,0,0\\) .* at "
     "silu_mul.cu:8"},
    {"wrongParity", "bulk_scale", "(u32)(j >> 1) & 1", "(u32)((j >> 1) + 1) & 1",
     "asynchronous copy into it is in flight|deadlock(.|\n)*mbar_wait|uninitialised"},
    {"noMbarrierWait", "bulk_scale", "    mbar_wait(&full[s], (u32)(j >> 1) & 1);\n", "\n",
     "read of ring \\+ \\d+ \\(array of 8192 bytes\\) while an asynchronous copy"},
    {"missingBytes", "bulk_scale", "mbar_arrive_expect_tx(&full[s], 4096)",
     "mbar_arrive_expect_tx(&full[s], 8192)",
     "deadlock(.|\n)*threads 0-127: wait at mbar_wait bulk_scale.cu:22"},
    {"noWarpSync", "transpose", "  warp_sync();\n", "\n",
     "data race \\(read after write\\) on tile \\+ \\d+ \\(array of 8448 bytes\\): .* at "
     "transpose.cu:12, against thread \\d+ of block 0 at transpose.cu:10"},
    {"wrongTileStride", "transpose", "tile + warp * 32 * 33", "tile + warp * 31 * 33",
     "data race \\(.*\\) on tile \\+ \\d+ .* at transpose.cu:1[02], against thread \\d+ of block "
     "0 at transpose.cu:1[02]"},
    {"noGridWait", "bulk_scale", "  grid_dep_wait();\n", "\n",
     "read of between \\+ 0 \\(written by kernel bulk_scale, 1 launch before\\) before "
     "griddepcontrol.wait: .* "
     "at bulk_scale.cu:18"},
};

std::string planted(const Fault& f) {
  std::string text = kernelText(f.kernel);
  const size_t from = text.find(f.after), at = text.find(f.old, from);
  if (from == text.npos || at == text.npos) throw std::runtime_error("the edit changes nothing");
  return text.replace(at, std::string(f.old).size(), f.now);
}

class Faults : public testing::TestWithParam<size_t> {
 protected:
  // All planted kernels in one list compile faster than one by one.
  static void SetUpTestSuite() {
    driver_ = openHost(host::parseOptions("check,count"));
    std::vector<KernelCode> codes;
    for (const Fault& f : kFaults) codes.push_back({f.kernel, planted(f), "", ""});
    functions_ = driver_->load(codes);
  }
  static void TearDownTestSuite() { driver_.reset(); }
  static inline std::unique_ptr<HostDriver> driver_;
  static inline std::vector<Driver::Function> functions_;
};

TEST_P(Faults, areReported) {
  const Fault& fault = kFaults[GetParam()];
  const Driver::Function f = functions_[GetParam()];
  const bool reports = *fault.report != '\0';
  std::string found;
  bool wrong = false;
  uint64_t conflicts = 0;
  for (const char* schedule : {"check,count", "check,count,random,seed=1"}) {
    driver_->setOptions(host::parseOptions(schedule));
    try {
      wrong |= runCase(*driver_, f, fault.kernel) > 1;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Numeric);
      found += e.what();
    }
    for (const LaunchRecord& l : driver_->takeLaunches()) conflicts += l.bankConflicts;
  }
  if (reports)
    EXPECT_TRUE(std::regex_search(found, std::regex(fault.report))) << found;
  else
    EXPECT_TRUE(wrong || conflicts) << found;
}

INSTANTIATE_TEST_SUITE_P(Planted, Faults, testing::Range(size_t(0), std::size(kFaults)),
                         [](const auto& info) { return std::string(kFaults[info.param].name); });

}  // namespace
}  // namespace lathe::cuda
