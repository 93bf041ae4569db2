// SPDX-License-Identifier: Apache-2.0
// Disks that are full, read alone or without execution, caches of others and no home: each gives a
// named error, or works without the cache. Each case has a file system of its own in a process of
// its own, where the system allows to mount one.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include <lathe/lathe.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/lowering/nvrtc/kernel_cache_entry.h"
#include "tests/cuda_mocks/kernel_texts.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using cuda::host::HostCompiler;
using cuda::host::KernelText;
using cuda::host::Mode;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

const KernelText kScale{"scale",
                        "#include \"lathe_device.cuh\"\n"
                        "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n"};

Program softmaxProgram() {
  Graph g;
  g.output("y", nn::softmax(g.input("x", DType::F32, {g.dim("rows", 1, 8), 16})));
  return compile(g);
}

struct Outcome {
  bool mounted = true;
  std::string words;  // of the error; "ok" if there was none
};

// `action` in a child whose folder `where` is a file system of `bytes` with these flags.
Outcome on(const std::string& where, int bytes, unsigned long flags,
           const std::function<void()>& action) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string words = "ok";
    const std::string size = "size=" + std::to_string(bytes);
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", where.c_str(), "tmpfs", flags & ~MS_RDONLY, size.c_str()) != 0 ||
        chmod(where.c_str(), 0700) != 0 ||
        ((flags & MS_RDONLY) &&
         mount("", where.c_str(), nullptr, flags | MS_REMOUNT, size.c_str()) != 0)) {
      words = "no mount";
    } else {
      try {
        action();
      } catch (const Error& e) {
        words = "error " + std::to_string(int(e.code())) + ": " + e.what();
      } catch (const std::exception& e) {
        words = std::string("a foreign exception: ") + e.what();
      }
    }
    if (write(ends[1], words.data(), words.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  Outcome outcome;
  char buffer[1 << 12];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    outcome.words.append(buffer, size_t(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  outcome.mounted = outcome.words != "no mount";
  return outcome;
}

#define SKIP_UNLESS_MOUNTED(outcome) \
  if (!(outcome).mounted) GTEST_SKIP() << "this user may not mount a file system"

const std::string kIo = "error " + std::to_string(int(ErrorCode::Io)) + ": ";

TEST(FullDisk, AProgramIsWrittenWholeOrNotAtAll) {
  TemporaryFolder folder;
  const std::string path = folder / "p.lathe";
  Program p;
  p.backend = "none";
  p.blobs["code"] = std::string(200'000, 'x');
  const Outcome outcome = on(folder.path(), 100'000, 0, [&] {
    try {
      p.save(path);
    } catch (...) {
      if (!fs::is_empty(folder.path())) throw std::runtime_error("something is left");
      throw;
    }
  });
  SKIP_UNLESS_MOUNTED(outcome);
  EXPECT_EQ(outcome.words, kIo + path + ": cannot write: No space left on device");
}

TEST(FullDisk, ACompilerWithoutTemporarySpaceSaysSo) {
  TemporaryFolder folder;
  const Outcome outcome = on(folder.path(), 4096, 0, [&] {
    setenv("TMPDIR", folder.path().c_str(), 1);
    softmaxProgram();
  });
  SKIP_UNLESS_MOUNTED(outcome);
  EXPECT_THAT(outcome.words, AllOf(HasSubstr(kIo + "expected the generated kernels to link"),
                                   HasSubstr("No space left on device"), HasSubstr("TMPDIR")));
}

TEST(FullDisk, HostKernelsNameTheirFolder) {
  TemporaryFolder folder;
  auto compileIn = [&] { HostCompiler(Mode::Fast, folder / "cache").compile({kScale}); };
  const Outcome headers = on(folder.path(), 16 << 10, 0, compileIn);
  SKIP_UNLESS_MOUNTED(headers);
  EXPECT_THAT(headers.words, AllOf(HasSubstr(kIo), HasSubstr(folder / "cache"),
                                   HasSubstr("No space left on device")));
  // Less than the module, more than what is written before.
  int found = 0;
  for (int bytes = 128 << 10; bytes <= 1 << 20; bytes *= 2) {
    const Outcome outcome = on(folder.path(), bytes, 0, compileIn);
    if (outcome.words == "ok") break;
    EXPECT_THAT(outcome.words, AllOf(HasSubstr(kIo), HasSubstr(folder / "cache")));
    ++found;
  }
  EXPECT_GT(found, 0);
}

TEST(FullDisk, HostKernelsOnAReadOnlyOrUnexecutableDiskSayWhatToDo) {
  TemporaryFolder folder;
  auto compileIn = [&] { HostCompiler(Mode::Fast, folder / "cache").compile({kScale}); };
  const Outcome readOnly = on(folder.path(), 64 << 20, MS_RDONLY, compileIn);
  SKIP_UNLESS_MOUNTED(readOnly);
  EXPECT_THAT(readOnly.words, AllOf(HasSubstr(kIo + "cannot create the cache folder"),
                                    HasSubstr("Read-only"), HasSubstr("LATHE_CACHE_DIR")));
  const Outcome noExec = on(folder.path(), 64 << 20, MS_NOEXEC, compileIn);
  EXPECT_THAT(noExec.words, AllOf(HasSubstr("failed to map segment"), HasSubstr("noexec"),
                                  HasSubstr("LATHE_CACHE_DIR")));
}

TEST(FullDisk, TheCpuNeedsNoDiskThatExecutes) {
  TemporaryFolder folder;
  const Outcome outcome = on(folder.path(), 64 << 20, MS_NOEXEC, [&] {
    setenv("TMPDIR", folder.path().c_str(), 1);
    Session session(softmaxProgram());
    session.run("forward", {{"x", Array(DType::F32, {2, 16})}});
  });
  SKIP_UNLESS_MOUNTED(outcome);
  EXPECT_EQ(outcome.words, "ok");
}

TEST(FullDisk, CompiledGpuKernelsAreNotKeptThen) {
  SKIP_WITHOUT_NVRTC();
  TemporaryFolder folder;
  const std::string key(64, 'a'), path = cuda::cacheEntryPath(folder / "cache", "k", key);
  cuda::CompiledKernel compiled;
  compiled.cubin = std::string(50'000, 'c');
  auto write = [&] {
    cuda::writeCacheEntry(path, key, {"k", "// text\n"}, compiled);
    if (cuda::readCacheEntry(path, key)) throw std::runtime_error("an entry is there");
    if (fs::exists(folder / "cache") && !fs::is_empty(folder / "cache"))
      throw std::runtime_error("something is left");
  };
  for (unsigned long flags : {0ul, (unsigned long)(MS_RDONLY)}) {
    const Outcome outcome = on(folder.path(), 40'000, flags, write);
    SKIP_UNLESS_MOUNTED(outcome);
    EXPECT_EQ(outcome.words, "ok") << flags;
  }
}

TEST(ForeignCache, ModulesThatOthersMayWriteAreCompiledAgain) {
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  HostCompiler(Mode::Fast, cache).compile({kScale});
  auto module = [&] {
    for (auto& file : fs::directory_iterator(cache))
      if (file.path().extension() == ".so") return file.path();
    return fs::path();
  };
  auto compiledAgain = [&] {
    HostCompiler compiler(Mode::Fast, cache);
    compiler.compile({kScale});
    return compiler.compiled();
  };
  EXPECT_EQ(compiledAgain(), 0);
  fs::permissions(module(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(compiledAgain(), 1);
  EXPECT_EQ(compiledAgain(), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(module().c_str(), 12345, gid_t(-1)), 0);
    EXPECT_EQ(compiledAgain(), 1);
  }
  fs::permissions(cache, fs::perms::group_write, fs::perm_options::add);
  test::expectError(ErrorCode::Io, cache + " may be written by others", compiledAgain);
}

TEST(ForeignCache, EntriesThatOthersMayWriteAreNotTaken) {
  SKIP_WITHOUT_NVRTC();
  TemporaryFolder folder;
  const std::string key(64, 'a'), path = cuda::cacheEntryPath(folder / "cache", "k", key);
  cuda::writeCacheEntry(path, key, {"k", "// text\n"}, {});
  ASSERT_TRUE(cuda::readCacheEntry(path, key));
  for (const std::string& open : {path, folder / "cache"}) {
    fs::permissions(open, fs::perms::others_write, fs::perm_options::add);
    EXPECT_FALSE(cuda::readCacheEntry(path, key)) << open;
    fs::permissions(open, fs::perms::others_write, fs::perm_options::remove);
  }
  EXPECT_TRUE(cuda::readCacheEntry(path, key));
}

// The headers and texts beside the modules: a full disk may have left them empty.
TEST(ForeignCache, TextsThatWereCutShortAreWrittenAgain) {
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  HostCompiler(Mode::Fast, cache).compile({kScale});
  std::vector<fs::path> modules;
  for (auto& file : fs::recursive_directory_iterator(cache)) {
    if (!file.is_regular_file()) continue;
    if (file.path().extension() == ".so")
      modules.push_back(file.path());
    else
      fs::resize_file(file.path(), 0);
  }
  for (const fs::path& module : modules) fs::remove(module);
  HostCompiler compiler(Mode::Fast, cache);
  compiler.compile({kScale});
  EXPECT_EQ(compiler.compiled(), 1);
}

}  // namespace
}  // namespace lathe
