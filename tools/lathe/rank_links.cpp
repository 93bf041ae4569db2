// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/rank_links.h"

#include <bit>
#include <charconv>
#include <utility>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe::cli {
namespace {

// A number with one of the units behind it, in the unit's base.
std::optional<double> quantity(std::string_view text,
                               const std::vector<std::pair<std::string_view, double>>& units) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !(value > 0)) return std::nullopt;
  const std::string_view unit(end, size_t(text.data() + text.size() - end));
  for (const auto& [name, factor] : units)
    if (unit == name) return value * factor;
  return std::nullopt;
}

}  // namespace

Link parseLink(const std::string& text) {
  const size_t comma = text.find(',');
  const std::string_view all(text);
  if (comma != text.npos) {
    const auto latency =
        quantity(all.substr(0, comma), {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}});
    const auto bandwidth =
        quantity(all.substr(comma + 1), {{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}});
    if (latency && bandwidth) return {text, *latency, *bandwidth};
  }
  throw Error(
      ErrorCode::InvalidArgument,
      "--link: expected a latency and a bandwidth such as 25us,2.8GB/s, got '" + text + "'");
}

Link sharedMemoryLink() { return parseLink("3us,2.5GB/s"); }

int64_t parseMesh(const std::string& text) {
  int64_t ranks = 0;
  constexpr std::string_view axis = "tp=";
  const char* end = text.data() + text.size();
  if (text.starts_with(axis)) {
    const auto [next, code] = std::from_chars(text.data() + axis.size(), end, ranks);
    if (code == std::errc() && next == end && ranks >= 1 && ranks <= 1024) return ranks;
  }
  throw Error(ErrorCode::InvalidArgument,
              "--mesh: expected tp=N with from 1 to 1024 ranks, got '" + text + "'");
}

int exchangesOf(const Call& call) {
  if (call.kind == "all_reduce") return 2;
  return call.kind == "all_gather" || call.kind == "all_to_all" || call.kind == "reduce_scatter";
}

double collectiveBytes(const Call& call, const CostValues& cost, int64_t ranks) {
  const double whole = call.kind == "reduce_scatter" ? cost.read : cost.written;
  return exchangesOf(call) * double(ranks - 1) / double(ranks) * whole;
}

std::optional<double> collectiveSeconds(const Call& call, const CostValues& cost, int64_t ranks,
                                        const Link& link) {
  const int exchanges = exchangesOf(call);
  if (exchanges == 0) return std::nullopt;
  const double steps = double(std::bit_width(uint64_t(ranks) - 1));
  return exchanges * steps * link.latency +
         collectiveBytes(call, cost, ranks) / link.bytesPerSecond;
}

}  // namespace lathe::cli
