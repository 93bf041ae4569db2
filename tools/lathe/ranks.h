// SPDX-License-Identifier: Apache-2.0
#pragma once
// --ranks: one model on several processes or threads.
#include <functional>
#include <memory>

#include "lathe/runtime/communicator.h"

namespace CLI {
class App;
}

namespace lathe::cli {

/// Adds --rank-threads.
void addRankThreads(CLI::App& parser, bool& threads);

/// The first rank's end. The others call `serve` with theirs: threads of this process, for which
/// the last copy of what is returned waits, or the processes of an MPI job, which end here. An
/// Error that leaves `serve` ends the job: calls of the other ranks throw its text.
/// `stopsInOrder`: as of becomeLauncher().
std::shared_ptr<Communicator> startRanks(int64_t count, bool threads,
                                         std::function<void(std::shared_ptr<Communicator>)> serve,
                                         bool stopsInOrder = false);

/// Rank 0 tells how many threads each rank of several processes has. All of them call it when they
/// have opened their sessions.
void noteThreads(Communicator& ranks);

}  // namespace lathe::cli
