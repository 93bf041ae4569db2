// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one kernel on the host: blocks over operating-system threads, a fiber per CUDA thread.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/hostexec/launch_history.h"
#include "backends/cuda/hostexec/memory_map.h"
#include "backends/cuda/hostexec/module.h"
#include "backends/cuda/hostexec/options.h"

namespace lathe::cuda::host {

struct Shape3 {
  uint32_t x = 1, y = 1, z = 1;
};

/// What a kernel may reach through one of its parameters.
struct Extent {
  ptrdiff_t offset = 0;  ///< in its buffer
  ptrdiff_t bytes = -1;  ///< negative: as much as was allocated
  std::string_view name = "parameter";
};

/// Zero words that a kernel uses as counters and leaves zero.
struct Counters {
  const char* from = nullptr;
  size_t bytes = 0;
  std::string_view name = "counters";
};

struct LaunchRequest {
  Shape3 grid;
  uint32_t threads = 1;
  uint32_t cluster = 1;
  size_t sharedBytes = 0;
  /// May start before the previous kernel has ended.
  bool overlaps = false;
  /// Points to each parameter's value.
  void** arguments = nullptr;
  /// By parameter; one that has an extent points to its own view of the memory: number 1 for the
  /// first parameter.
  std::vector<Extent> extents = {};
  Counters counters = {};
  Options options;
};

/// Bytes that kernels moved between global memory and the chip; `distinct` counts every byte once
/// per launch. Only with Options::count in check mode.
struct Traffic {
  uint64_t read = 0, written = 0, distinctRead = 0, distinctWritten = 0;
};

struct Result {
  int errors = 0;
  std::string report;  ///< one line per error, at most 16
  uint64_t switches = 0, barriers = 0, warpOps = 0;
  uint64_t bankConflicts = 0;  ///< of ldmatrix: rows beyond the first in one bank group
  Traffic traffic;
};

/// `history`: of the launches into this memory. Throws Error (InvalidArgument) for a request that
/// no GPU accepts; what goes wrong on the device is in the result.
Result launch(const Kernel& kernel, const LaunchRequest& request, MemoryMap& memory,
              LaunchHistory& history);

}  // namespace lathe::cuda::host
