// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/shared_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace lathe::cli {

LoadedSymbol loadSymbol(const std::string& library, const char* symbol) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> names;
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path beside = program.parent_path().parent_path() / "lib" / library;
  for (const char* suffix : {".0", ""})
    if (fs::exists(beside.string() + suffix, ignored)) names.push_back(beside.string() + suffix);
  // One that is there but does not load is told about: another one may be of another version.
  if (names.empty()) names = {library + ".0", library};
  LoadedSymbol result;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      if (result.reason.empty() && why) result.reason = why;
      continue;
    }
    if (void* address = dlsym(handle, symbol)) return {address, {}};
    result.reason = name + " has no symbol " + symbol;
    dlclose(handle);
  }
  return result;
}

}  // namespace lathe::cli
