// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the machine could do at best, measured in the same process as the thing that is judged.
#include <cstdint>
#include <vector>

#include "backends/cpu/device/cpu_features.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

/// Which multiply-add unit a peak belongs to.
enum class PeakKind { F32Fma, Bf16Dot, AmxBf16, ByteDot, AmxByte };

/// So many rounds that the fastest of `repeats` passes over them took about `least` seconds, and
/// how long that was. One pass that was interrupted does not stand for a long one.
struct TimedRounds {
  int64_t rounds = 0;
  double seconds = 0;
};
TimedRounds timeRounds(FunctionRef<double(int64_t rounds)> pass, int repeats, double least);

/// FLOP/s (a multiply-add counts two) of a loop on registers only, all threads of `pool` at once:
/// best of `repeats` runs of at least `seconds`. Throws Error(Unsupported) if the CPU lacks it.
double measurePeak(PeakKind kind, ThreadPool& pool, int repeats = 5, double seconds = 5e-3);
/// The unit that matmuls of `bf16` or f32 data use on this machine.
PeakKind bestPeakKind(bool bf16, KernelIsa isa = KernelIsa::current());
/// Of rows that are rounded to 8 bits (byte_rows.h), before: bf16 or f32.
PeakKind bytePeakKind(bool bf16, KernelIsa isa = KernelIsa::current());

/// Read bandwidth of one way of walking memory.
struct ReadRoof {
  int streams = 1;        ///< concurrent sequential streams per thread
  bool prefetch = false;  ///< with software prefetch
  double bytesPerSecond = 0;
};
/// All ways tried, fastest first.
struct ReadRoofs {
  std::vector<ReadRoof> tried;
  int64_t bufferBytes = 0;
  double best() const { return tried.empty() ? 0 : tried.front().bytesPerSecond; }
};
/// Reads a buffer of `bytes` (lowered to a quarter of the memory that the system could give, but at
/// least twice the last cache) with 1 to 16 streams per thread, with and without prefetch; best of
/// `repeats` passes each.
ReadRoofs measureReadRoofs(ThreadPool& pool, int64_t bytes = int64_t(1) << 30, int repeats = 3);

}  // namespace lathe::cpu
