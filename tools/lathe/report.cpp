// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/report.h"

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/exit_status.h"
#include "tools/lathe/host_roofs.h"

namespace lathe::cli {

void addReport(CLI::App& parser, ReportFlags& flags, bool withSizes) {
  parser
      .add_option("--report", flags.path,
                  "write one HTML page: source, IR after each step, kernels, memory, time")
      ->check(OutputFile{});
  parser.add_option("--report-device", flags.device,
                    "machine that --report predicts for, as in lathe explain (default: this one)");
  if (withSizes)
    parser.add_option("--set", flags.sizes, "sizes that --report shows: SYMBOL=NUMBER,...");
}

ReportedProgram reportedProgramOf(const Model& model, const CompileFlags& flags,
                                  const ReportFlags& report) {
  ReportedProgram result;
  if (report.path.empty()) {
    if (!report.sizes.empty() || !report.device.empty())
      throw Error(ErrorCode::InvalidArgument,
                  std::string(report.sizes.empty() ? "--report-device" : "--set") +
                      " says what --report shows; give --report FILE.html too");
    result.program = programOf(model, flags);
    return result;
  }
  if (!report.path.ends_with(".html"))
    throw Error(ErrorCode::InvalidArgument,
                "--report: expected a name that ends in .html, got " + report.path);
  requireGraph(model, "--report");
  // Their mistakes are told before a long compilation.
  parseSizes(report.sizes, "--set");
  if (!report.device.empty()) parseMachine(report.device);
  ModelRequest request = requestFor(model, flags);
  Progress progress("compiling " + model.path);
  result.program = compiler().compileReported(request, result.report);
  return result;
}

void writeReport(const ReportFlags& flags, const ReportedProgram& compiled, const Model& model,
                 const std::vector<ReportRun>& runs) {
  if (!compiled.report) return;
  ReportOptions options;
  options.title = model.path;
  if (!flags.sizes.empty()) options.settings.push_back(parseSizes(flags.sizes, "--set"));
  options.machine = flags.device.empty() ? hostRoofs(false) : parseMachine(flags.device);
  writeOutput(flags.path, [&] {
    compiler().writeReport(*compiled.report, flags.path, *compiled.program, options, runs);
  });
  console().note(fmt::format("wrote {}", flags.path));
}

SymbolValues sizesOfRun(const Session& session, const EntryPoint& entry, const Arrays& inputs) {
  SymbolValues values;
  auto read = [&](const SymbolicShape& shape, const Shape& sizes) {
    for (size_t i = 0; i < shape.size() && i < sizes.size(); ++i) {
      std::vector<std::string> symbols = shape[i].symbols();
      if (symbols.size() == 1 && shape[i] == DimExpr::symbol(symbols.front()))
        values.emplace(symbols.front(), sizes[i]);
    }
  };
  for (const Port& port : entry.inputs)
    if (auto it = inputs.find(port.name); it != inputs.end())
      read(entry.slots[size_t(port.slot)].shape, it->second.shape());
  for (const Port& port : entry.statesIn)
    read(entry.slots[size_t(port.slot)].shape, session.state(port.name).shape());
  return values;
}

}  // namespace lathe::cli
