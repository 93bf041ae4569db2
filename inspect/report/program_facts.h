// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the report shows of a program: its calls and buffers, and at given sizes the memory plan,
// work and predicted time.
#include <string>
#include <vector>

#include "lathe/inspect/report.h"
#include "lathe/runtime/cost.h"

namespace llvm::json {
class OStream;
}

namespace lathe {

/// Sizes of every symbol, by the rule of ReportOptions::settings. Throws Error (InvalidArgument)
/// for names that are no symbol and values outside their range.
SymbolValues settingFor(const Program& program, const SymbolValues& given);

/// Throws Error (InvalidArgument) for a run that does not fit the program. The functions below
/// throw nothing: they write into a document that is open.
void checkRuns(const Program& program, const std::vector<ReportRun>& runs);

/// Keys `program` (symbols, weights, derived, states, entries; `load` is the entry of that name)
/// and `settings`: [{symbols, entries: {name: {arena, memory, slots, calls}}}].
void writeProgram(llvm::json::OStream& out, const Program& program,
                  const std::vector<SymbolValues>& settings,
                  const std::map<std::string, CallCosts>& costs, const MachineRoofs* machine);
/// Key `runs`: [{entry, setting, runs, seconds: [per call and run]}]; `settings` are those of
/// writeProgram, the runs' among them.
void writeRuns(llvm::json::OStream& out, const Program& program, const std::vector<ReportRun>& runs,
               const std::vector<SymbolValues>& settings);

}  // namespace lathe
