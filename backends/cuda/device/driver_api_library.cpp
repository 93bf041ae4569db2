// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/driver_api_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace lathe::cuda {

namespace fs = std::filesystem;

FoundLibrary::FoundLibrary(const char* variable, const std::vector<std::string>& candidates) {
  const char* named = std::getenv(variable);
  const bool chosen = named && *named;
  for (const std::string& name : chosen ? std::vector<std::string>{named} : candidates) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      path_ = name;
      return;
    }
    const char* why = dlerror();
    tried_ += "  " + (chosen ? std::string(variable) + "=" + name : name) + ": " +
              (why ? why : "no reason given") + "\n";
  }
}

void* FoundLibrary::address(const char* symbol) const { return dlsym(handle_, symbol); }

std::vector<std::string> inCudaToolkits(const std::string& file) {
  std::vector<fs::path> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root && *root) roots.push_back(root);
  roots.push_back("/usr/local/cuda");
  std::vector<std::string> found;
  std::error_code ignored;
  auto add = [&](const fs::path& path) {
    if (fs::exists(path, ignored) && std::find(found.begin(), found.end(), path) == found.end())
      found.push_back(path);
  };
  for (const fs::path& root : roots) {
    add(root / "lib64" / file);
    std::vector<fs::path> targets;
    for (const fs::directory_entry& target : fs::directory_iterator(root / "targets", ignored))
      targets.push_back(target.path());
    std::sort(targets.begin(), targets.end());
    for (const fs::path& target : targets) add(target / "lib" / file);
  }
  return found;
}

}  // namespace lathe::cuda
