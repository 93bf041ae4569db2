// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of `lathe bench` as Markdown, CSV or JSON.
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/device/roofs.h"
#include "lathe/runtime/session.h"

namespace lathe::cli {

/// What a rank tells the others.
struct CollectiveWork {
  int64_t calls = 0;  ///< in one repetition
  double bytes = 0;   ///< that it sends in one repetition
  /// In all repetitions, with the wait for slower ranks. Nothing where nobody waited for a device
  /// between two calls.
  std::optional<double> seconds = {};
};

struct BenchTest {
  std::string name;             ///< "prefill" or "decode"
  int64_t tokens = 0;           ///< per repetition and text
  int64_t batch = 1;            ///< texts at once
  std::vector<double> seconds;  ///< of each repetition
  double flops = 0, bytes = 0;  ///< of one repetition; 0: not judged by it
  /// Processor time of one rank in each repetition, waiting for other ranks included.
  std::vector<double> cpuSeconds;
  CollectiveWork collectives;

  double medianSeconds() const;
  double medianCpuSeconds() const;
  /// Of the time of all repetitions.
  std::optional<double> collectiveShare() const;
  /// Of all texts.
  double tokensPerSecond() const { return double(tokens * batch) / medianSeconds(); }
};

struct ProfileRow {
  std::string entry, kernel, origin;
  double seconds = 0;
  int64_t runs = 0;
  double predictedSeconds = 0;  ///< at the roofs; 0 where the program does not say what it costs
};

struct BenchReport {
  std::string model, dtype, backend;
  std::string isa;                  ///< the CPU's tier; empty for backends that have none
  std::vector<std::string> device;  ///< what it says of itself and of who computes what
  int64_t parameters = 0;
  int threads = 0;
  int64_t batch = 1;     ///< texts at once
  int64_t ranks = 1;     ///< that run the model together
  double peakFlops = 0;  ///< FLOP/s
  cpu::ReadRoofs roofs;
  Session::Memory memory;
  std::vector<BenchTest> tests;
  std::vector<ProfileRow> profile;

  /// Share of the matrix peak, or nothing where it does not apply.
  std::optional<double> peakShare(const BenchTest& test) const;
  std::optional<double> bandwidthShare(const BenchTest& test) const;
  /// What contradicts itself: a share above 1. Empty if nothing does.
  std::string contradiction() const;
};

/// `format` is md, csv or json.
void printReport(const BenchReport& report, const std::string& format);

}  // namespace lathe::cli
