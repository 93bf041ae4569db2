// SPDX-License-Identifier: Apache-2.0
// Host execution under AddressSanitizer and in gdb: this program starts itself again under them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backends/cuda/hostexec/process.h"
#include "backends/cuda/hostexec/sanitizer.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cuda/address_sanitizer.h"
#include "tests/unit/cuda/host_cases.h"
#include "tests/unit/test_files.h"

namespace lathe::cuda {
namespace {

using testing::HasSubstr;

std::string self() { return std::filesystem::read_symlink("/proc/self/exe"); }

// What the started programs run; LATHE_TEST_FAULT plants an overrun.
TEST(HostTools, DISABLED_kernels) {
  auto driver = std::unique_ptr<Driver>(openHost());
  std::string softmax = kernelText("softmax_mask");
  if (std::getenv("LATHE_TEST_FAULT"))
    softmax.replace(softmax.find("sm[threadIdx.x >> 5] = wm"), 25,
                    "sm[(threadIdx.x >> 5) + 1] = wm");
  auto f = driver->load(
      {{"softmax_mask", softmax, "", ""}, {"attention", kernelText("attention"), "", ""}});
  EXPECT_LE(runCase(*driver, f[0], "softmax_mask"), 1);
  EXPECT_LE(runCase(*driver, f[1], "attention"), 1);
}

constexpr const char* kRunKernels[] = {"--gtest_also_run_disabled_tests",
                                       "--gtest_filter=HostTools.DISABLED_kernels"};

TEST(HostTools, addressSanitizerFindsOverruns) {
  const AddressSanitizer sanitizer = findAddressSanitizer();
  if (!sanitizer.missing.empty()) GTEST_SKIP() << sanitizer.missing;
  auto run = [&](const char* fault) {
    std::vector<std::string> command = {"/usr/bin/env", "LATHE_CUDA_HOST=asan",
                                        "LATHE_HOST_CXX=" + sanitizer.compiler,
                                        "ASAN_OPTIONS=detect_leaks=0", sanitizer.preload};
    if (*fault) command.push_back(fault);
    command.push_back(self());
    command.insert(command.end(), std::begin(kRunKernels), std::end(kRunKernels));
    return host::runProcess(command);
  };
  const host::ProcessResult good = run("");
  EXPECT_EQ(good.status, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("[  PASSED  ] 1 test"));
  const host::ProcessResult bad = run("LATHE_TEST_FAULT=1");
  EXPECT_NE(bad.status, 0);
  EXPECT_THAT(bad.output, HasSubstr("ERROR: AddressSanitizer"));
  EXPECT_THAT(bad.output, HasSubstr("softmax_mask.cu:19"));
}

TEST(HostTools, optionsWithoutEffectAreErrors) {
  struct Refused {
    const char *options, *said;
  };
  const Refused all[] = {
      {"check,preempt=0", "preempt=N with N of at least 1, got \"preempt=0\" and mode check"},
      {"preempt=97", "preempt=N in mode check alone, got \"preempt=97\" and mode fast"},
      {"preempt=97,debug", "got \"preempt=97\" and mode debug"},
      {"threads=0", "threads=N with N from 1 to 4096, got \"threads=0\""},
      {"threads=9999", "threads=N with N from 1 to 4096, got \"threads=9999\""},
      {"threads=-1", "threads=N with N from 1 to 4096"},
      {"check,threads=2", "threads=N in mode fast or asan alone"},
      {"fast,check", "expected one mode, got fast and check"},
  };
  for (const Refused& r : all)
    test::expectError(ErrorCode::InvalidArgument, r.said, [&] { host::parseOptions(r.options); });
  EXPECT_TRUE(host::parseOptions("asan,count").count);  // launches are recorded in every mode
  const host::Options behind = host::parseOptions("count,preempt=5,check");
  EXPECT_TRUE(behind.count);
  EXPECT_EQ(behind.preemptEvery, 5u);
  EXPECT_EQ(host::parseOptions("fast,threads=4096").threads, 4096);
}

TEST(HostTools, asanModeSaysWhatIsMissing) {
  if (host::haveAsan()) GTEST_SKIP() << "AddressSanitizer is in this program";
  try {
    openHost(host::parseOptions("asan"));
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("LD_PRELOAD=$("));
  }
}

TEST(HostTools, gdbShowsEveryThread) {
  const std::string gdb = host::findProgram("gdb");
  if (gdb.empty()) GTEST_SKIP() << "no gdb";
  const host::ProcessResult r =
      host::runProcess({"/usr/bin/env",
                        "LATHE_CUDA_HOST=debug",
                        "timeout",
                        "60",
                        gdb,
                        "-batch",
                        "-nx",
                        "-ex",
                        "set debuginfod enabled off",
                        "-x",
                        LATHE_SOURCE_DIR "/scripts/lathe_gdb.py",
                        "-ex",
                        "set breakpoint pending on",
                        "-ex",
                        "break softmax_mask.cu:22 if lt_self->tid.x == 37",
                        "-ex",
                        "run",
                        "-ex",
                        "print lt_self->tid.x",
                        "-ex",
                        "print bm",
                        "-ex",
                        "lathe",
                        "-ex",
                        "lathe 60",
                        "-ex",
                        "kill",
                        "--args",
                        self(),
                        kRunKernels[0],
                        kRunKernels[1]});
  if (r.output.find("ptrace") != std::string::npos) GTEST_SKIP() << "gdb may not trace here";
  EXPECT_THAT(r.output, HasSubstr("$1 = 37"));
  EXPECT_THAT(r.output, HasSubstr("threads 37-37: running"));
  EXPECT_THAT(r.output, testing::ContainsRegex("threads 38-126: ready at softmax_mask.cu:20"));
  EXPECT_THAT(r.output, testing::ContainsRegex(
                            "#[0-9]+ .*lathe_softmax_mask::softmax_mask.*softmax_mask.cu:20"));
}

}  // namespace
}  // namespace lathe::cuda
