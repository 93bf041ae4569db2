// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the runs of a repetition of `lathe bench` had to do, by the costs that the program carries.
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/cost.h"
#include "lathe/runtime/machine.h"
#include "tools/lathe/bench_report.h"

namespace lathe::cli {

/// The sizes of each run of `prefill` for `rows` prompts of equal length, and of `decode` for
/// `tokens` more of each after `start`, as BatchGenerator makes them. `cache` counts what is filled
/// after the run, not what was reserved: attention reads no more.
std::vector<SymbolValues> prefillRuns(const Program& program, int64_t prompt, int64_t rows);
std::vector<SymbolValues> decodeRuns(const Program& program, int64_t start, int64_t tokens,
                                     int64_t rows);

/// The sum over the runs. Nothing if a call of the entry point has no cost.
std::optional<CostValues> workOf(const Program& program, const std::string& entry,
                                 const std::vector<SymbolValues>& runs);
/// What one of the program's ranks tells the others in these runs, but for the time.
CollectiveWork collectivesOf(const Program& program, const std::string& entry,
                             const std::vector<SymbolValues>& runs);
/// Seconds that the machine's roofs predict for all runs of each call; 0 for one without a cost.
std::vector<double> predictedSeconds(const Program& program, const std::string& entry,
                                     const std::vector<SymbolValues>& runs,
                                     const MachineRoofs& machine);

}  // namespace lathe::cli
