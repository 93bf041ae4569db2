// SPDX-License-Identifier: Apache-2.0
// Loads the plug-in by which ranks are processes.
#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

constexpr const char* kLibrary = "lathe_ranks_mpi.so";

// Beside the runtime library.
std::string libraryPath() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&processRanks), &info) || !info.dli_fname) return kLibrary;
  return (std::filesystem::path(info.dli_fname).parent_path() / kLibrary).string();
}

// LATHE_RANKS_TIMEOUT, in seconds; five minutes without it.
int64_t deadlineMilliseconds() {
  const char* text = std::getenv("LATHE_RANKS_TIMEOUT");
  if (!text || !*text) return 300'000;
  double seconds = 0;
  const char* end = text + std::strlen(text);
  auto [next, code] = std::from_chars(text, end, seconds);
  if (code != std::errc() || next != end || !(seconds > 0 && seconds < 1e9))
    throw Error(ErrorCode::InvalidArgument,
                "LATHE_RANKS_TIMEOUT: expected seconds above 0, got '" + std::string(text) + "'");
  return int64_t(seconds * 1000) + 1;
}

}  // namespace

std::shared_ptr<Communicator> processRanks() {
  const std::string path = libraryPath();
  // Not closed again: MPI does not survive it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    throw Error(ErrorCode::Unsupported,
                "ranks as processes need MPI: " + std::string(why ? why : path) +
                    "; install openmpi-bin and libopenmpi-dev and build again, or take "
                    "--rank-threads");
  }
  using Open = Communicator* (*)(int64_t, bool);
  auto open = reinterpret_cast<Open>(dlsym(library, "lathe_open_ranks"));
  if (!open)
    throw Error(ErrorCode::InvalidFile, path + ": expected a library with lathe_open_ranks");
  const char* check = std::getenv("LATHE_RANKS_CHECK");
  return std::shared_ptr<Communicator>(
      open(deadlineMilliseconds(), check && *check && std::string_view(check) != "0"));
}

bool isRankProcess() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* size = std::getenv(name); size && *size) return true;
  return false;
}

}  // namespace lathe
