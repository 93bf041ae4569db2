// SPDX-License-Identifier: Apache-2.0
#pragma once
// mpirun, which starts the ranks of a job, and how the job is asked to stop.
#include <cstdint>

namespace lathe::cli {

/// For verbs that run a model, before they do anything: with several ranks that are to be
/// processes, and none of them yet, this process becomes mpirun and starts them. `stopsInOrder`: it
/// stays mpirun's parent, takes SIGINT and SIGTERM and passes them on to the ranks as a request,
/// where mpirun would end them within a second; then it ends with mpirun's status. Throws Error
/// (Unsupported) naming the package where mpirun is missing.
void becomeLauncher(int64_t count, bool threads, bool stopsInOrder = false);

/// On a rank that was started so: the first takes such a request as SIGTERM, the others leave it
/// to that one.
void heedPassedStops(bool isFirst);

}  // namespace lathe::cli
