// SPDX-License-Identifier: Apache-2.0
#pragma once
// --report FILE.html of the verbs that compile: the compilation, and after a run its times, as one
// page (lathe/inspect/report.h).
#include <memory>
#include <string>
#include <vector>

#include "lathe/inspect/report.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/model.h"

namespace lathe::cli {

struct ReportFlags {
  std::string path;                ///< --report; empty: no report
  std::vector<std::string> sizes;  ///< --set, for verbs that run nothing
  std::string device;              ///< --device; empty: this machine
};
/// Adds --report and --device, and --set where nothing runs at sizes of its own.
void addReport(CLI::App& parser, ReportFlags& flags, bool withSizes);

struct ReportedProgram {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Report> report;  ///< null without --report
};
/// programOf, which keeps the compilation for --report. Throws Error(InvalidArgument) for a file
/// name that does not end in .html and for compiled programs, which hold no IR.
ReportedProgram reportedProgramOf(const Model& model, const CompileFlags& flags,
                                  const ReportFlags& report);
/// Writes the page if there is one to write, and says so.
void writeReport(const ReportFlags& flags, const ReportedProgram& compiled, const Model& model,
                 const std::vector<ReportRun>& runs = {});

/// The sizes that a session took from inputs and states: those that name a dimension alone.
SymbolValues sizesOfRun(const Session& session, const EntryPoint& entry, const Arrays& inputs);

}  // namespace lathe::cli
