// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a measurement had the processors that it used: what other programs took of them.
#include <cstdint>
#include <string_view>

namespace lathe::cpu {

/// Seconds since the machine started, over all processors, as /proc/stat counts them.
struct ProcessorTime {
  double busy = 0;  ///< in programs, the system and interrupts, and what a hypervisor took away
  double all = 0;
  int processors = 0;

  /// From the text of /proc/stat, `ticks` of which are a second; zeros if it is not as expected.
  static ProcessorTime parse(std::string_view stat, double ticks);
  static ProcessorTime now();
};

/// The processors that were left beside other programs, on average between `before` and `after`,
/// when this process used `own` seconds of them; all of them if nothing was counted.
double processorsLeft(const ProcessorTime& before, const ProcessorTime& after, double own);

/// Watches from its construction on.
class MachineLoad {
 public:
  MachineLoad();
  /// True if less than nine tenths of `threads` processors were left to this process: what it
  /// measured meanwhile says what the machine had to spare, not what it can do. False where the
  /// system does not tell.
  bool wasBusy(int threads) const;

 private:
  ProcessorTime start_;
  double own_;
};

}  // namespace lathe::cpu
