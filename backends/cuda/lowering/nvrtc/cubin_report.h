// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a compiled kernel takes of a multiprocessor, read from the cubin itself: no tool of a CUDA
// toolkit and no GPU is needed.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lathe::cuda {

struct KernelResources {
  int registers = 0;        ///< per thread
  int64_t spillStores = 0;  ///< bytes per thread, from the compiler's log
  int64_t spillLoads = 0;
  int64_t stackBytes = 0;                  ///< local memory per thread, spills included
  int64_t sharedBytes = 0;                 ///< static, per block
  int maxThreads = 0;                      ///< of __launch_bounds__; 0: none
  std::array<int, 3> cluster = {0, 0, 0};  ///< of __cluster_dims__; 0: none
};

/// Kernels by name. `log` is what ptxas -v said, for the spills. Throws Error (InvalidFile) for
/// what is no sound cubin.
std::map<std::string, KernelResources> readCubin(std::string_view cubin, std::string_view log);

/// Limits of compute capability 9.0 (CUDA C++ programming guide, "Compute Capabilities").
struct Hopper {
  static constexpr int registers = 65536;             ///< per multiprocessor and block
  static constexpr int warps = 64;                    ///< per multiprocessor
  static constexpr int blocks = 32;                   ///< per multiprocessor
  static constexpr int64_t sharedBytes = 228 << 10;   ///< per multiprocessor
  static constexpr int64_t blockShared = 227 << 10;   ///< per block, static and dynamic
  static constexpr int64_t staticShared = 48 << 10;   ///< per block
  static constexpr int64_t reservedShared = 1 << 10;  ///< per block, for the system
};

struct Occupancy {
  int blocks = 0;  ///< per multiprocessor; 0: cannot be launched
  int warps = 0;
  std::string limit;  ///< "registers", "shared memory", "warps" or "blocks"
};

/// How many blocks of `threads` threads run on a multiprocessor of compute capability 9.0 at a
/// time.
Occupancy occupancy(const KernelResources& kernel, int threads, int64_t dynamicShared);

}  // namespace lathe::cuda
