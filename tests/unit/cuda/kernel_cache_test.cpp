// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/kernel_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/lowering/nvrtc/kernel_cache_entry.h"
#include "tests/cuda_mocks/kernel_texts.h"
#include "tests/cuda_mocks/mock_library.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;
using test::expectError;
using test::Variable;
using ::testing::HasSubstr;

const Headers kHeaders = {{"scale.cuh", "#pragma once\n#include \"factor.cuh\"\n"},
                          {"factor.cuh", "#pragma once\n#define FACTOR 3.0f\n"},
                          {"unused.cuh", "#error\n"}};

KernelText kernel(const std::string& name, const std::string& extra = "") {
  return {name, "#include \"scale.cuh\"\nextern \"C\" __global__ void __launch_bounds__(64) " +
                    name + "(float* x) {\n  x[threadIdx.x] *= FACTOR;" + extra + "\n}\n"};
}

// An entry as it would be on disk.
class KernelCacheEntryTest : public ::testing::Test {
 protected:
  KernelCacheEntryTest() {
    compiled_.cubin = std::string("\177ELF\0binary", 11);
    compiled_.ptx = "// ptx\n";
    compiled_.report.resources.registers = 32;
    compiled_.report.resources.maxThreads = 64;
    compiled_.report.resources.cluster = {2, 1, 1};
    compiled_.report.resources.spillStores = 5;
    compiled_.report.ptx.vectorLoads = 7;
    compiled_.report.ptx.fma = 9;
  }
  void write() { writeCacheEntry(path_, key_, {"k", "// text\n"}, compiled_); }
  size_t filesInFolder() {
    return size_t(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  test::TemporaryFolder folder_;
  std::string key_ = std::string(64, 'a');
  std::string path_ = cacheEntryPath(folder_.path(), "k", key_);
  CompiledKernel compiled_;
};

TEST_F(KernelCacheEntryTest, ComesBackAsItWasWritten) {
  EXPECT_FALSE(readCacheEntry(path_, key_));
  // Without NVRTC the report has no version to name.
  SKIP_WITHOUT_NVRTC();
  write();
  auto kept = readCacheEntry(path_, key_);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->cubin, compiled_.cubin);
  EXPECT_EQ(kept->ptx, compiled_.ptx);
  EXPECT_EQ(kept->report.resources.registers, 32);
  EXPECT_EQ(kept->report.resources.maxThreads, 64);
  EXPECT_EQ(kept->report.resources.cluster, (std::array<int, 3>{2, 1, 1}));
  EXPECT_EQ(kept->report.resources.spillStores, 5);
  EXPECT_EQ(kept->report.ptx.vectorLoads, 7);
  EXPECT_EQ(kept->report.ptx.fma, 9);
  EXPECT_EQ(test::readFile(path_ + "/kernel.cu"), "// text\n");
  EXPECT_EQ(filesInFolder(), 1u) << "nothing temporary is left";
}

TEST_F(KernelCacheEntryTest, WhatWasChangedIsNotTrusted) {
  SKIP_WITHOUT_NVRTC();
  auto damages = [&](const char* what, auto change) {
    write();
    ASSERT_TRUE(readCacheEntry(path_, key_)) << what << ": a bad entry is replaced";
    change();
    EXPECT_FALSE(readCacheEntry(path_, key_)) << what;
  };
  auto put = [&](const std::string& file, const std::string& text) {
    std::ofstream(path_ + "/" + file, std::ios::binary) << text;
  };
  damages("one byte of the cubin",
          [&] { put("kernel.cubin", std::string("\177ELF\0binarx", 11)); });
  damages("a shorter cubin", [&] { put("kernel.cubin", "\177ELF"); });
  damages("no cubin", [&] { fs::remove(path_ + "/kernel.cubin"); });
  damages("other PTX", [&] { put("kernel.ptx", "// ptx \n"); });
  damages("no report", [&] { fs::remove(path_ + "/report.json"); });
  damages("half a report", [&] { put("report.json", "{\"kernel\": \"k\","); });
  damages("an empty report", [&] { put("report.json", ""); });
  damages("another number", [&] {
    std::string report = test::readFile(path_ + "/report.json");
    put("report.json", report.replace(report.find("\"registers\": 32"), 15, "\"registers\": 31"));
  });
  damages("a file in the entry's place", [&] {
    fs::remove_all(path_);
    std::ofstream(path_) << "no folder";
  });
  write();
  EXPECT_FALSE(readCacheEntry(path_, std::string(32, 'a') + std::string(32, 'b')))
      << "keys that agree in the part that is the folder's name";
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(KernelCacheEntryTest, ManyWritersLeaveOneEntry) {
  SKIP_WITHOUT_NVRTC();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    if (pid_t child = fork(); child == 0) {
      for (int j = 0; j < 20; ++j) write();
      _exit(readCacheEntry(path_, key_) ? 0 : 1);
    } else {
      children.push_back(child);
    }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(readCacheEntry(path_, key_));
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(KernelCacheEntryTest, AFolderThatCannotBeMadeIsNoError) {
  SKIP_WITHOUT_NVRTC();
  const std::string file = folder_.write("file", "");
  const std::string path = cacheEntryPath(file + "/below", "k", key_);
  writeCacheEntry(path, key_, {"k", ""}, compiled_);
  EXPECT_FALSE(readCacheEntry(path, key_));
}

TEST_F(KernelCacheEntryTest, LongNamesFitIntoAFileName) {
  SKIP_WITHOUT_NVRTC();
  path_ = cacheEntryPath(folder_.path(), std::string(1000, 'n'), key_);
  write();
  EXPECT_TRUE(readCacheEntry(path_, key_));
}

TEST(KernelCacheTest, TheFolderFollowsTheEnvironment) {
  Variable home("HOME", "/home/somebody"), none("XDG_CACHE_HOME", ""), own("LATHE_CACHE_DIR", "");
  EXPECT_EQ(kernelCacheFolder(), "/home/somebody/.cache/lathe/cuda");
  Variable xdg("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(kernelCacheFolder(), "/xdg/lathe/cuda");
  Variable cache("LATHE_CACHE_DIR", "/cache");
  EXPECT_EQ(kernelCacheFolder(), "/cache/cuda");
}

TEST(KernelCacheTest, TheKeyIsAllThatTheCodeDependsOn) {
  SKIP_WITHOUT_NVRTC();
  const std::string key = kernelKey(kernel("k"), kHeaders);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(kernelKey(kernel("k"), kHeaders), key);
  EXPECT_NE(kernelKey(kernel("l"), kHeaders), key);
  EXPECT_NE(kernelKey(kernel("k", " "), kHeaders), key);
  Headers changed = kHeaders;
  changed["unused.cuh"] = "other";
  EXPECT_EQ(kernelKey(kernel("k"), changed), key);
  changed["factor.cuh"] += "\n";
  EXPECT_NE(kernelKey(kernel("k"), changed), key) << "a header of a header";
  // Where one part ends and the next begins matters.
  EXPECT_NE(kernelKey({"ab", "c"}, {}), kernelKey({"a", "bc"}, {}));
}

TEST(KernelCacheTest, CompilesReadsAndRemembers) {
  SKIP_WITHOUT_NVRTC();
  test::TemporaryFolder folder;
  std::vector<KernelText> texts = {kernel("one"), kernel("two", " x[64] = 1;"), kernel("one")};
  auto compiled = compileKernels(texts, kHeaders, folder.path());
  ASSERT_EQ(compiled.size(), 3u);
  EXPECT_EQ(compiled[0].cubin.substr(0, 4), "\177ELF");
  EXPECT_THAT(compiled[0].ptx, HasSubstr(".entry one("));
  EXPECT_THAT(compiled[0].ptx, HasSubstr(".target sm_90\n"));
  EXPECT_THAT(compiled[1].ptx, HasSubstr(".entry two("));
  EXPECT_TRUE(compiled[2].cubin == compiled[0].cubin);
  EXPECT_EQ(compiled[0].report.resources.maxThreads, 64);
  EXPECT_EQ(compiled[0].report.ptx.scalarLoads, 1);
  EXPECT_EQ(compiled[1].report.ptx.scalarStores, 2);
  // Memory first: the folder may be gone.
  fs::remove_all(folder.path());
  EXPECT_TRUE(compileKernels(texts, kHeaders, folder.path())[1].cubin == compiled[1].cubin);
  EXPECT_FALSE(fs::exists(folder.path()));
}

TEST(KernelCacheTest, AnotherProcessTakesWhatIsOnDisk) {
  SKIP_WITHOUT_NVRTC();
  test::TemporaryFolder folder;
  const KernelText text = kernel("shared", "// in two processes");
  const std::string key = kernelKey(text, kHeaders);
  const std::string path = cacheEntryPath(folder.path(), text.name, key);
  auto inChild = [&] {
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      try {
        _exit(compileKernels({text}, kHeaders, folder.path())[0].cubin ==
                      test::readFile(path + "/kernel.cubin")
                  ? 0
                  : 1);
      } catch (const std::exception& e) {
        fprintf(stderr, "%s\n", e.what());
        _exit(2);
      }
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  };
  EXPECT_EQ(inChild(), 0);
  auto first = fs::last_write_time(path + "/kernel.cubin");
  EXPECT_EQ(inChild(), 0);
  EXPECT_EQ(fs::last_write_time(path + "/kernel.cubin"), first) << "read, not made again";
  const std::string good = test::readFile(path + "/kernel.cubin");
  std::ofstream(path + "/kernel.cubin") << "damaged";
  EXPECT_EQ(inChild(), 0);
  EXPECT_TRUE(test::readFile(path + "/kernel.cubin") == good) << "made again";
}

TEST(KernelCacheTest, WorksWithoutAFolder) {
  SKIP_WITHOUT_NVRTC();
  EXPECT_FALSE(compileKernels({kernel("nowhere")}, kHeaders, "")[0].cubin.empty());
  EXPECT_TRUE(compileKernels({}, kHeaders, "").empty());
}

TEST(KernelCacheTest, TheFirstMistakeIsTold) {
  SKIP_WITHOUT_NVRTC();
  expectError(ErrorCode::InvalidArgument, "kernel 'bad1' does not compile", [] {
    compileKernels({kernel("fine"), kernel("bad1", "!"), kernel("bad2", "?")}, kHeaders, "");
  });
  expectError(ErrorCode::InvalidArgument,
              "the text of kernel 'other' has no extern \"C\" __global__ function of that name; "
              "it has: mine",
              [] { compileKernels({{"other", kernel("mine").source}}, kHeaders, ""); });
}

TEST(KernelCacheTest, NamesThatAreNoNamesAreRefused) {
  for (const char* name : {"", "../up", "a b", "1st", "a-b"})
    expectError(ErrorCode::InvalidArgument, "cannot be the name of a kernel",
                [&] { compileKernels({{name, ""}}, {}, ""); });
}

TEST(KernelCacheTest, PtxIsWhatNvrtcWritesForTheVirtualArchitecture) {
  SKIP_WITHOUT_NVRTC();
  for (const char* header : {"lathe_gemm.cuh", "lathe_attention_decode.cuh", "lathe_top_k.cuh"}) {
    const std::string text =
        "#include \"" + std::string(header) +
        "\"\nextern \"C\" __global__ void __launch_bounds__(64) sums(const bf16* x, float* y) {\n"
        "  float sum = 0;\n"
        "  for (int i = threadIdx.x; i < 1000; i += 64) sum += fast_exp(to_f32(x[i]));\n"
        "  y[threadIdx.x] = warp_sum(sum);\n}\n";
    const CompiledKernel compiled = compileKernels({{"sums", text}}, deviceHeaders(), "")[0];
    EXPECT_FALSE(compiled.ptx.empty());
    EXPECT_EQ(compiled.ptx,
              Nvrtc::library().compile("sums", text, deviceHeaders(), "compute_90").ptx);
  }
}

TEST(KernelCacheTest, CodeForOneArchitectureOnlyHasNoPtx) {
  SKIP_WITHOUT_NVRTC();
  const char* text =
      "extern \"C\" __global__ void __launch_bounds__(128) narrow() {\n"
      "  asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");\n}\n";
  auto compiled = compileKernels({{"narrow", text}}, {}, "");
  EXPECT_FALSE(compiled[0].cubin.empty());
  EXPECT_TRUE(compiled[0].ptx.empty());
}

}  // namespace
}  // namespace lathe::cuda
