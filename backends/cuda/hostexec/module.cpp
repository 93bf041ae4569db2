// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/module.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include <algorithm>
#include <mutex>

#include "backends/cuda/hostexec/process.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda::host {
namespace {

// Modules resolve the runtime's functions from the global scope, in which this library is not when
// the program itself was loaded with dlopen (a plugin, an extension of an interpreter).
void makeRuntimeVisible() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&makeRuntimeVisible), &self) && self.dli_fname)
      dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  });
}

}  // namespace

Module::Module(const std::string& path) : path_(path) {
  makeRuntimeVisible();
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) throw Error(ErrorCode::InvalidFile, "host module " + path + ": " + dlerror());
  link_map* map = nullptr;
  dlinfo(handle_, RTLD_DI_LINKMAP, &map);
  base_ = map->l_addr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* self) {
        auto* module = static_cast<Module*>(self);
        if (info->dlpi_addr != module->base_) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_LOAD)
            module->size_ = std::max<uintptr_t>(
                module->size_, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
        return 1;
      },
      this);
  checked_ = symbol("lathe_checked") != nullptr;
}

Module::~Module() {
  if (handle_) dlclose(handle_);
}

void* Module::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

std::string Module::lineOf(uint32_t offset) const {
  char address[32];
  snprintf(address, sizeof address, "0x%x", offset - 1);  // a return address is past its call
  static const std::string tool = [] {
    for (const char* name : {"addr2line", "llvm-addr2line", "llvm-addr2line-22"})
      if (std::string found = findProgram(name); !found.empty()) return found;
    return std::string();
  }();
  if (tool.empty()) return "offset " + std::string(address) + " (no addr2line on PATH)";
  const ProcessResult r = runProcess({tool, "-i", "-e", path_, address});
  // Inlined calls are listed from the inside out: the first one that is no primitive, and where the
  // kernel's own text called it.
  std::string best = "?";
  for (size_t at = 0; at < r.output.size();) {
    const size_t end = std::min(r.output.find('\n', at), r.output.size());
    std::string line = r.output.substr(at, end - at);
    at = end + 1;
    line = line.substr(0, line.find(' '));
    line = line.substr(line.rfind('/') + 1);
    const bool primitive = line.starts_with("lathe_device.") || line.starts_with("lathe_common.") ||
                           line.starts_with("lathe_rt.");
    if (best == "?" && !primitive) best = line;
    if (line.find(".cu:") != std::string::npos) return best == line ? line : best + " from " + line;
  }
  return best;
}

}  // namespace lathe::cuda::host
