// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `lathe selftest` found, as tables and as JSON.
#include <string>
#include <vector>

#include "lathe/runtime/machine.h"
#include "tools/selftest/selftest_api.h"

namespace lathe::cli {

/// One op on one backend: what it is asked of each dtype that it takes.
struct SelftestRow {
  struct Cell {
    DType dtype = DType::F32;
    std::string word;    ///< yes, expanded, no; of a test ok, FAIL, no
    std::string detail;  ///< the reason, or the differences, a line each
  };
  std::string backend, op;
  std::vector<Cell> cells;
};
/// The heading of a backend's table.
void printSelftestHeading(const std::string& backend, const std::vector<DType>& columns);
/// A row under it; `-` for dtypes that the op does not take.
void printSelftestRow(const SelftestRow& row, const std::vector<DType>& columns);
/// Reasons and differences of all rows: one line for dtypes that share them.
void printSelftestDetails(const std::vector<SelftestRow>& rows);
void printSelftestJson(const std::string& mode, const std::vector<SelftestRow>& rows);

struct MeasuredKernel {
  std::string backend;
  selftest::Kernel kernel;
  selftest::Measurement measurement;

  double medianSeconds() const;
  /// Seconds at the machine's roofs over measured ones.
  double roofShare(const MachineRoofs& machine) const;
};
void printKernels(const std::vector<MeasuredKernel>& kernels, const MachineRoofs& machine,
                  int threads);
void printKernelsJson(const std::vector<MeasuredKernel>& kernels, const MachineRoofs& machine,
                      int threads);

}  // namespace lathe::cli
