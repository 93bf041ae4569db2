// SPDX-License-Identifier: Apache-2.0
// lathe env: what a bug report needs to say about the machine and the build.
#include <dlfcn.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <filesystem>

#include <fmt/format.h>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cuda/device/driver.h"
#include "runtime/error.h"
#include "runtime/thread_pool.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/host_roofs.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

// oneDNN is loaded with the runtime; its C function tells the version without its headers.
std::string oneDnnVersion() {
  struct Version {  // the first members of dnnl_version_t, fixed since oneDNN 1.0
    int major, minor, patch;
  };
  auto get = reinterpret_cast<const Version* (*)()>(dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (!get) return "not loaded";
  const Version* v = get();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

std::string isaTier() {
  try {
    return std::string(cpu::nameOf(cpu::detectIsa()));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Unsupported) throw;
    return "none";
  }
}

// "NVIDIA H200, compute capability 9.0, CUDA 13.0", or the first line of why there is none.
std::string gpu() {
  try {
    const cuda::DeviceFacts facts = cuda::openGpu()->facts();
    return fmt::format("{}, compute capability {}.{}, {}", facts.name, facts.major, facts.minor,
                       facts.driver);
  } catch (const Error& e) {
    const std::string why = e.what();
    return "none: " + why.substr(0, why.find_first_of(":\n"));
  }
}

Json collect() {
  Json out = document("env");
  out["version"] = LATHE_VERSION;
  out["compiler"] = __VERSION__;
  utsname system{};
  uname(&system);
  out["system"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  out["cpu_isa"] = isaTier();
  out["cpu_features"] = cpu::cpuFeatures().names();
  out["threads"] = ThreadPool::global().threads();
  struct sysinfo memory{};
  sysinfo(&memory);
  out["memory_bytes"] = uint64_t(memory.totalram) * memory.mem_unit;
  out["free_memory_bytes"] = uint64_t(memory.freeram) * memory.mem_unit;
  out["onednn"] = oneDnnVersion();
  const CompilerApi* api = findCompiler();
  out["compiler_library"] = api != nullptr;
  out["backends"] = api ? api->backends() : std::vector<std::string>{"cpu"};
  out["gpu"] = gpu();
  out["caches"] = Json::array();
  std::error_code ignored;
  if (std::string path = hostRoofsPath(); !path.empty() && std::filesystem::exists(path, ignored))
    out["caches"].push_back(path);
  return out;
}

std::string textOf(const std::string& key, const Json& value) {
  if (key.ends_with("_bytes")) return byteText(value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "found" : "not found: runs programs only";
  if (!value.is_array()) return value.dump();
  auto words = value.get<std::vector<std::string>>();
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

int envVerb(const ArgumentList& arguments) {
  auto parser = makeParser("env", "Describes this machine and this build, for bug reports.",
                           "lathe env --json");
  bool json = false;
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  Json out = collect();
  if (json) {
    printJson(out);
    return kOk;
  }
  for (auto& [key, value] : out.items()) {
    if (key == "schema_version" || key == "verb") continue;
    std::string label = key.ends_with("_bytes") ? key.substr(0, key.size() - 6) : key;
    std::replace(label.begin(), label.end(), '_', ' ');
    fmt::print("{:<17} {}\n", label + ":", textOf(key, value));
  }
  return kOk;
}

}  // namespace lathe::cli
