// SPDX-License-Identifier: Apache-2.0
#pragma once
// The report: one offline HTML page that shows how a graph became a program, from the user's lines
// through every step of the IR to kernels, memory and time (docs/report.md).
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/runtime/machine.h"
#include "lathe/runtime/session.h"

namespace lathe {

/// Times of one entry point, as Session::profile gives them: one row per call, in order.
struct ReportRun {
  std::string entry;
  SymbolValues symbols;  ///< the sizes that ran
  std::vector<CallProfile> calls;
};

struct ReportOptions {
  std::string title = "graph";
  /// Sizes at which memory and costs are shown, beside those of the runs. Symbols that are left out
  /// take the least value of their range where they are named `batch`, else 512 or the nearest
  /// value that the range has. None: one setting of those defaults.
  std::vector<SymbolValues> settings;
  /// The machine whose roofs time is predicted for; without one the page shows work and traffic.
  std::optional<MachineRoofs> machine;
};

class Report {
 public:
  Report();
  ~Report();
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;

  /// lathe::compile that also keeps what the page shows. A record that the options bring is filled
  /// as usual. One report takes one compilation; throws what compile throws.
  Program compile(const Graph& graph, CompileOptions options = {});

  /// The data as one JSON object (docs/report.md lists its keys). `program` is what compile gave,
  /// or a copy of it. Throws Error (InvalidArgument) for symbols that the program does not have and
  /// for runs that do not fit it.
  std::string json(const Program& program, const ReportOptions& options,
                   const std::vector<ReportRun>& runs = {}) const;
  /// The page, with the data inside.
  std::string page(const Program& program, const ReportOptions& options,
                   const std::vector<ReportRun>& runs = {}) const;
  /// Writes the page; the file appears whole or not at all. Throws Error (Io).
  void write(const std::string& path, const Program& program, const ReportOptions& options,
             const std::vector<ReportRun>& runs = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
