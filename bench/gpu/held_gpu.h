// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPU of a child process (isolated.h). A context goes with the last driver that uses it and
// takes a third of a second to make: a child that opens a session for every item holds one driver
// from its first item to its end.
#include <memory>
#include <string>

#include "backends/cuda/device/driver.h"

namespace lathe::cuda {

/// Null for "host". Never before a fork: a child cannot use its parent's context.
inline Driver* heldGpu(const std::string& device) {
  static const std::unique_ptr<Driver> held = device == "gpu" ? openGpu() : nullptr;
  return held.get();
}

}  // namespace lathe::cuda
