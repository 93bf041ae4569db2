// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/bench_report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tools/lathe/json_output.h"

namespace lathe::cli {
namespace {

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "-";
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double fastest(const BenchTest& t) {
  return double(t.tokens * t.batch) / *std::min_element(t.seconds.begin(), t.seconds.end());
}
double slowest(const BenchTest& t) {
  return double(t.tokens * t.batch) / *std::max_element(t.seconds.begin(), t.seconds.end());
}

// A repetition of one rank.
void printRanks(const BenchReport& r) {
  if (r.ranks == 1) return;
  fmt::print(
      "\n| test of one of {} ranks | processor time ms | collectives | sent | ms | share |\n"
      "|---|--:|--:|--:|--:|--:|\n",
      r.ranks);
  for (const BenchTest& t : r.tests) {
    const auto seconds = t.collectives.seconds;
    fmt::print("| {} {} | {:.1f} | {} | {} | {} | {} |\n", t.name, t.tokens,
               t.medianCpuSeconds() * 1e3, t.collectives.calls, byteText(t.collectives.bytes),
               seconds ? fmt::format("{:.1f}", *seconds / double(t.seconds.size()) * 1e3) : "-",
               percent(t.collectiveShare()));
  }
}

void printMarkdown(const BenchReport& r) {
  fmt::print("{}: {} parameters, {}, backend {}{}, {} threads{}\n\n", r.model,
             countText(double(r.parameters)), r.dtype, r.backend,
             r.isa.empty() ? "" : " (" + r.isa + ")", r.threads,
             r.batch > 1 ? fmt::format(", batch {}", r.batch) : "");
  if (!r.roofs.tried.empty())
    fmt::print("matrix peak {}FLOP/s, read bandwidth {}/s ({} streams per thread{})\n\n",
               countText(r.peakFlops), byteText(r.roofs.best()), r.roofs.tried.front().streams,
               r.roofs.tried.front().prefetch ? ", prefetch" : "");
  fmt::print(
      "| test | tokens/s | spread | FLOP/s | of peak | bytes/s | of bandwidth |\n"
      "|---|--:|--:|--:|--:|--:|--:|\n");
  for (const BenchTest& t : r.tests) {
    double seconds = t.medianSeconds();
    fmt::print("| {} {} | {:.1f} | {:.1f} to {:.1f} | {} | {} | {} | {} |\n", t.name, t.tokens,
               t.tokensPerSecond(), slowest(t), fastest(t),
               t.flops > 0 ? countText(t.flops / seconds) : "-", percent(r.peakShare(t)),
               t.bytes > 0 ? byteText(t.bytes / seconds) : "-", percent(r.bandwidthShare(t)));
  }
  printRanks(r);
  if (r.profile.empty()) return;
  fmt::print(
      "\n| entry | kernel | where | runs | ms | share | predicted ms | of roof |\n"
      "|---|---|---|--:|--:|--:|--:|--:|\n");
  for (const ProfileRow& row : r.profile) {
    double all = 0;
    for (const ProfileRow& other : r.profile)
      if (other.entry == row.entry) all += other.seconds;
    const bool known = row.predictedSeconds > 0 && row.seconds > 0;
    fmt::print("| {} | {} | {} | {} | {:.2f} | {} | {} | {} |\n", row.entry, row.kernel, row.origin,
               row.runs, row.seconds * 1e3, percent(all > 0 ? row.seconds / all : 0),
               known ? fmt::format("{:.2f}", row.predictedSeconds * 1e3) : "-",
               known ? percent(row.predictedSeconds / row.seconds) : "-");
  }
}

void printCsv(const BenchReport& r) {
  fmt::print(
      "test,tokens,threads,dtype,tokens_per_second,tokens_per_second_min,tokens_per_second_max,"
      "flops_per_second,peak_share,bytes_per_second,bandwidth_share,batch,ranks,cpu_seconds,"
      "collective_bytes,collective_share\n");
  auto optional = [](std::optional<double> v) { return v ? fmt::format("{:.6g}", *v) : ""; };
  for (const BenchTest& t : r.tests) {
    double seconds = t.medianSeconds();
    fmt::print("{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{},{},{},{},{},{:.6g},{:.6g},{}\n", t.name,
               t.tokens, r.threads, r.dtype, t.tokensPerSecond(), slowest(t), fastest(t),
               t.flops / seconds, optional(r.peakShare(t)),
               t.bytes > 0 ? fmt::format("{:.6g}", t.bytes / seconds) : "",
               optional(r.bandwidthShare(t)), t.batch, r.ranks, t.medianCpuSeconds(),
               t.collectives.bytes, optional(t.collectiveShare()));
  }
}

void printReportJson(const BenchReport& r) {
  Json out = document("bench");
  out["model"] = r.model;
  out["parameters"] = r.parameters;
  out["dtype"] = r.dtype;
  out["backend"] = r.backend;
  if (!r.isa.empty()) out["cpu_isa"] = r.isa;
  out["threads"] = r.threads;
  out["batch"] = r.batch;
  out["ranks"] = r.ranks;
  if (!r.device.empty()) out["device"] = r.device;
  if (!r.roofs.tried.empty()) {
    out["peak_flops_per_second"] = r.peakFlops;
    out["read_bytes_per_second"] = r.roofs.best();
  }
  for (const cpu::ReadRoof& roof : r.roofs.tried)
    out["read_roofs"].push_back({{"streams", roof.streams},
                                 {"prefetch", roof.prefetch},
                                 {"bytes_per_second", roof.bytesPerSecond}});
  out["memory"] = {{"arena_bytes", r.memory.arena},
                   {"states_bytes", r.memory.states},
                   {"scratch_bytes", r.memory.scratch},
                   {"derived_weights_bytes", r.memory.derived}};
  out["tests"] = Json::array();
  auto optional = [](std::optional<double> v) { return v ? Json(*v) : Json(nullptr); };
  for (const BenchTest& t : r.tests) {
    double seconds = t.medianSeconds();
    out["tests"].push_back(
        {{"name", t.name},
         {"tokens", t.tokens},
         {"tokens_per_second", t.tokensPerSecond()},
         {"tokens_per_second_min", slowest(t)},
         {"tokens_per_second_max", fastest(t)},
         {"repetitions_s", t.seconds},
         {"flops_per_second", t.flops / seconds},
         {"peak_share", optional(r.peakShare(t))},
         {"bytes_per_second", t.bytes > 0 ? Json(t.bytes / seconds) : Json(nullptr)},
         {"bandwidth_share", optional(r.bandwidthShare(t))},
         {"cpu_s", t.medianCpuSeconds()}});
    if (r.ranks == 1) continue;
    std::optional<double> perRun = t.collectives.seconds;
    if (perRun) *perRun /= double(t.seconds.size());
    out["tests"].back()["collectives"] = {{"calls", t.collectives.calls},
                                          {"sent_bytes", t.collectives.bytes},
                                          {"time_s", optional(perRun)},
                                          {"share", optional(t.collectiveShare())}};
  }
  for (const ProfileRow& row : r.profile)
    out["profile"].push_back({{"entry", row.entry},
                              {"kernel", row.kernel},
                              {"origin", row.origin},
                              {"runs", row.runs},
                              {"time_s", row.seconds},
                              {"predicted_s", row.predictedSeconds}});
  printJson(out);
}

}  // namespace

double BenchTest::medianSeconds() const { return medianOf(seconds); }
double BenchTest::medianCpuSeconds() const { return medianOf(cpuSeconds); }
std::optional<double> BenchTest::collectiveShare() const {
  if (!collectives.seconds) return std::nullopt;
  return *collectives.seconds / std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

std::optional<double> BenchReport::peakShare(const BenchTest& test) const {
  if (peakFlops <= 0 || test.flops <= 0) return std::nullopt;
  return test.flops / test.medianSeconds() / peakFlops;
}

std::optional<double> BenchReport::bandwidthShare(const BenchTest& test) const {
  if (test.bytes <= 0 || roofs.best() <= 0) return std::nullopt;
  return test.bytes / test.medianSeconds() / roofs.best();
}

std::string BenchReport::contradiction() const {
  for (const BenchTest& t : tests) {
    if (auto share = peakShare(t); share && *share > 1)
      return fmt::format("{}: {} of the measured matrix peak", t.name, percent(share));
    if (auto share = bandwidthShare(t); share && *share > 1)
      return fmt::format("{}: {} of the measured read bandwidth", t.name, percent(share));
  }
  return {};
}

void printReport(const BenchReport& report, const std::string& format) {
  if (format == "json") return printReportJson(report);
  if (format == "csv") return printCsv(report);
  printMarkdown(report);
}

}  // namespace lathe::cli
