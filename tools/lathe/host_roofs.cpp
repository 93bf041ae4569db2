// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/host_roofs.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/cpu/device/calibration.h"
#include "backends/cpu/device/machine_load.h"
#include "backends/cpu/device/roofs.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/thread_pool.h"
#include "runtime/cache_folder.h"
#include "runtime/mapped_file.h"
#include "tools/lathe/console.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;

// Another processor, tier or number of threads has other roofs.
std::string processor() {
  return fmt::format("{}, {}, {} threads", cpu::processorName(),
                     cpu::nameOf(cpu::KernelIsa::current().tier), ThreadPool::global().threads());
}

MachineRoofs named(double narrow, double wide, double bytes, bool busy) {
  return {"host", narrow, wide, bytes, busy};
}

std::optional<MachineRoofs> readCache(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return std::nullopt;
  if (const std::string why = whyNotPrivate(path); !why.empty()) {
    console().note(why + "; measuring again");
    return std::nullopt;
  }
  try {
    JsonValue v = JsonValue::load(path, kCacheFile);
    if (v.at("processor").asString() != processor()) return std::nullopt;
    return named(v.at("narrow_flops").asDouble(), v.at("wide_flops").asDouble(),
                 v.at("bytes_per_second").asDouble(), v.at("busy").asBool());
  } catch (const Error& e) {
    console().note(std::string(e.what()) + "; measuring again");
    return std::nullopt;
  }
}

MachineRoofs measure() {
  Progress progress("measuring the machine");
  ThreadPool& pool = ThreadPool::global();
  const cpu::MachineLoad load;
  const double narrow = cpu::measurePeak(cpu::bestPeakKind(true), pool);
  const double wide = cpu::measurePeak(cpu::bestPeakKind(false), pool);
  const double bytes = cpu::measureReadRoofs(pool).best();
  return named(narrow, wide, bytes, load.wasBusy(pool.threads()));
}

// Roofs that are too low make times too long and shares too good, for as long as they are kept.
void tellBusy(const MachineRoofs& roofs) {
  if (roofs.busy)
    console().note(
        "other programs ran while this machine was measured: its roofs are too low, and predicted "
        "times too long; lathe explain --measure measures again");
}

}  // namespace

std::string hostRoofsPath() {
  const std::string folder = cacheFolder();
  return folder.empty() ? "" : folder + "/roofs.json";
}

MachineRoofs hostRoofs(bool anew) {
  const std::string path = hostRoofsPath();
  if (!anew)
    if (auto kept = readCache(path)) {
      tellBusy(*kept);
      return *kept;
    }
  MachineRoofs roofs = measure();
  tellBusy(roofs);
  if (path.empty()) return roofs;
  try {
    makePrivateFolder(fs::path(path).parent_path());
    nlohmann::json text = {{"processor", processor()},
                           {"narrow_flops", roofs.narrowFlops},
                           {"wide_flops", roofs.wideFlops},
                           {"bytes_per_second", roofs.bytesPerSecond},
                           {"busy", roofs.busy}};
    writeFileAtomically(path, text.dump(2) + "\n");
  } catch (const std::exception& e) {
    console().note("the measured roofs could not be kept: " + std::string(e.what()));
  }
  return roofs;
}

}  // namespace lathe::cli
