// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

// Whoever owns what this system shows under no name, in a container for example, is not a user.
constexpr uid_t kNobody = 65534;

bool isOurs(const struct stat& info) { return info.st_uid == geteuid() || info.st_uid == 0; }

// `strictly`: of a file or folder of the cache; else of one above it.
std::string whyNotTrusted(const fs::path& path, bool strictly) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0)
    return path.string() + " cannot be examined: " + std::strerror(errno);
  if (!isOurs(info) && (strictly || info.st_uid != kNobody))
    return path.string() + " belongs to user " + std::to_string(info.st_uid);
  if (S_ISLNK(info.st_mode)) return "";  // its target is examined too
  const bool othersMayWrite = info.st_mode & (strictly ? S_IWGRP | S_IWOTH : S_IWOTH);
  // In a sticky folder nobody removes what is another's.
  if (othersMayWrite && (strictly || !(info.st_mode & S_ISVTX)))
    return path.string() + " may be written by others";
  return "";
}

std::string whyNotTrustedDownTo(const fs::path& path) {
  // Who may write in a folder may put another file in the place of one; another folder belongs to
  // whoever put it there.
  std::error_code ignored;
  const int strict = fs::is_directory(path, ignored) ? 1 : 2;
  auto left = std::distance(path.begin(), path.end());
  fs::path part;
  for (const fs::path& name : path) {
    part /= name;
    if (std::string why = whyNotTrusted(part, left-- <= strict); !why.empty()) return why;
  }
  return "";
}

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::Io, message + "; name another with LATHE_CACHE_DIR");
}

}  // namespace

std::string cacheFolder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string folder = variable("LATHE_CACHE_DIR"); !folder.empty()) return folder;
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder + "/lathe";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/lathe";
}

std::string whyNotPrivate(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return path + " cannot be examined: " + error.message();
  // Links on the way may be changed by their owners; and so may what they lead to.
  std::string why = whyNotTrustedDownTo(fs::absolute(path).lexically_normal());
  return why.empty() ? whyNotTrustedDownTo(real) : why;
}

void makePrivateFolder(const std::string& path) {
  fs::path part;
  for (const fs::path& name : fs::absolute(path).lexically_normal()) {
    part /= name;
    if (mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    // A folder that is there on a file system that is read alone, or out of reach.
    const int number = errno;
    struct stat info;
    if (stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    fail("cannot create the cache folder " + path + ": " + std::strerror(number));
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    fail("cannot create the cache folder " + path + ": it is no folder");
  if (std::string why = whyNotPrivate(path); !why.empty())
    fail("the cache folder " + path +
         " must belong to this user and be writable by nobody else: " + why);
}

}  // namespace lathe
