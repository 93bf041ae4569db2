// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a thread walks weights in memory: measured, since no feature bit tells it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/cpu/device/cpu_features.h"
#include "backends/cpu/device/scratch.h"
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

/// Weights as they are stored. Each kind has a pattern of its own, since its kernels do other work
/// between two lines: Zen 3 reads f32 half as fast again in one stream, and int8 alike in both.
enum class WeightKind { F32, BF16, Int8, Int4 };
inline constexpr std::array kWeightKinds{WeightKind::F32, WeightKind::BF16, WeightKind::Int8,
                                         WeightKind::Int4};
/// "f32", "bf16", "int8", "int4"
std::string_view nameOf(WeightKind kind);

class ReadPatterns {
 public:
  ReadPattern& operator[](WeightKind kind) { return patterns_[size_t(kind)]; }
  const ReadPattern& operator[](WeightKind kind) const { return patterns_[size_t(kind)]; }

 private:
  std::array<ReadPattern, kWeightKinds.size()> patterns_;
};

/// Panels as threads read them: each thread has contiguous ones of its own, as groups of `streams`
/// that are far apart and read at the same time. A thread that is done takes groups of others, so
/// that a processor that is slow or has other work holds up none.
class PanelGroups {
 public:
  struct Group {
    int64_t first, stride;  ///< panels first, first + stride, ...
    int count;              ///< up to `streams`; 0: none
  };
  PanelGroups(int64_t panels, int threads, int streams)
      : panels_(panels),
        threads_(threads),
        perThread_(ceilDiv(ceilDiv(panels, threads), int64_t(streams))) {}

  /// Those of thread t come t-th, so that the shares of a dynamic region are the threads'. The last
  /// ones of a thread that has fewer panels than others are empty.
  int64_t count() const { return perThread_ * threads_; }
  /// The next group that a worker takes; an empty one when all are taken.
  Group next(ThreadPool::Claims& claims) const {
    Group group{};
    for (int64_t index; group.count == 0 && (index = claims.next()) >= 0;) group = (*this)[index];
    return group;
  }
  Group operator[](int64_t index) const {
    const int64_t thread = index / perThread_, group = index % perThread_;
    const int64_t begin = panels_ * thread / threads_, end = panels_ * (thread + 1) / threads_;
    return {begin + group, perThread_,
            int(ceilDiv(std::max<int64_t>(0, end - begin - group), perThread_))};
  }

 private:
  int64_t panels_, threads_, perThread_;
};

/// By how much another pattern than the default has to be faster.
inline constexpr double kPatternGain = 1.04;
/// The patterns that are compared; the default is the first.
const std::vector<ReadPattern>& readPatterns();

/// Rates of all patterns, measured one after the other. What disturbs a round disturbs its
/// patterns alike, or one of them.
using ReadRound = std::vector<double>;
/// Those of each kind of weights.
using ReadRounds = std::array<std::vector<ReadRound>, kWeightKinds.size()>;
/// The index of the pattern to take: the default, unless another was faster in five rounds of eight
/// and its upper quartile is so by `gain`; then the one with the best upper quartile.
size_t chooseReadPattern(const std::vector<ReadRound>& rounds, double gain);
/// How far the rates of a pattern vary: the middle one's distance from the best, as a share of it.
double spreadOf(const std::vector<ReadRound>& rounds, size_t pattern);

/// Pages that a thread reads at a time where `threads` share `bytes`: for every stream one at
/// least.
int64_t slicePages(int64_t bytes, int threads);

struct ChosenPatterns {
  ReadPatterns patterns;  ///< with their best rates
  double spread = 0;      ///< the largest of theirs
};
ChosenPatterns choosePatterns(const ReadRounds& rounds, double gain);
/// Rounds with the kernels of one row, in 0.15 s; in twice that, if the rates of the patterns that
/// they choose vary much. A loop that only reads would not tell: beside the products of a kernel,
/// instructions that fetch ahead halve its rate on some processors.
ReadRounds measureReadPatterns(ThreadPool& pool, KernelIsa isa, double gain);

}  // namespace lathe::cpu
