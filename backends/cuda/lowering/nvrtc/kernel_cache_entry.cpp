// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/kernel_cache_entry.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/cache_folder.h"
#include "runtime/mapped_file.h"
#include "runtime/sha256.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json toJson(const KernelReport& report) {
  const KernelResources& r = report.resources;
  json ptx = json::object();
  for (const PtxCountName& c : ptxCountNames()) ptx[c.name] = report.ptx.*c.count;
  Occupancy o = r.maxThreads ? occupancy(r, r.maxThreads, 0) : Occupancy();
  return {{"registers", r.registers},
          {"spill_stores", r.spillStores},
          {"spill_loads", r.spillLoads},
          {"stack_bytes", r.stackBytes},
          {"shared_bytes", r.sharedBytes},
          {"max_threads", r.maxThreads},
          {"cluster", r.cluster},
          {"occupancy", {{"blocks", o.blocks}, {"warps", o.warps}, {"limit", o.limit}}},
          {"ptx", ptx}};
}

KernelReport reportFrom(const JsonValue& v) {
  KernelReport report;
  KernelResources& r = report.resources;
  r.registers = int(v.at("registers").asInt(0, 255));
  r.spillStores = v.at("spill_stores").asInt(0);
  r.spillLoads = v.at("spill_loads").asInt(0);
  r.stackBytes = v.at("stack_bytes").asInt(0);
  r.sharedBytes = v.at("shared_bytes").asInt(0);
  r.maxThreads = int(v.at("max_threads").asInt(0, 1024));
  for (size_t i = 0; i < 3; ++i) r.cluster[i] = int(v.at("cluster").at(i).asInt(0, 1024));
  for (const PtxCountName& c : ptxCountNames())
    report.ptx.*c.count = int(v.at("ptx").at(c.name).asInt(0, INT_MAX));
  return report;
}

// Over everything that is taken from an entry, and the key it was written for.
std::string hashOf(const std::string& key, const CompiledKernel& kernel) {
  std::string all;
  for (const std::string& part : {key, kernel.cubin, kernel.ptx, toJson(kernel.report).dump()})
    all += std::to_string(part.size()) + ":" + part;
  return sha256Hex(asBytes(all));
}

// Folders of one process that are being written do not meet, nor those of two.
std::string temporaryPath(const std::string& path) {
  static std::atomic<int> count = 0;
  return path + ".part-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

void syncFolder(const fs::path& folder) {
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace

std::string cacheEntryPath(const std::string& folder, const std::string& name,
                           const std::string& key) {
  // Names of any length fit into a file name.
  return folder + "/" + name.substr(0, 100) + "-" + key.substr(0, 32);
}

std::optional<CompiledKernel> readCacheEntry(const std::string& path, const std::string& key) {
  std::error_code ignored;
  // Its hash tells damage, not who wrote it.
  if (!fs::exists(path, ignored) || !whyNotPrivate(path).empty()) return {};
  try {
    JsonValue v = JsonValue::load(path + "/report.json", kCacheFile);
    CompiledKernel kernel;
    kernel.cubin = readWholeFile(path + "/kernel.cubin", kCacheFile);
    kernel.ptx = readWholeFile(path + "/kernel.ptx", kCacheFile);
    kernel.report = reportFrom(v.at("report"));
    if (v.at("key").asString() == key && v.at("sha256").asString() == hashOf(key, kernel))
      return kernel;
  } catch (const Error&) {  // the entry is broken: as if it were not there
  } catch (const fs::filesystem_error&) {
  }
  return {};
}

void writeCacheEntry(const std::string& path, const std::string& key, const KernelText& kernel,
                     const CompiledKernel& compiled) noexcept {
  std::string temporary, old;
  std::error_code failed;
  try {
    makePrivateFolder(fs::path(path).parent_path());
    temporary = temporaryPath(path);
    if (::mkdir(temporary.c_str(), 0700) != 0) return;
    json report = {{"kernel", kernel.name},
                   {"key", key},
                   {"nvrtc", Nvrtc::library().version()},
                   {"sha256", hashOf(key, compiled)},
                   {"report", toJson(compiled.report)}};
    writeFileAtomically(temporary + "/kernel.cu", kernel.source);
    writeFileAtomically(temporary + "/kernel.cubin", compiled.cubin);
    writeFileAtomically(temporary + "/kernel.ptx", compiled.ptx);
    writeFileAtomically(temporary + "/report.json", report.dump(2) + "\n");
    fs::rename(temporary, path, failed);
    if (failed && !readCacheEntry(path, key)) {
      old = temporaryPath(path);
      fs::rename(path, old, failed);
      fs::rename(temporary, path, failed);
    }
    syncFolder(fs::path(path).parent_path());
  } catch (const std::exception&) {  // a full disk, a folder of somebody else's
  }
  if (!temporary.empty()) fs::remove_all(temporary, failed);
  if (!old.empty()) fs::remove_all(old, failed);
}

}  // namespace lathe::cuda
