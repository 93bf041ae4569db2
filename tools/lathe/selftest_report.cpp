// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/selftest_report.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tools/lathe/exit_status.h"
#include "tools/lathe/json_output.h"

namespace lathe::cli {
namespace {

constexpr int kMostDifferences = 4;  // of one op and dtype, in text

std::string withoutDialect(const std::string& op) { return op.substr(op.find('.') + 1); }

// A reason stays on its line; differences are a list, each with its own line end.
std::string detailText(const std::string& detail) {
  if (detail.back() != '\n') return " " + detail;
  std::istringstream lines(detail);
  std::string text;
  int count = 0;
  for (std::string line; std::getline(lines, line);)
    if (++count <= kMostDifferences) text += "\n  " + line;
  if (count > kMostDifferences)
    text += fmt::format("\n  and {} more; --json has all", count - kMostDifferences);
  return text;
}

std::string boundOf(const CostValues& work, const MachineRoofs& machine) {
  return predict(work, machine).computeBound ? "compute" : "memory";
}

}  // namespace

void printSelftestHeading(const std::string& backend, const std::vector<DType>& columns) {
  std::string rule = "|---|";
  fmt::print("backend {}\n\n| op |", backend);
  for (DType d : columns) {
    fmt::print(" {} |", nameOf(d));
    rule += "---|";
  }
  fmt::print("\n{}\n", rule);
}

void printSelftestRow(const SelftestRow& row, const std::vector<DType>& columns) {
  fmt::print("| {} |", withoutDialect(row.op));
  for (DType d : columns) {
    auto cell = std::find_if(row.cells.begin(), row.cells.end(),
                             [d](const SelftestRow::Cell& c) { return c.dtype == d; });
    fmt::print(" {} |", cell == row.cells.end() ? "-" : cell->word);
  }
  fmt::print("\n");
  flushOutput();
}

void printSelftestDetails(const std::vector<SelftestRow>& rows) {
  std::string text;
  for (const SelftestRow& row : rows) {
    std::map<std::pair<std::string, std::string>, std::string> lines;
    for (const SelftestRow::Cell& c : row.cells) {
      if (c.detail.empty()) continue;
      std::string& dtypes = lines[{c.word, c.detail}];
      dtypes += (dtypes.empty() ? "" : ", ") + std::string(nameOf(c.dtype));
    }
    for (const auto& [key, dtypes] : lines) {
      text += fmt::format("{} {} {} {}:{}\n", row.backend, withoutDialect(row.op), dtypes,
                          key.first, detailText(key.second));
    }
  }
  if (!text.empty()) fmt::print("\n{}", text);
}

void printSelftestJson(const std::string& mode, const std::vector<SelftestRow>& rows) {
  Json out = document("selftest");
  out["mode"] = mode;
  out["ops"] = Json::array();
  for (const SelftestRow& row : rows)
    for (const SelftestRow::Cell& c : row.cells) {
      Json cell{
          {"backend", row.backend}, {"op", row.op}, {"dtype", nameOf(c.dtype)}, {"result", c.word}};
      if (!c.detail.empty()) cell["detail"] = c.detail;
      out["ops"].push_back(std::move(cell));
    }
  printJson(out);
}

double MeasuredKernel::medianSeconds() const {
  std::vector<double> sorted = measurement.seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double MeasuredKernel::roofShare(const MachineRoofs& machine) const {
  return predict(*measurement.work, machine).seconds / medianSeconds();
}

void printKernels(const std::vector<MeasuredKernel>& kernels, const MachineRoofs& machine,
                  int threads) {
  fmt::print("{} thread{}: {}FLOP/s in 16 bits, {}FLOP/s in f32, {}/s\n\n", threads,
             threads == 1 ? "" : "s", countText(machine.narrowFlops), countText(machine.wideFlops),
             byteText(machine.bytesPerSecond));
  fmt::print(
      "| backend | op | size | dtype | time | FLOP/s | bytes/s | bound | of roof |\n"
      "|---|---|---|---|--:|--:|--:|---|--:|\n");
  for (const MeasuredKernel& k : kernels) {
    const auto& work = k.measurement.work;
    fmt::print("| {} | {} | {} | {} | ", k.backend, withoutDialect(k.kernel.op), k.kernel.shape,
               nameOf(k.kernel.dtype));
    if (!k.measurement.refused.empty()) {
      fmt::print("no | - | - | - | - |\n");
      continue;
    }
    const double seconds = k.medianSeconds();
    if (!work) {
      fmt::print("{} | - | - | - | - |\n", timeText(seconds));
      continue;
    }
    fmt::print("{} | {} | {} | {} | {:.1f} % |\n", timeText(seconds),
               countText(work->flops / seconds), byteText(work->bytes() / seconds),
               boundOf(*work, machine), k.roofShare(machine) * 100);
  }
  for (const MeasuredKernel& k : kernels)
    if (!k.measurement.refused.empty())
      fmt::print("\n{} {} {} no: {}\n", k.backend, withoutDialect(k.kernel.op),
                 nameOf(k.kernel.dtype), k.measurement.refused);
}

void printKernelsJson(const std::vector<MeasuredKernel>& kernels, const MachineRoofs& machine,
                      int threads) {
  Json out = document("selftest");
  out["mode"] = "perf";
  out["threads"] = threads;
  out["device"] = {{"narrow_flops_per_second", machine.narrowFlops},
                   {"wide_flops_per_second", machine.wideFlops},
                   {"bytes_per_second", machine.bytesPerSecond}};
  out["kernels"] = Json::array();
  for (const MeasuredKernel& k : kernels) {
    Json row{{"backend", k.backend},
             {"op", k.kernel.op},
             {"size", k.kernel.shape},
             {"dtype", nameOf(k.kernel.dtype)}};
    if (!k.measurement.refused.empty()) {
      row["refused"] = k.measurement.refused;
    } else {
      const double seconds = k.medianSeconds();
      row["time_s"] = seconds;
      row["repetitions_s"] = k.measurement.seconds;
      if (const auto& work = k.measurement.work) {
        row["flops"] = work->flops;
        row["bytes"] = work->bytes();
        row["flops_per_second"] = work->flops / seconds;
        row["bytes_per_second"] = work->bytes() / seconds;
        row["bound"] = boundOf(*work, machine);
        row["roof_share"] = k.roofShare(machine);
      }
    }
    out["kernels"].push_back(std::move(row));
  }
  printJson(out);
}

}  // namespace lathe::cli
