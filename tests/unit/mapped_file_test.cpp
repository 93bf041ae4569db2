// SPDX-License-Identifier: Apache-2.0
#include "runtime/mapped_file.h"

#include <gtest/gtest.h>

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
