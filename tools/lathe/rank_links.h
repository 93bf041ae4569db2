// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ranks pay for talking to each other, before anybody has.
#include <optional>
#include <string>

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
/// "tp=8": the number of ranks. Throws Error (InvalidArgument).
int64_t parseMesh(const std::string& text);

/// Seconds of a collective call with this cost; nothing for other calls. A sum is an exchange of
/// pieces and one of results, a gather one of pieces, each in log2(ranks) steps: together they move
/// (ranks - 1) / ranks of the bytes once or twice (Thakur, Rabenseifner and Gropp, "Optimization of
/// Collective Communication Operations in MPICH", 2005).
std::optional<double> collectiveSeconds(const Call& call, const CostValues& cost, int64_t ranks,
                                        const Link& link);

}  // namespace lathe::cli
