// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the time of `lathe bench` went: calls of all layers added up.
#include <map>
#include <string>
#include <vector>

#include "tools/lathe/bench_report.h"

namespace lathe::cli {

/// The session's counters of `prefill` and `decode`, by entry point.
using Profiles = std::map<std::string, std::vector<CallProfile>>;
Profiles profilesOf(const Session& session);

/// Seconds that collectives took between two readings, which are always timed.
double collectiveSeconds(const Program& program, const std::string& entry, const Profiles& before,
                         const Profiles& after);

/// Seconds that the roofs predict for the same calls, by entry point and call.
using PredictedTimes = std::map<std::string, std::vector<double>>;

/// What was added between two readings, one row per kind of kernel and place in a layer, longest
/// first within each entry point. The rest of a long table is one row, so that it adds up.
std::vector<ProfileRow> profileRows(const Profiles& before, const Profiles& after,
                                    const PredictedTimes& predicted);

}  // namespace lathe::cli
