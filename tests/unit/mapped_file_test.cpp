// SPDX-License-Identifier: Apache-2.0
#include "runtime/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::TemporaryFolder;

TEST(MappedFile, MapsTheBytes) {
  TemporaryFolder folder;
  auto file = MappedFile::open(folder.write("f", "hello"));
  EXPECT_EQ(file->size(), 5u);
  EXPECT_EQ(char(file->bytes()[4]), 'o');
  EXPECT_EQ(MappedFile::open(folder.write("empty", ""))->size(), 0u);
}

TEST(MappedFile, NothingStaysOpen) {
  TemporaryFolder folder;
  const std::string path = folder.write("f", "hello");
  auto open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open();
  for (int i = 0; i < 20; ++i) {
    MappedFile::open(path);
    readWholeFile(path, {"a note", 100'000});
    expectError(ErrorCode::Io, "cannot open", [&] { MappedFile::open(folder.path() + "/none"); });
  }
  EXPECT_EQ(open(), before);
}

TEST(MappedFile, RefusesAPathWithNul) {
  expectError(ErrorCode::Io, "a path contains a NUL",
              [] { MappedFile::open(std::string("a\0b", 3)); });
}

// A folder that was cloned without its large files.
TEST(MappedFile, RefusesAPointerOfGitLfs) {
  TemporaryFolder folder;
  const std::string text =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  const std::string path = folder.write("model.safetensors", text);
  expectError(ErrorCode::InvalidFile, path + ": expected the file itself, got a pointer of Git LFS",
              [&] { MappedFile::open(path); });
  expectError(ErrorCode::InvalidFile, "run `git lfs pull`",
              [&] { readWholeFile(path, {"a note", 100'000}); });
  EXPECT_EQ(MappedFile::open(folder.write("f", "version https://git"))->size(), 19u);
}

constexpr FileKind kNote{"a note", 100'000};

TEST(ReadWholeFile, GivesTheBytesOfAnySizeUpToTheLimit) {
  TemporaryFolder folder;
  for (size_t size : {size_t(0), size_t(1), size_t(65'536), kNote.maxBytes}) {
    std::string text(size, 'a');
    for (size_t i = 0; i < size; ++i) text[i] = char('a' + i % 23);
    EXPECT_EQ(readWholeFile(folder.write("f", text), kNote), text) << size;
  }
  expectError(ErrorCode::InvalidFile,
              "f: expected a note of at most 100000 bytes, the file is larger",
              [&] { readWholeFile(folder.write("f", std::string(100'001, 'a')), kNote); });
}

// A file of the system that says that it is empty and gives bytes for ever.
TEST(ReadWholeFile, TrustsNoSize) {
  EXPECT_NE(readWholeFile("/proc/self/status", kNote).find("VmRSS"), std::string::npos);
  expectError(ErrorCode::InvalidFile, "/proc/self/status: expected a word of at most 10 bytes",
              [] { readWholeFile("/proc/self/status", {"a word", 10}); });
  expectError(ErrorCode::Io, "/proc/self/mem: cannot read",
              [] { readWholeFile("/proc/self/mem", kNote); });
}

TEST(ReadWholeFile, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (auto& [path, kind] : {std::pair(folder / "fifo", "a FIFO"),
                             {folder.path(), "a directory"},
                             {"/dev/zero", "a device"}})
    expectError(ErrorCode::InvalidFile, path + ": expected a regular file, got " + kind,
                [&] { readWholeFile(path, kNote); });
  expectError(ErrorCode::Io, "none: cannot open", [&] { readWholeFile(folder / "none", kNote); });
}

TEST(ReadWholeStream, ReadsAPipeToItsEndAndAnEndlessOneToTheLimit) {
  std::FILE* pipe = popen("printf 'some text'", "r");
  EXPECT_EQ(readWholeStream(pipe, "a pipe", kNote), "some text");
  pclose(pipe);
  std::FILE* endless = fopen("/dev/zero", "r");
  expectError(ErrorCode::InvalidFile, "a device: expected a note of at most 100000 bytes",
              [&] { readWholeStream(endless, "a device", kNote); });
  fclose(endless);
}

// What cannot be read has no end that could be taken for that of a text.
TEST(ReadWholeStream, SaysWhatCannotBeRead) {
  TemporaryFolder folder;
  std::FILE* directory = fopen(folder.path().c_str(), "r");
  ASSERT_NE(directory, nullptr);
  expectError(ErrorCode::Io, "a stream: cannot read",
              [&] { readWholeStream(directory, "a stream", kNote); });
  fclose(directory);
}

// Pages of this process that hold the range; -1 where the system does not say.
int64_t residentPages(const void* data, size_t bytes) {
  const auto page = uintptr_t(getpagesize());
  std::vector<uint64_t> words(bytes / page);
  int file = open("/proc/self/pagemap", O_RDONLY);
  ssize_t got = pread(file, words.data(), words.size() * 8,
                      off_t(reinterpret_cast<uintptr_t>(data) / page * 8));
  close(file);
  if (got != ssize_t(words.size() * 8)) return -1;
  return std::count_if(words.begin(), words.end(), [](uint64_t w) { return w >> 63; });
}

TEST(ReleaseFilePages, GivesBackWhatTheFileHoldsAndKeepsWhatWasWritten) {
  TemporaryFolder folder;
  const size_t page = size_t(getpagesize()), bytes = 16 * page;
  auto file = MappedFile::open(folder.write("f", std::string(bytes, 'a')));
  for (size_t i = 0; i < bytes; i += page) EXPECT_EQ(char(file->bytes()[i]), 'a');
  file->data()[5 * page + 7] = std::byte('b');
  if (residentPages(file->data(), bytes) != 16) GTEST_SKIP() << "the system does not say";
  releaseFilePages(file->data() + 1, bytes - 1);
  EXPECT_EQ(residentPages(file->data(), bytes), 2);  // the cut first page and the written one
  EXPECT_EQ(char(file->bytes()[5 * page + 7]), 'b');
  for (size_t i = 0; i < bytes; i += page) EXPECT_EQ(char(file->bytes()[i]), 'a');
}

TEST(ReleaseFilePages, LeavesOtherMemoryAlone) {
  std::vector<char> own(1 << 20, 'x');
  releaseFilePages(own.data(), own.size());
  EXPECT_EQ(std::count(own.begin(), own.end(), 'x'), 1 << 20);
}

TEST(WriteFileAtomically, ReplacesAFileAndLeavesNothingElse) {
  TemporaryFolder folder;
  folder.write("f", "the old and longer text");
  writeFileAtomically(folder / "f", {asBytes("new "), asBytes(""), asBytes("text")});
  EXPECT_EQ(test::readFile(folder / "f"), "new text");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteFileAtomically, LeavesDevicesFifosAndFoldersAlone) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder / "null");
  for (auto& [name, kind] :
       {std::pair("fifo", "a FIFO"), {"null", "a device"}, {".", "a directory"}})
    expectError(ErrorCode::InvalidArgument,
                std::string(": expected the name of a file to write, got ") + kind,
                [&] { writeFileAtomically(folder / name, "text"); });
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "fifo"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "null"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(WriteFileAtomically, KeepsAnOpenMappingOfTheOldFile) {
  TemporaryFolder folder;
  auto old = MappedFile::open(folder.write("f", "old"));
  writeFileAtomically(folder / "f", "new");
  EXPECT_EQ(char(old->bytes()[0]), 'o');
}

TEST(WriteFileAtomically, LeavesNoTemporaryFileBehindOnFailure) {
  TemporaryFolder folder;
  // Larger than any file may be here: the disk is full in the middle of it.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expectError(ErrorCode::Io, "f: cannot write: File too large",
              [&] { writeFileAtomically(folder / "f", std::string(10'000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  expectError(ErrorCode::Io, "cannot create a file beside it: No such file",
              [&] { writeFileAtomically(folder / "none/f", "text"); });
}

}  // namespace
}  // namespace lathe
