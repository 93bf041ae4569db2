// SPDX-License-Identifier: Apache-2.0
#include "runtime/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <fcntl.h>
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

TEST(MappedFile, RefusesAPathWithNul) {
  expectError(ErrorCode::Io, "a path contains a NUL",
              [] { MappedFile::open(std::string("a\0b", 3)); });
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

TEST(WriteFileAtomically, KeepsAnOpenMappingOfTheOldFile) {
  TemporaryFolder folder;
  auto old = MappedFile::open(folder.write("f", "old"));
  writeFileAtomically(folder / "f", "new");
  EXPECT_EQ(char(old->bytes()[0]), 'o');
}

TEST(WriteFileAtomically, LeavesNoTemporaryFileBehindOnFailure) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "taken");
  folder.write("taken/inside", "x");
  expectError(ErrorCode::Io,
              "taken: cannot rename: ", [&] { writeFileAtomically(folder / "taken", "text"); });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  expectError(ErrorCode::Io, "cannot create a file beside it: No such file",
              [&] { writeFileAtomically(folder / "none/f", "text"); });
}

}  // namespace
}  // namespace lathe
