// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

// The makers' data sheets, SXM forms: dense products, f32 outside the tensor cores, nominal HBM.
const MachineRoofs kGpus[] = {{"h100", 989.4e12, 66.9e12, 3.35e12},
                              {"h200", 989.4e12, 66.9e12, 4.8e12},
                              {"a100", 312e12, 19.5e12, 2.039e12}};

// Per core as measured with runtime loops (roofs.h) on two cores of each; the limit is the nominal
// bandwidth of a socket: 12 channels of DDR5-6000, 8 of DDR5-4800.
struct CpuKind {
  std::string_view name;
  double narrow, wide, bytes, socketBytes;
};
constexpr CpuKind kCpus[] = {{"epyc", 564e9, 286e9, 43e9, 576e9},
                             {"xeon", 2.63e12, 144e9, 19e9, 307e9}};

[[noreturn]] void reject(std::string_view text) {
  throw Error(ErrorCode::InvalidArgument,
              "device: expected host, h100, h200, a100, epyc:CORES, xeon:CORES or "
              "flops=F,bandwidth=B[,flops32=G] in FLOP/s and bytes/s, got '" +
                  std::string(text) + "'");
}

std::optional<double> positive(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value <= 0)
    return std::nullopt;
  return value;
}

MachineRoofs fromNumbers(std::string_view text) {
  MachineRoofs m;
  m.name = text;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const auto value = equals == item.npos ? std::nullopt : positive(item.substr(equals + 1));
    if (!value) reject(text);
    if (key == "flops")
      m.narrowFlops = *value;
    else if (key == "flops32")
      m.wideFlops = *value;
    else if (key == "bandwidth")
      m.bytesPerSecond = *value;
    else
      reject(text);
  }
  if (m.narrowFlops == 0 || m.bytesPerSecond == 0) reject(text);
  if (m.wideFlops == 0) m.wideFlops = m.narrowFlops;
  return m;
}

}  // namespace

MachineRoofs parseMachine(std::string_view text) {
  for (const MachineRoofs& gpu : kGpus)
    if (gpu.name == text) return gpu;
  const size_t colon = text.find(':');
  for (const CpuKind& cpu : kCpus) {
    if (text.substr(0, colon) != cpu.name) continue;
    auto cores = colon == text.npos ? std::nullopt : positive(text.substr(colon + 1));
    if (!cores || *cores != std::floor(*cores) || *cores > 4096) reject(text);
    return {std::string(text), *cores * cpu.narrow, *cores * cpu.wide,
            std::min(*cores * cpu.bytes, cpu.socketBytes)};
  }
  if (text.find('=') == text.npos) reject(text);
  return fromNumbers(text);
}

Prediction predict(const CostValues& cost, const MachineRoofs& machine) {
  const double arithmetic = cost.flops / (cost.narrow ? machine.narrowFlops : machine.wideFlops);
  const double traffic = cost.bytes() / machine.bytesPerSecond;
  return {std::max(arithmetic, traffic), arithmetic > traffic};
}

}  // namespace lathe
