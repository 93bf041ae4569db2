// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ranks pay for talking to each other, before anybody has.
#include <optional>
#include <string>

#include "lathe/passes/pipeline.h"
#include "lathe/runtime/cost.h"
#include "lathe/runtime/program.h"

namespace lathe::cli {

/// Between two ranks.
struct Link {
  std::string name;
  double latency = 0;         ///< seconds until a message of no bytes is there
  double bytesPerSecond = 0;  ///< in one direction
};

/// "25us,2.8GB/s". Units are s, ms, us and ns, and GB/s, MB/s and kB/s. Throws Error
/// (InvalidArgument).
Link parseLink(const std::string& text);
/// Two processes of one host, in shared memory, as measured on two cores.
Link sharedMemoryLink();
/// "tp=8", "pp=4" or "tp=2,pp=4": ranks that share each layer, and stages of a pipeline. Throws
/// Error (InvalidArgument).
Mesh parseMesh(const std::string& text);
/// The same for so many ranks in each of so many stages: rows are split where that was asked for
/// and a layer has several ranks.
Mesh resized(Mesh mesh, int64_t ranks, int64_t stages);

/// How often the ranks exchange pieces in a call: of a sum those of the addends and those of the
/// result, in a gather those that they have, in a message what is sent. 0 in other calls.
int exchangesOf(const Call& call);

/// Bytes that a rank sends in a call with this cost: (ranks - 1) / ranks of all in each exchange,
/// or all of a message.
double collectiveBytes(const Call& call, const CostValues& cost, int64_t ranks);

/// Seconds of a collective call or a message with this cost, all of which is the sender's; nothing
/// for other calls. An exchange takes
/// log2(ranks) steps (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
/// Operations in MPICH", 2005).
std::optional<double> collectiveSeconds(const Call& call, const CostValues& cost, int64_t ranks,
                                        const Link& link);

}  // namespace lathe::cli
