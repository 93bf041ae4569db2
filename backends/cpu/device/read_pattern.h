// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a thread walks weights in memory: measured, since no feature bit tells it.
#include <cstdint>
#include <vector>

#include "backends/cpu/device/cpu_features.h"
#include "lathe/runtime/thread_pool.h"

namespace lathe::cpu {

/// Several streams with fetches a little ahead are the default: they are the fastest on most
/// processors, and cost little on those that read one stream as fast.
struct ReadPattern {
  int streams = 4;          ///< sequential streams at the same time
  int64_t prefetch = 1024;  ///< bytes ahead that are fetched by instructions; 0: none
  double bytesPerSecond = 0;

  bool sameWay(const ReadPattern& other) const {
    return streams == other.streams && prefetch == other.prefetch;
  }
};
/// Streams that kernels walk at most.
inline constexpr int kMaxReadStreams = 8;

/// The patterns that are compared; the default is the first.
const std::vector<ReadPattern>& readPatterns();

/// Rates of all patterns, measured one after the other. What disturbs a round disturbs its
/// patterns alike, or one of them, so that rounds are judged one by one.
using ReadRound = std::vector<double>;
/// The index of the pattern to take: the default, unless in three rounds of four another was
/// faster by `gain`; then the one with the best ratio to it in the middle of all rounds.
size_t chooseReadPattern(const std::vector<ReadRound>& rounds, double gain);
/// How far the rates of a pattern vary: the middle one's distance from the best, as a share of it.
double spreadOf(const std::vector<ReadRound>& rounds, size_t pattern);

/// Pages that a thread reads at a time where `threads` share `bytes`: for every stream one at
/// least.
int64_t slicePages(int64_t bytes, int threads);

struct MeasuredPattern {
  ReadPattern pattern;  ///< with its best rate
  double spread = 0;
};
/// Measures with the kernels of one row, in 0.1 s; in twice that, if the rates vary much. A loop
/// that only reads would not tell: beside the products of a kernel, instructions that fetch ahead
/// halve its rate on some processors.
MeasuredPattern measureReadPattern(ThreadPool& pool, KernelIsa isa, double gain);

}  // namespace lathe::cpu
