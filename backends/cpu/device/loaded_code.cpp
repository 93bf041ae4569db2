// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/loaded_code.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/device/cpu_features.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"

namespace lathe::cpu {
namespace {

// Best first; a name is a blob "code.<name>".
std::vector<std::string> usableTiers() {
  const KernelIsa isa = KernelIsa::of(detectIsa());
  std::vector<std::string> tiers;
  if (isa.tier != Isa::Avx2 && isa.bf16) tiers.push_back("avx512bf16");
  if (isa.tier != Isa::Avx2) tiers.push_back("avx512");
  tiers.push_back("avx2");
  return tiers;
}

// The bytes never touch a file system that others can write to. The descriptor stays open as long
// as the code is loaded: dlopen knows libraries by path, and a number used again would give the old
// one.
void* load(const std::string& bytes, int& fd) {
  fd = memfd_create("lathe-code", MFD_CLOEXEC);
  if (fd < 0)
    throw Error(ErrorCode::Io, "memfd_create failed: the generated code cannot be loaded");
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) {
      close(fd);
      fd = -1;
      throw Error(ErrorCode::Io, "cannot write the generated code to memory");
    }
    done += size_t(n);
  }
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  std::string reason = dlerror();
  close(fd);
  fd = -1;
  throw Error(ErrorCode::InvalidFile, "the generated code does not load: " + reason);
}

DimExpr exprAt(const JsonValue& v, std::string_view key) {
  auto e = DimExpr::parse(v.at(key).asString());
  if (!e) throw v.at(key).error("expected a size expression");
  return *e;
}

}  // namespace

LoadedCode::LoadedCode(const Program& program) {
  auto table = program.blobs.find("regions");
  if (table == program.blobs.end()) return;  // nothing was generated
  std::string has;
  for (auto& [name, bytes] : program.blobs)
    if (name.starts_with("code.")) has += (has.empty() ? "" : ", ") + name.substr(5);
  std::string wants;
  for (const std::string& tier : usableTiers()) {
    wants += (wants.empty() ? "" : ", ") + tier;
    auto code = program.blobs.find("code." + tier);
    if (tier_.empty() && code != program.blobs.end()) {
      tier_ = tier;
      library_.handle = load(code->second, library_.fd);
    }
  }
  if (tier_.empty())
    throw Error(ErrorCode::Unsupported, "the program holds code for " + has +
                                            ", this machine runs " + wants +
                                            "; compile it for all tiers");
  JsonValue regions = JsonValue::parse(table->second, "regions");
  for (size_t i = 0; i < regions.size(); ++i) {
    auto [key, info] = regions.member(i);
    if (!key.starts_with(tier_ + "/")) continue;
    std::string name = key.substr(tier_.size() + 1);
    RegionCode code;
    code.run = reinterpret_cast<RegionFunction>(dlsym(library_.handle, name.c_str()));
    if (!code.run)
      throw Error(ErrorCode::InvalidFile, "the generated code has no function " + name);
    JsonValue sizes = info.at("sizes");
    for (size_t s = 0; s < sizes.size(); ++s) {
      auto e = DimExpr::parse(sizes.at(s).asString());
      if (!e) throw sizes.at(s).error("expected a size expression");
      code.sizes.push_back(*e);
    }
    code.rows = exprAt(info, "rows");
    code.cost = exprAt(info, "cost");
    code.scratchBytes = exprAt(info, "scratch");
    code.buffers = info.at("buffers").asInt();
    regions_[name] = std::move(code);
  }
}

LoadedCode::Library::~Library() {
  if (handle) dlclose(handle);
  if (fd >= 0) close(fd);
}

const RegionCode& LoadedCode::region(const std::string& name) const {
  auto it = regions_.find(name);
  if (it == regions_.end())
    throw Error(ErrorCode::InvalidFile, "the program has no code for " + name);
  return it->second;
}

}  // namespace lathe::cpu
