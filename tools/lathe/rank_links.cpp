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

Mesh parseMesh(const std::string& text) {
  Mesh mesh;
  int64_t ranks = 0;  // of each stage
  bool isSound = true;
  std::string_view left(text);
  for (bool more = true; isSound && more;) {
    const std::string_view part = left.substr(0, left.find(','));
    more = part.size() < left.size();
    left.remove_prefix(part.size() + more);
    int64_t& number = part.starts_with("pp=") ? mesh.stages : ranks;
    const char* end = part.data() + part.size();
    isSound = number == 0 && (part.starts_with("pp=") || part.starts_with("tp="));
    if (!isSound) break;
    const auto [next, code] = std::from_chars(part.data() + 3, end, number);
    isSound = code == std::errc() && next == end && number >= 1 && number <= 1024;
  }
  mesh.stages = std::max<int64_t>(mesh.stages, 1);
  mesh.ranks = std::max<int64_t>(ranks, 1) * mesh.stages;
  if (isSound && mesh.stages <= 64 && mesh.ranks <= 1024) return mesh;
  throw Error(ErrorCode::InvalidArgument,
              "--mesh: expected tp=N, pp=N or tp=N,pp=N with from 1 to 1024 ranks in at most 64 "
              "stages, got '" +
                  text + "'");
}

Mesh resized(Mesh mesh, int64_t ranks, int64_t stages) {
  mesh.ranks = ranks * stages;
  mesh.stages = stages;
  mesh.splitRows &= ranks > 1;
  return mesh;
}

static bool isMessage(const Call& call) { return call.kind == "send" || call.kind == "receive"; }

int exchangesOf(const Call& call) {
  if (call.kind == "all_reduce") return 2;
  return isMessage(call) || call.kind == "all_gather" || call.kind == "all_to_all" ||
         call.kind == "reduce_scatter";
}

double collectiveBytes(const Call& call, const CostValues& cost, int64_t ranks) {
  if (isMessage(call)) return call.kind == "send" ? cost.read : 0;
  const double whole = call.kind == "reduce_scatter" ? cost.read : cost.written;
  return exchangesOf(call) * double(ranks - 1) / double(ranks) * whole;
}

std::optional<double> collectiveSeconds(const Call& call, const CostValues& cost, int64_t ranks,
                                        const Link& link) {
  const int exchanges = exchangesOf(call);
  if (exchanges == 0) return std::nullopt;
  if (call.kind == "receive") return 0;
  if (call.kind == "send") return link.latency + cost.read / link.bytesPerSecond;
  const double steps = double(std::bit_width(uint64_t(ranks) - 1));
  return exchanges * steps * link.latency +
         collectiveBytes(call, cost, ranks) / link.bytesPerSecond;
}

}  // namespace lathe::cli
