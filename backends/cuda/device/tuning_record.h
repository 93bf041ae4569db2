// SPDX-License-Identifier: Apache-2.0
#pragma once
// What was measured about one kernel problem on one device, as a line of text: written by the
// program that measures, read by the compiler.
#include <string>
#include <string_view>
#include <vector>

namespace lathe::cuda {

struct TuningRecord {
  std::string device;        ///< "NVIDIA H200"
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::string problem;      ///< "product bf16 m=8 n=4864 k=896 ..."
  int version = 0;          ///< of the templates that the kernel was printed from
  std::string choice;       ///< "gemv-dot warps=8x1 ...", as the compiler writes its candidates
  double microseconds = 0;  ///< median of one run
  double spread = 0;        ///< (third quartile - first quartile) / median
  std::string software;     ///< "driver 13.0, nvrtc 13.0"
  std::string date;         ///< "2026-01-31"
  bool operator==(const TuningRecord&) const = default;
};

/// One line without its end:
/// "device, 9.0, 132 | problem | version | choice | 7.31 us | 1.2 % | software | date".
std::string toText(const TuningRecord& record);

/// Records in the order of the lines; empty lines and lines that begin with '#' say nothing. Throws
/// Error (InvalidFile) that names `file`, the line and what it should hold.
std::vector<TuningRecord> parseTuningRecords(std::string_view text, const std::string& file);

}  // namespace lathe::cuda
