// SPDX-License-Identifier: Apache-2.0
#pragma once
// How kernels run on the host: what LATHE_CUDA_HOST says, for example "check,random,seed=7".
#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::cuda::host {

/// How a kernel text is compiled.
enum class Mode {
  Fast,   ///< optimised; finds wrong numbers, deadlocks, divergence, misalignment, unwaited copies
  Check,  ///< every access checked: races, bounds, initialisation; reports name generated lines
  Asan,   ///< AddressSanitizer; its runtime must be loaded in the process
  Debug,  ///< not optimised, for gdb
};
/// When asynchronous copies land.
enum class Async { Eager, Late, Random };
/// In which order blocks start and threads run.
enum class Order { Forward, Reverse, Random };

struct Options {
  Mode mode = Mode::Fast;
  Async async = Async::Late;
  Order order = Order::Forward;
  uint64_t seed = 1;
  /// Check mode: another thread runs after about this many accesses; 0: only at rendezvous.
  unsigned preemptEvery = 0;
  /// Operating-system threads for blocks: 0 for the process's pool. Check and debug use one.
  int threads = 0;
  /// Keep a record of every launch; in check mode also count the traffic of global memory.
  bool count = false;
};

/// Words separated by commas: fast | check | asan | debug, eager | late, forward | reverse |
/// random, count, seed=N, preempt=N, threads=N. "random" means all three kinds of chance. Throws
/// Error (InvalidArgument) for any other and for one that the mode has no use for.
Options parseOptions(std::string_view text);
std::string_view nameOf(Mode mode);

}  // namespace lathe::cuda::host
