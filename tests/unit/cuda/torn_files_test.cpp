// SPDX-License-Identifier: Apache-2.0
// Whoever is killed while writing leaves a whole file or the one before: artifacts, checkpoints,
// arrays and the caches of compiled kernels. LATHE_TEST_KILLS is how often each writer is killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/lowering/nvrtc/kernel_cache_entry.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/program.h"
#include "lathe/runtime/safetensors.h"
#include "tests/cuda_mocks/kernel_texts.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

int kills(int otherwise) {
  const char* given = std::getenv("LATHE_TEST_KILLS");
  return given ? std::atoi(given) : otherwise;
}

// Kills a child that writes again and again, after a time of at most `most`; then looks at what it
// left.
void killWhile(int times, std::chrono::microseconds most, const std::function<void(int)>& write,
               const std::function<void()>& look) {
  std::mt19937 random(7);
  for (int i = 0; i < times; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (int round = 0;; ++round) write(round);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "the writer: %s\n", e.what());
      }
      _exit(3);
    }
    std::this_thread::sleep_for(most * double(random() % 1000) / 1000.0);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    look();
    if (testing::Test::HasFailure()) return;
  }
}

Array filled(int64_t size, double value) {
  Array a(DType::F32, {size});
  for (int64_t i = 0; i < size; ++i) a.set(i, value);
  return a;
}
// One array was written whole: all its elements are of one round, and it has that round's length.
void expectWhole(const Array& a) {
  const double round = a.at(0);
  ASSERT_EQ(a.size(), 20'000 + int64_t(round));
  for (int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(a.at(i), round);
}
Array ofRound(int round) { return filled(20'000 + round % 100, round % 100); }

using std::chrono::milliseconds;

TEST(TornFiles, AKilledWriterLeavesAWholeProgram) {
  TemporaryFolder folder;
  const std::string path = folder / "p.lathe";
  auto program = [](int round) {
    Program p;
    p.backend = "none";
    p.constants = {ofRound(round)};
    p.blobs["code"] = std::string(size_t(50'000 + round % 100), char('a' + round % 20));
    return p;
  };
  program(0).save(path);
  killWhile(
      kills(20), milliseconds(20), [&](int round) { program(round).save(path); },
      [&] {
        const auto p = Program::open(path);
        expectWhole(p->constants[0]);
        const std::string& code = p->blobs.at("code");
        EXPECT_EQ(code, std::string(code.size(), code[0]));
      });
}

TEST(TornFiles, AKilledWriterLeavesAWholeCheckpointAndArray) {
  TemporaryFolder folder;
  const std::string weights = folder / "w.safetensors", array = folder / "a.npy";
  saveSafetensors(weights, {{"w", ofRound(0)}});
  saveNpy(array, ofRound(0));
  killWhile(
      kills(20), milliseconds(20),
      [&](int round) {
        saveSafetensors(weights, {{"w", ofRound(round)}});
        saveNpy(array, ofRound(round));
      },
      [&] {
        expectWhole(SafetensorsFile::open(weights).array("w"));
        expectWhole(loadNpy(array));
      });
}

TEST(TornFiles, AKilledWriterLeavesAWholeEntryOfTheCacheOrNone) {
  SKIP_WITHOUT_NVRTC();
  TemporaryFolder folder;
  const std::string key(64, 'a'), path = cuda::cacheEntryPath(folder.path(), "k", key);
  cuda::CompiledKernel compiled;
  compiled.cubin = std::string(100'000, 'c');
  compiled.ptx = std::string(100'000, 'p');
  int found = 0;
  killWhile(
      kills(20), milliseconds(10),
      [&](int) {
        fs::remove_all(path);
        cuda::writeCacheEntry(path, key, {"k", "// text\n"}, compiled);
      },
      [&] {
        const auto entry = cuda::readCacheEntry(path, key);
        if (!entry) return;
        ++found;
        EXPECT_EQ(entry->cubin, compiled.cubin);
        EXPECT_EQ(entry->ptx, compiled.ptx);
      });
  // And the next one writes it all the same.
  cuda::writeCacheEntry(path, key, {"k", "// text\n"}, compiled);
  EXPECT_TRUE(cuda::readCacheEntry(path, key));
}

TEST(TornFiles, AKilledCompilerLeavesAWholeModuleOrNone) {
  using cuda::host::HostCompiler;
  using cuda::host::Mode;
  TemporaryFolder folder;
  auto text = [](int round) {
    return cuda::host::KernelText{
        "scale", "#include \"lathe_device.cuh\"\n// " + std::to_string(round) +
                     "\nextern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n"};
  };
  const std::string cache = folder / "cache";
  killWhile(
      kills(3), milliseconds(1500),
      [&](int round) { HostCompiler(Mode::Fast, cache).compile({text(round)}); },
      [&] {
        HostCompiler again(Mode::Fast, cache);
        EXPECT_NE(again.compile({text(0)}).at(0).entry, nullptr);
      });
}

}  // namespace
}  // namespace lathe
