// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "backends/cpu/device/machine_load.h"
#include "backends/cpu/device/roofs.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/cache_folder.h"
#include "runtime/mapped_file.h"
#include "runtime/sha256.h"

namespace lathe::cpu {
namespace {

namespace fs = std::filesystem;

// Raised when what is measured, or what follows from it, is no longer the same.
constexpr int kVersion = 1;
// What makes more of the machine's work has to be faster by so much.
constexpr double kPatternGain = 1.08, kDotGain = 1.1;

Calibration keptOrMeasured() {
  const std::string path = calibrationPath(), processor = processorIdentity();
  std::error_code ignored;
  if (!path.empty() && fs::exists(path, ignored) && whyNotPrivate(path).empty()) {
    try {
      if (auto kept = calibrationFrom(readWholeFile(path, kCacheFile), processor)) return *kept;
    } catch (const Error&) {
      // What cannot be read is measured again and replaced.
    }
  }
  Calibration made = calibrate();
  if (path.empty() || made.busy) return made;
  try {
    makePrivateFolder(fs::path(path).parent_path());
    writeFileAtomically(path, textOf(made, processor) + "\n");
  } catch (const Error&) {
    // A cache that cannot be written costs the next process 0.1 s.
  }
  return made;
}

}  // namespace

Bf16Arithmetic Calibration::bf16Arithmetic(const KernelIsa& isa) const {
  const bool tiles = isa.tier == Isa::Amx, dots = isa.tier >= Isa::Avx512 && isa.bf16;
  if (tiles && amxBf16 >= std::max(f32Fma, bf16Dot)) return Bf16Arithmetic::Tiles;
  // Widening costs a pass over the weights, which a rate of registers does not show.
  return dots && bf16Dot * kDotGain >= f32Fma ? Bf16Arithmetic::Dot : Bf16Arithmetic::Widened;
}

Calibration calibrate() {
  ThreadPool pool(ThreadPool::global().threads());
  const MachineLoad load;
  const CpuFeatures& features = cpuFeatures();
  const Isa tier = machineIsa();
  constexpr int kRepeats = 2;
  Calibration c;
  c.f32Fma = measurePeak(PeakKind::F32Fma, pool, kRepeats);
  if (tier >= Isa::Avx512 && features.avx512Bf16)
    c.bf16Dot = measurePeak(PeakKind::Bf16Dot, pool, kRepeats);
  if (tier == Isa::Amx) c.amxBf16 = measurePeak(PeakKind::AmxBf16, pool, kRepeats);
  c.reading = measureReadPattern(pool, kPatternGain);
  c.busy = load.wasBusy(pool.threads());
  return c;
}

std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

std::string processorIdentity() {
  std::string features;
  for (const std::string& name : cpuFeatures().names()) features += " " + name;
  return fmt::format("{},{}, {} threads", processorName(), features,
                     ThreadPool::global().threads());
}

std::string textOf(const Calibration& c, const std::string& processor) {
  std::string name;
  for (char ch : processor) {
    if (ch == '"' || ch == '\\') name += '\\';
    if (static_cast<unsigned char>(ch) >= 0x20) name += ch;
  }
  return fmt::format(
      R"({{"version": {}, "processor": "{}", "f32_fma": {:.4g}, "bf16_dot": {:.4g}, )"
      R"("amx_bf16": {:.4g}, "streams": {}, "prefetch": {}, "bytes_per_second": {:.4g}}})",
      kVersion, name, c.f32Fma, c.bf16Dot, c.amxBf16, c.reading.streams, c.reading.prefetch,
      c.reading.bytesPerSecond);
}

std::optional<Calibration> calibrationFrom(const std::string& text, const std::string& processor) {
  try {
    const JsonValue v = JsonValue::parse(text, "calibration");
    if (v.at("version").asInt() != kVersion || v.at("processor").asString() != processor)
      return std::nullopt;
    Calibration c;
    c.f32Fma = v.at("f32_fma").asDouble();
    c.bf16Dot = v.at("bf16_dot").asDouble();
    c.amxBf16 = v.at("amx_bf16").asDouble();
    c.reading.streams = int(v.at("streams").asInt(1, kMaxReadStreams));
    c.reading.prefetch = v.at("prefetch").asInt(0, 1 << 16);
    c.reading.bytesPerSecond = v.at("bytes_per_second").asDouble();
    const bool real = c.f32Fma > 0 && c.bf16Dot >= 0 && c.amxBf16 >= 0;
    return real ? std::optional(c) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string calibrationPath() {
  const std::string folder = cacheFolder();
  if (folder.empty()) return "";
  const std::string identity = processorIdentity();
  return folder + "/cpu/" + sha256Hex(asBytes(identity)).substr(0, 16) + ".json";
}

const Calibration& calibration() {
  static const Calibration made = keptOrMeasured();
  return made;
}

KernelIsa KernelIsa::current() {
  static const KernelIsa isa = [] {
    KernelIsa made = of(detectIsa());
    if (auto pinned = pinnedArithmetic(made)) {
      made.arithmetic = *pinned;
    } else if (made.bf16) {  // without, there is no choice
      made.arithmetic = calibration().bf16Arithmetic(made);
    }
    return made;
  }();
  return isa;
}

}  // namespace lathe::cpu
