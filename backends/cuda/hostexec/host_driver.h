// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver of host execution, with what only it can tell.
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device/driver.h"
#include "backends/cuda/hostexec/launch.h"
#include "backends/cuda/hostexec/options.h"

namespace lathe::cuda {

/// What one launch did. In check mode with Options::count its traffic is counted.
struct LaunchRecord {
  std::string kernel;
  host::Traffic traffic;
  uint64_t barriers = 0, warpOps = 0, switches = 0, bankConflicts = 0;
};

class HostDriver : public Driver {
 public:
  /// Launches since the last call, oldest first. Recorded only with Options::count.
  virtual std::vector<LaunchRecord> takeLaunches() = 0;
  /// For the launches to come; the mode stays what it was at opening.
  virtual void setOptions(const host::Options& options) = 0;
  virtual const host::Options& options() const = 0;
};

/// As openHost() of driver.h, with the options given instead of read from LATHE_CUDA_HOST. `cache`:
/// as for host::HostCompiler.
std::unique_ptr<HostDriver> openHost(const host::Options& options, const std::string& cache = "");

}  // namespace lathe::cuda
