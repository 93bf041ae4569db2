// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

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
constexpr int kVersion = 6;
// By how much dot products have to be faster: they make more of the machine's work.
constexpr double kDotGain = 1.1;
// By which another arithmetic is faster than the one chosen before, whose bits results have.
constexpr double kChangeGain = 1.1;

constexpr size_t kMostKept = 5;
constexpr int64_t kSecondsApart = 10 * 60, kSecondsValid = int64_t(30) * 24 * 3600;

int64_t secondsSince1970() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

// What a measurement may say; written so that a NaN is none.
bool isPlausible(const Calibration& c) {
  auto isRound = [](const ReadRound& round) {
    return round.size() == readPatterns().size() &&
           std::ranges::all_of(round, [](double rate) { return rate > 0; });
  };
  return c.f32Fma > 0 && c.bf16Dot >= 0 && c.amxBf16 >= 0 &&
         std::ranges::all_of(c.rounds, [&](const std::vector<ReadRound>& rounds) {
           return !rounds.empty() && std::ranges::all_of(rounds, isRound);
         });
}

void chooseReading(Calibration& c) {
  const ChosenPatterns chosen = choosePatterns(c.rounds, kPatternGain);
  c.reading = chosen.patterns;
  c.spread = chosen.spread;
}

std::vector<Calibration> readKept(const std::string& path, const std::string& processor) {
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored) || !whyNotPrivate(path).empty()) return {};
  try {
    return calibrationsFrom(readWholeFile(path, kCacheFile), processor);
  } catch (const Error&) {
    return {};  // what cannot be read is measured again and replaced
  }
}

std::vector<Calibration> keptOrMeasured() {
  const std::string path = calibrationPath(), processor = processorIdentity();
  const int64_t now = secondsSince1970();
  std::vector<Calibration> kept = readKept(path, processor);
  // Neither old ones nor those of a clock that was ahead.
  std::erase_if(kept, [&](const Calibration& c) {
    return c.takenAt > now || now - c.takenAt > kSecondsValid;
  });
  if (!wantsAnother(kept, now)) return kept;
  kept = withAnother(std::move(kept), calibrate());
  if (path.empty()) return kept;
  try {
    makePrivateFolder(fs::path(path).parent_path());
    writeFileAtomically(path, textOf(kept, processor) + "\n");
  } catch (const Error&) {
    // A cache that cannot be written costs the next process 0.2 s.
  }
  return kept;
}

const std::vector<Calibration>& measurements() {
  static const std::vector<Calibration> made = keptOrMeasured();
  return made;
}

// Those of quiet moments, if there are any.
std::vector<Calibration> countedOf(const std::vector<Calibration>& measured) {
  std::vector<Calibration> quiet;
  std::copy_if(measured.begin(), measured.end(), std::back_inserter(quiet),
               [](const Calibration& c) { return !c.busy; });
  return quiet.empty() ? measured : quiet;
}

// As bf16Arithmetic compares it with that of `other`.
double rateOf(const Calibration& c, Bf16Arithmetic arithmetic, Bf16Arithmetic other) {
  switch (arithmetic) {
    case Bf16Arithmetic::Tiles:
      return c.amxBf16;
    case Bf16Arithmetic::Dot:
      return other == Bf16Arithmetic::Widened ? c.bf16Dot * kDotGain : c.bf16Dot;
    case Bf16Arithmetic::Widened:
      break;
  }
  return c.f32Fma;
}

}  // namespace

Bf16Arithmetic Calibration::bf16Arithmetic(const KernelIsa& isa) const {
  const bool tiles = isa.tier == Isa::Amx, dots = isa.tier >= Isa::Avx512 && isa.bf16;
  if (tiles && amxBf16 >= std::max(f32Fma, bf16Dot)) return Bf16Arithmetic::Tiles;
  // Widening costs a pass over the weights, which a rate of registers does not show.
  return dots && bf16Dot * kDotGain >= f32Fma ? Bf16Arithmetic::Dot : Bf16Arithmetic::Widened;
}

Calibration calibrate() {
  const MachineLoad load;
  const CpuFeatures& features = cpuFeatures();
  const Isa tier = machineIsa();
  // In turns: a slow moment meets all units, and the best of each is what counts. Short ones find
  // the moments in which other programs pause.
  constexpr int kTurns = 8, kRepeats = 2;
  constexpr double kSeconds = 0.5e-3;
  // One thread tells which unit is the fastest, also beside programs that never let two run at
  // once.
  ThreadPool one(1);
  Calibration c;
  auto raise = [&](double& rate, PeakKind kind) {
    rate = std::max(rate, measurePeak(kind, one, kRepeats, kSeconds));
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    raise(c.f32Fma, PeakKind::F32Fma);
    if (tier >= Isa::Avx512 && features.avx512Bf16) raise(c.bf16Dot, PeakKind::Bf16Dot);
    if (tier == Isa::Amx) raise(c.amxBf16, PeakKind::AmxBf16);
  }
  KernelIsa isa = KernelIsa::of(tier);
  isa.arithmetic = c.bf16Arithmetic(isa);
  // On an idle machine new threads may begin on one processor; the system moves them apart only
  // when they stay busy for some milliseconds, longer than any of the measurements.
  constexpr double kSpreadSeconds = 15e-3;
  ThreadPool pool(ThreadPool::global().threads());
  measurePeak(PeakKind::F32Fma, pool, 0, kSpreadSeconds);
  c.rounds = measureReadPatterns(pool, isa, kPatternGain);
  chooseReading(c);
  c.takenAt = secondsSince1970();
  c.busy = load.wasBusy(pool.threads());
  return c;
}

Calibration together(const std::vector<Calibration>& measured) {
  const std::vector<Calibration> counted = countedOf(measured);
  Calibration all;
  all.measurements = int(counted.size());
  all.busy = counted.front().busy;
  for (const Calibration& c : counted) {
    for (size_t kind = 0; kind < c.rounds.size(); ++kind)
      all.rounds[kind].insert(all.rounds[kind].end(), c.rounds[kind].begin(), c.rounds[kind].end());
    all.f32Fma = std::max(all.f32Fma, c.f32Fma);
    all.bf16Dot = std::max(all.bf16Dot, c.bf16Dot);
    all.amxBf16 = std::max(all.amxBf16, c.amxBf16);
    all.takenAt = std::max(all.takenAt, c.takenAt);
  }
  chooseReading(all);
  return all;
}

std::vector<Calibration> withAnother(std::vector<Calibration> measured,
                                     const Calibration& another) {
  const bool anyQuiet = !another.busy || (!measured.empty() && !countedOf(measured).front().busy);
  // The last one alone says when the machine was busy, which is what the next process asks.
  if (anyQuiet) std::erase_if(measured, [](const Calibration& c) { return c.busy; });
  measured.push_back(another);
  if (!anyQuiet && measured.size() > kMostKept) measured.erase(measured.begin());
  return measured;
}

Bf16Arithmetic bf16Arithmetic(const std::vector<Calibration>& measured, const KernelIsa& isa) {
  const std::vector<Calibration> counted = countedOf(measured);
  Bf16Arithmetic chosen = counted.front().bf16Arithmetic(isa);
  for (size_t count = 2; count <= counted.size(); ++count) {
    const Calibration all = together({counted.begin(), counted.begin() + ptrdiff_t(count)});
    const Bf16Arithmetic other = all.bf16Arithmetic(isa);
    if (rateOf(all, other, chosen) >= kChangeGain * rateOf(all, chosen, other)) chosen = other;
  }
  return chosen;
}

bool wantsAnother(const std::vector<Calibration>& measured, int64_t now) {
  if (measured.empty()) return true;
  if (now - measured.back().takenAt < kSecondsApart) return false;
  const std::vector<Calibration> counted = countedOf(measured);
  return counted.front().busy || counted.size() < kMostKept;
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

std::string textOf(const std::vector<Calibration>& measured, const std::string& processor) {
  std::string name, list;
  for (char ch : processor) {
    if (ch == '"' || ch == '\\') name += '\\';
    if (static_cast<unsigned char>(ch) >= 0x20) name += ch;
  }
  for (const Calibration& c : measured) {
    std::string reads;
    for (WeightKind kind : kWeightKinds) {
      std::string rounds;
      for (const ReadRound& round : c.rounds[size_t(kind)]) {
        std::string rates;
        for (double rate : round)
          rates += fmt::format("{}{:.4g}", rates.empty() ? "" : ", ", rate * 1e-9);
        rounds += fmt::format("{}[{}]", rounds.empty() ? "" : ", ", rates);
      }
      reads += fmt::format(R"({}"{}": [{}])", reads.empty() ? "" : ", ", nameOf(kind), rounds);
    }
    list += fmt::format(
        R"({}{{"taken_at": {}, "f32_fma": {:.4g}, "bf16_dot": {:.4g}, "amx_bf16": {:.4g}, )"
        R"("busy": {}, "gb_per_second": {{{}}}}})",
        list.empty() ? "" : ", ", c.takenAt, c.f32Fma, c.bf16Dot, c.amxBf16, c.busy, reads);
  }
  return fmt::format(R"({{"version": {}, "processor": "{}", "measured": [{}]}})", kVersion, name,
                     list);
}

std::vector<Calibration> calibrationsFrom(const std::string& text, const std::string& processor) {
  try {
    const JsonValue kept = JsonValue::parse(text, "calibration");
    if (kept.at("version").asInt() != kVersion || kept.at("processor").asString() != processor)
      return {};
    std::vector<Calibration> measured;
    for (const JsonValue& v : kept.at("measured").elements()) {
      Calibration c;
      c.takenAt = v.at("taken_at").asInt(0, INT64_MAX);
      c.f32Fma = v.at("f32_fma").asDouble();
      c.bf16Dot = v.at("bf16_dot").asDouble();
      c.amxBf16 = v.at("amx_bf16").asDouble();
      c.busy = v.at("busy").asBool();
      for (WeightKind kind : kWeightKinds)
        for (const JsonValue& round : v.at("gb_per_second").at(nameOf(kind)).elements()) {
          ReadRound& rates = c.rounds[size_t(kind)].emplace_back();
          for (const JsonValue& rate : round.elements()) rates.push_back(rate.asDouble() * 1e9);
        }
      if (!isPlausible(c)) return {};
      chooseReading(c);
      measured.push_back(c);
    }
    return measured;
  } catch (const Error&) {
    return {};
  }
}

std::string calibrationPath() {
  const std::string folder = cacheFolder();
  if (folder.empty()) return "";
  const std::string identity = processorIdentity();
  return folder + "/cpu/" + sha256Hex(asBytes(identity)).substr(0, 16) + ".json";
}

const Calibration& calibration() {
  static const Calibration made = together(measurements());
  return made;
}

const ReadPattern& readPatternOf(const PackedShape& shape) {
  return calibration().reading[shape.dtype == DType::F32 ? WeightKind::F32 : WeightKind::BF16];
}
const ReadPattern& readPatternOf(const QuantizedShape& shape) {
  return calibration().reading[shape.bits() == 8 ? WeightKind::Int8 : WeightKind::Int4];
}

KernelIsa KernelIsa::current() {
  static const KernelIsa isa = [] {
    KernelIsa made = of(detectIsa());
    if (auto pinned = pinnedArithmetic(made)) {
      made.arithmetic = *pinned;
    } else if (made.bf16) {  // without, there is no choice
      made.arithmetic = bf16Arithmetic(measurements(), made);
    }
    return made;
  }();
  return isa;
}

}  // namespace lathe::cpu
