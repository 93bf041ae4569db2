// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/compiler_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "runtime/error.h"

namespace lathe::cli {
namespace {

struct Loaded {
  const CompilerApi* api = nullptr;
  std::string reason;
};

Loaded load() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> names;
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path beside = program.parent_path().parent_path() / "lib" / "liblathe.so";
  for (const char* suffix : {".0", ""})
    if (fs::exists(beside.string() + suffix, ignored)) names.push_back(beside.string() + suffix);
  names.insert(names.end(), {"liblathe.so.0", "liblathe.so"});
  Loaded result;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      if (result.reason.empty() && why) result.reason = why;
      continue;
    }
    using Entry = const CompilerApi* (*)();
    auto entry = reinterpret_cast<Entry>(dlsym(handle, kCompilerApiSymbol));
    if (entry) return {entry(), {}};
    result.reason = name + " has no symbol " + kCompilerApiSymbol;
    dlclose(handle);
  }
  return result;
}

const Loaded& loaded() {
  static const Loaded result = load();
  return result;
}

}  // namespace

const CompilerApi& compiler() {
  if (!loaded().api)
    throw Error(ErrorCode::Unsupported,
                "this needs the compiler library, which could not be loaded (" + loaded().reason +
                    "); install liblathe.so, or run a .lathe program compiled elsewhere");
  return *loaded().api;
}

const CompilerApi* findCompiler() { return loaded().api; }

}  // namespace lathe::cli
