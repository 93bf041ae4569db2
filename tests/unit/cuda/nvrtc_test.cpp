// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/nvrtc.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/lowering/nvrtc/nvrtc_errors.h"
#include "tests/cuda_mocks/kernel_texts.h"
#include "tests/cuda_mocks/mock_library.h"

namespace lathe::cuda {
namespace {

using test::expectError;
using test::Variable;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const char* const kAdd =
    "#include \"own.cuh\"\n"
    "extern \"C\" __global__ void __launch_bounds__(64) add(float* x, long long n) {\n"
    "  for (long long i = threadIdx.x; i < n; i += 64) x[i] = plus(x[i], 2.0f * x[i]);\n"
    "}\n";
const Headers kOwn = {
    {"own.cuh", "#pragma once\nstatic __device__ float plus(float a, float b) { return a + b; }\n"},
    {"other.cuh", "#error not included\n"}};

TEST(NvrtcTest, IncludesAreFoundThroughOtherHeaders) {
  const Headers headers = {
      {"a.cuh", "  #  include \"b.cuh\"\n#include <c.cuh>\n"},
      {"b.cuh", "#include \"a.cuh\"\n// #include \"c.cuh\"\n#include \"d.cuh\""},
      {"c.cuh", ""},
      {"d.cuh", "#include"}};
  EXPECT_THAT(includedHeaders("int x;\n#include \"a.cuh\"", headers),
              UnorderedElementsAre(Key("a.cuh"), Key("b.cuh"), Key("d.cuh")));
  EXPECT_TRUE(includedHeaders("", headers).empty());
  EXPECT_TRUE(includedHeaders("#include \"nowhere.cuh\"\n", headers).empty());
}

TEST(NvrtcTest, ALibraryThatIsNotFoundIsToldWithThePlaces) {
  // In a process of its own: the library is opened once.
  auto inChild = [](const std::string& path, const std::string& message) {
    fflush(nullptr);
    if (pid_t child = fork(); child != 0) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << path;
      return;
    }
    Variable named("LATHE_NVRTC", path);
    try {
      Nvrtc::library();
    } catch (const Error& e) {
      const bool good = e.code() == ErrorCode::Unsupported &&
                        std::string_view(e.what()).find(message) != std::string_view::npos;
      if (!good) fprintf(stderr, "%s\n", e.what());
      _exit(good ? 0 : 1);
    }
    _exit(2);
  };
  inChild("/nowhere/libnvrtc.so", "  LATHE_NVRTC=/nowhere/libnvrtc.so: ");
  inChild("/nowhere/libnvrtc.so", "run scripts/setup, install a CUDA 13 toolkit, or name");
  inChild("libm.so.6", "libm.so.6 is no NVRTC: it has no nvrtcVersion");
}

TEST(NvrtcTest, CompilesWithoutAGpu) {
  SKIP_WITHOUT_NVRTC();
  const Nvrtc& nvrtc = Nvrtc::library();
  EXPECT_GE(std::stoi(nvrtc.version()), 13);
  NvrtcOutput hopper = nvrtc.compile("add", kAdd, kOwn, "sm_90a");
  EXPECT_EQ(hopper.cubin.substr(0, 4), "\177ELF");
  EXPECT_THAT(hopper.ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(hopper.log, HasSubstr("Function properties for add"));
  EXPECT_THAT(hopper.ptx, Not(HasSubstr("fma.rn"))) << "products and sums are rounded one by one";
  NvrtcOutput portable = nvrtc.compile("add", kAdd, kOwn, "compute_90");
  EXPECT_TRUE(portable.cubin.empty());
  EXPECT_THAT(portable.ptx, HasSubstr(".target sm_90\n"));
  EXPECT_EQ(portable.ptx.back(), '\n') << "no 0 at the end";
}

TEST(NvrtcTest, BytesDependNeitherOnFolderNorOnThread) {
  SKIP_WITHOUT_NVRTC();
  auto compile = [] {
    NvrtcOutput o = Nvrtc::library().compile("add", kAdd, kOwn, "sm_90a");
    return o.cubin + o.ptx;
  };
  const std::string here = compile();
  EXPECT_THAT(here, Not(HasSubstr(std::filesystem::current_path().string())));
  const auto folder = std::filesystem::current_path();
  test::TemporaryFolder other;
  std::filesystem::current_path(other.path());
  std::string there, beside;
  std::thread second([&] { beside = compile(); });
  there = compile();
  second.join();
  std::filesystem::current_path(folder);
  EXPECT_TRUE(here == there);
  EXPECT_TRUE(here == beside);
}

TEST(NvrtcTest, AMistakeIsShownWithTheLinesAroundIt) {
  SKIP_WITHOUT_NVRTC();
  std::string text = kAdd;
  text.insert(text.find(";", text.find("x[i] =")), " + missing");
  expectError(ErrorCode::InvalidArgument,
              "/lathe/add.cu(3): error: identifier \"missing\" is undefined\n"
              "     1 | #include \"own.cuh\"\n"
              "     2 | extern \"C\" __global__",
              [&] { Nvrtc::library().compile("add", text, kOwn, "sm_90a"); });
  expectError(ErrorCode::InvalidArgument, "\n>    3 |   for (long long i",
              [&] { Nvrtc::library().compile("add", text, kOwn, "sm_90a"); });
  expectError(ErrorCode::InvalidArgument, "kernel 'add' does not compile (NVRTC 13.",
              [&] { Nvrtc::library().compile("add", text, kOwn, "compute_90"); });
}

TEST(NvrtcTest, AMistakeInAHeaderNamesTheHeader) {
  SKIP_WITHOUT_NVRTC();
  const Headers broken = {{"own.cuh", "#pragma once\n\nstatic __device__ int plus(;\n"}};
  expectError(ErrorCode::InvalidArgument, "/lathe/own.cuh(3): error:", [&] {
    Nvrtc::library().compile("add", kAdd, broken, "sm_90a");
  });
  expectError(ErrorCode::InvalidArgument, ">    3 | static __device__ int plus(;\n",
              [&] { Nvrtc::library().compile("add", kAdd, broken, "sm_90a"); });
}

TEST(NvrtcTest, AHeaderThatIsMissingIsToldWithThoseThatAreThere) {
  SKIP_WITHOUT_NVRTC();
  expectError(ErrorCode::InvalidArgument, "the headers are: first.cuh second.cuh\n", [&] {
    Nvrtc::library().compile("add", kAdd, {{"first.cuh", ""}, {"second.cuh", ""}}, "sm_90a");
  });
}

TEST(NvrtcTest, AMistakeInAssemblyComesWithPtxasText) {
  SKIP_WITHOUT_NVRTC();
  const char* text =
      "extern \"C\" __global__ void __launch_bounds__(32) odd() { asm volatile(\"frob.b32;\"); }\n";
  expectError(ErrorCode::InvalidArgument, "Not a name of any known instruction",
              [&] { Nvrtc::library().compile("odd", text, {}, "sm_90a"); });
}

TEST(NvrtcTest, AnExplainedLogIsCutAfterTenErrors) {
  std::string log;
  for (int i = 1; i <= 13; ++i)
    log += "/lathe/k.cu(" + std::to_string(i) + "): error: number " + std::to_string(i) + "\n";
  std::string shown = explainLog(log + "13 errors detected\n", "k.cu", "one line\n", {});
  EXPECT_THAT(shown, HasSubstr("error: number 10\n"));
  EXPECT_THAT(shown, Not(HasSubstr("error: number 11\n")));
  EXPECT_THAT(shown, HasSubstr("and 3 more errors\n"));
  const std::string eleven = log.substr(0, log.find("/lathe/k.cu(12)"));
  EXPECT_THAT(explainLog(eleven, "k.cu", "one line\n", {}), HasSubstr("and 1 more error\n"));
  EXPECT_THAT(shown, HasSubstr(">    1 | one line\n"));
  EXPECT_EQ(explainLog("ptxas fatal\n", "k.cu", "", {}), "ptxas fatal\n");
  EXPECT_EQ(explainLog("/lathe/k.cu(x): error: odd\n", "k.cu", "", {}),
            "/lathe/k.cu(x): error: odd\n");
}

TEST(NvrtcTest, CompilesTheProjectsKernels) {
  SKIP_WITHOUT_NVRTC();
  int compiled = 0;
  for (auto& file : std::filesystem::directory_iterator(LATHE_SOURCE_DIR "/tests/cuda_kernels")) {
    if (file.path().extension() != ".cu") continue;
    const std::string name = file.path().stem();
    EXPECT_FALSE(Nvrtc::library()
                     .compile(name, test::readFile(file.path()), deviceHeaders(), "sm_90a")
                     .cubin.empty())
        << name;
    ++compiled;
  }
  EXPECT_GE(compiled, 8);
}

}  // namespace
}  // namespace lathe::cuda
