// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_folder.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using test::expectError;
using test::TemporaryFolder;

constexpr uid_t kSomebody = 12345;

TEST(CacheFolder, IsMadeForThisUserAloneWhateverTheUmask) {
  TemporaryFolder folder;
  const mode_t before = umask(0);
  makePrivateFolder(folder / "a/b/c");
  umask(before);
  for (const char* made : {"a", "a/b", "a/b/c"}) {
    EXPECT_EQ(fs::status(folder / made).permissions(), fs::perms::owner_all) << made;
    EXPECT_EQ(whyNotPrivate(folder / made), "");
  }
  makePrivateFolder(folder / "a/b");            // again
  EXPECT_EQ(whyNotPrivate(folder.path()), "");  // in a folder that is everybody's
}

TEST(CacheFolder, IsNotTrustedWhenOthersMayWriteInIt) {
  TemporaryFolder folder;
  makePrivateFolder(folder / "cache");
  folder.write("cache/code.so", "code");
  chmod((folder / "cache/code.so").c_str(), 0644);
  EXPECT_EQ(whyNotPrivate(folder / "cache/code.so"), "");
  for (mode_t mode : {0720, 0702, 0777}) {
    // A sticky folder keeps others from removing files, not from adding some.
    for (mode_t sticky : {0, 01000}) {
      chmod((folder / "cache").c_str(), mode | sticky);
      for (const char* name : {"cache", "cache/code.so"})
        EXPECT_EQ(whyNotPrivate(folder / name), (folder / "cache") + " may be written by others")
            << std::oct << (mode | sticky);
      expectError(ErrorCode::Io,
                  "cache must belong to this user and be writable by nobody else: " +
                      (folder / "cache") + " may be written by others; name another with",
                  [&] { makePrivateFolder(folder / "cache"); });
    }
  }
  chmod((folder / "cache").c_str(), 0755);
  chmod((folder / "cache/code.so").c_str(), 0664);
  EXPECT_EQ(whyNotPrivate(folder / "cache/code.so"),
            (folder / "cache/code.so") + " may be written by others");
}

TEST(CacheFolder, IsNotTrustedWhereOthersMayReplaceAFolderAbove) {
  TemporaryFolder folder;
  makePrivateFolder(folder / "above/cache/kernels");
  chmod((folder / "above").c_str(), 0777);
  EXPECT_EQ(whyNotPrivate(folder / "above/cache/kernels"),
            (folder / "above") + " may be written by others");
  chmod((folder / "above").c_str(), 01777);  // as /tmp
  EXPECT_EQ(whyNotPrivate(folder / "above/cache/kernels"), "");
}

TEST(CacheFolder, FollowsLinksOnlyToWhatIsPrivate) {
  TemporaryFolder folder;
  makePrivateFolder(folder / "open/cache");
  chmod((folder / "open").c_str(), 0777);
  fs::create_symlink(folder / "open/cache", folder / "link");
  EXPECT_EQ(whyNotPrivate(folder / "link"), (folder / "open") + " may be written by others");
  chmod((folder / "open").c_str(), 0700);
  EXPECT_EQ(whyNotPrivate(folder / "link"), "");
}

TEST(CacheFolder, OfAnotherUserIsNotTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  TemporaryFolder folder;
  makePrivateFolder(folder / "theirs/cache");
  folder.write("theirs/cache/code.so", "code");
  const std::string words = " belongs to user 12345";
  for (const char* name : {"theirs", "theirs/cache", "theirs/cache/code.so"}) {
    ASSERT_EQ(chown((folder / name).c_str(), kSomebody, gid_t(-1)), 0);
    EXPECT_EQ(whyNotPrivate(folder / "theirs/cache/code.so"), (folder / name) + words);
    ASSERT_EQ(chown((folder / name).c_str(), 0, gid_t(-1)), 0);
  }
  ASSERT_EQ(chown((folder / "theirs/cache").c_str(), kSomebody, gid_t(-1)), 0);
  expectError(ErrorCode::Io, words, [&] { makePrivateFolder(folder / "theirs/cache"); });
  fs::create_symlink(folder / "theirs", folder / "link");
  ASSERT_EQ(chown((folder / "theirs/cache").c_str(), 0, gid_t(-1)), 0);
  EXPECT_EQ(whyNotPrivate(folder / "link/cache"), "");
  ASSERT_EQ(lchown((folder / "link").c_str(), kSomebody, gid_t(-1)), 0);
  EXPECT_EQ(whyNotPrivate(folder / "link/cache"), (folder / "link") + words);
}

TEST(CacheFolder, ThatCannotBeMadeIsAnError) {
  TemporaryFolder folder;
  expectError(ErrorCode::Io, "cannot create the cache folder /proc/none/cache: ", [] {
    makePrivateFolder("/proc/none/cache");
  });
  folder.write("file", "");
  expectError(ErrorCode::Io, "/file/cache: Not a directory; name another with LATHE_CACHE_DIR",
              [&] { makePrivateFolder(folder / "file/cache"); });
  expectError(ErrorCode::Io, "/file: it is no folder", [&] { makePrivateFolder(folder / "file"); });
  EXPECT_NE(whyNotPrivate(folder / "none").find("none cannot be examined: No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace lathe
