// SPDX-License-Identifier: Apache-2.0
// lathe env: what a bug report needs to say about the machine and the build.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/cpu_features.h"
#include "backends/cuda/device/cublaslt.h"
#include "backends/cuda/device/cudnn.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/hostexec/host_compiler.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"
#include "runtime/cache_folder.h"
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

// How a thread reads each kind of weights.
Json readsOf(const cpu::ReadPatterns& patterns) {
  Json reads = Json::object();
  for (cpu::WeightKind kind : cpu::kWeightKinds)
    reads[std::string(cpu::nameOf(kind))] = {{"streams", patterns[kind].streams},
                                             {"prefetch_bytes", patterns[kind].prefetch},
                                             {"bytes_per_second", patterns[kind].bytesPerSecond}};
  return reads;
}
// "f32 and bf16 in 1 stream, int8 and int4 in 4 streams with prefetch 1 KiB ahead": kinds that are
// read alike stand together.
std::string readsText(const Json& reads) {
  std::vector<std::pair<std::string, std::string>> ways;  // and the kinds that are read so
  for (cpu::WeightKind kind : cpu::kWeightKinds) {
    const std::string name(cpu::nameOf(kind));
    const int streams = reads.at(name).at("streams").get<int>();
    const int ahead = reads.at(name).at("prefetch_bytes").get<int>();
    const std::string way =
        fmt::format("in {} stream{}{}", streams, streams == 1 ? "" : "s",
                    ahead ? fmt::format(" with prefetch {} KiB ahead", ahead / 1024.0) : "");
    auto same = std::find_if(ways.begin(), ways.end(), [&](auto& w) { return w.first == way; });
    if (same == ways.end())
      ways.emplace_back(way, name);
    else
      same->second += " and " + name;
  }
  std::string text;
  for (const auto& [way, kinds] : ways) text += (text.empty() ? "" : ", ") + kinds + " " + way;
  return text;
}
// What was measured of the processor, and what follows; null on one without kernels.
Json processorRates() {
  try {
    const cpu::Calibration& c = cpu::calibration();
    return {{"bf16", cpu::nameOf(cpu::KernelIsa::current().arithmetic)},
            {"f32_fma_flops", c.f32Fma},
            {"bf16_dot_flops", c.bf16Dot},
            {"amx_bf16_flops", c.amxBf16},
            {"reads", readsOf(c.reading)},
            {"read_spread", c.spread},
            {"measurements", c.measurements},
            {"taken_at", c.takenAt},
            {"busy", c.busy}};
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Unsupported) throw;
    return nullptr;
  }
}
// "bf16 by dot; f32 fma 126, bf16 dot 236 GFLOP/s a thread; reads f32 and bf16 and int8 and int4 in
// 1 stream, up to 29.5 GB/s"
std::string rateText(const Json& rates) {
  if (rates.is_null()) return "none";
  std::string text = "bf16 by " + rates.at("bf16").get<std::string>() + ";";
  const char* sign = " ";
  for (auto [key, name] : {std::pair("f32_fma_flops", "f32 fma"),
                           {"bf16_dot_flops", "bf16 dot"},
                           {"amx_bf16_flops", "amx bf16"}})
    if (const double flops = rates.at(key).get<double>(); flops > 0) {
      text += fmt::format("{}{} {:.0f}", sign, name, flops * 1e-9);
      sign = ", ";
    }
  double read = 0;
  for (const Json& kind : rates.at("reads"))
    read = std::max(read, kind.at("bytes_per_second").get<double>());
  return text + fmt::format(" GFLOP/s a thread; reads {}, up to {:.1f} GB/s{}",
                            readsText(rates.at("reads")), read * 1e-9,
                            rates.at("busy").get<bool>() ? " (beside other programs)" : "");
}

// "none: " and the first line of why.
std::string none(std::string why) {
  why.resize(std::min(why.find('\n'), why.size()));
  if (why.ends_with(':')) why.pop_back();
  return "none: " + why;
}

// "NVIDIA H200, compute capability 9.0, CUDA 13.0", or why there is none.
std::string gpu() {
  try {
    const cuda::DeviceFacts facts = cuda::openGpu()->facts();
    return fmt::format("{}, compute capability {}.{}, {}", facts.name, facts.major, facts.minor,
                       facts.driver);
  } catch (const Error& e) {
    const std::string why = e.what();
    return none(why.substr(0, why.find(':')));
  }
}

// Where a library of NVIDIA's is, or why there is none.
template <class Library>
std::string fileOf() {
  std::string why;
  const auto library = Library::open(&why);
  return library ? library->path() : none(why);
}

// What compiles kernels for host execution.
std::string hostCompiler() {
  try {
    return cuda::host::HostCompiler(cuda::host::Mode::Fast).version();
  } catch (const std::exception& e) {  // of the file system, too: a description fails for nothing
    return none(e.what());
  }
}

// Files and folders that hold something, with what they take on the disk: a file of several names
// counts once.
Json caches() {
  namespace fs = std::filesystem;
  constexpr int kMostFiles = 200000;  // what is looked at: a folder of more takes seconds
  Json all = Json::array();
  auto add = [&](const fs::path& path) {
    uint64_t bytes = 0;
    std::set<std::pair<dev_t, ino_t>> linked;
    auto count = [&](const fs::directory_entry& file) {
      struct stat info;  // others may work in the folder meanwhile: what is gone counts nothing
      if (lstat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
      if (info.st_nlink > 1 && !linked.emplace(info.st_dev, info.st_ino).second) return;
      bytes += uint64_t(info.st_size);
    };
    std::error_code over;
    count(fs::directory_entry(path, over));
    int files = 0;
    over.clear();
    fs::recursive_directory_iterator at(path, over);
    for (; !over && at != end(at) && files < kMostFiles; at.increment(over), ++files) count(*at);
    if (bytes)
      all.push_back({{"path", path.string()}, {"bytes", bytes}, {"complete", files < kMostFiles}});
  };
  if (const std::string path = hostRoofsPath(); !path.empty()) add(path);
  if (const std::string path = cpu::calibrationPath(); !path.empty()) add(path);
  if (const std::string folder = cacheFolder(); !folder.empty())
    for (const char* kernels : {"cuda", "cuda-host"}) add(fs::path(folder) / kernels);
  return all;
}

std::string cacheText(const Json& cache) {
  return fmt::format("{} ({}{})", cache.at("path").get<std::string>(),
                     cache.at("complete").get<bool>() ? "" : "more than ",
                     byteText(cache.at("bytes").get<double>()));
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
  out["cpu_rates"] = processorRates();
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
  out["cublaslt"] = fileOf<cuda::CublasLt>();
  out["cudnn"] = fileOf<cuda::Cudnn>();
  out["caches"] = caches();
  out["host_compiler"] = hostCompiler();
  return out;
}

std::string textOf(const std::string& key, const Json& value) {
  if (key == "cpu_rates") return rateText(value);
  if (key.ends_with("_bytes")) return byteText(value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "found" : "not found: runs programs only";
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const Json& v : value) words.push_back(v.is_string() ? v.get<std::string>() : cacheText(v));
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
