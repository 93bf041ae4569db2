// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/read_pattern.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/device/panel_kernels.h"
#include "backends/cpu/device/quantized_operands.h"
#include "backends/cpu/device/read_memory.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kSlices = 8;  // of a thread's memory
constexpr int kRounds = 8, kMostRounds = 16;
constexpr double kCalm = 0.12;  // rates that vary less were measured undisturbed

// Not sorted in place: the rounds' order pairs the patterns.
double middleOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<double> ratesOf(const std::vector<ReadRound>& rounds, size_t pattern) {
  std::vector<double> rates;
  for (const ReadRound& round : rounds) rates.push_back(round[pattern]);
  return rates;
}

// One row of zeros times panels of weights, as decoding multiplies them: `streams` places of memory
// `gap` bytes apart, and in each of them one panel behind the other.
class DecodeWalk {
 public:
  explicit DecodeWalk(KernelIsa isa)
      : pairs_(panelKernels(isa).bf16[0]),
        bytes_(quantizedKernels(isa).int8[0]),
        chunk_(quantizedKernels(isa).chunk) {}

  void pairs(const char* base, int64_t gap, const ReadPattern& pattern) const {
    panels(gap, [&](int64_t first, int64_t size) {
      alignas(64) float acc[kMaxReadStreams][kPanelColumns] = {};
      const int64_t turn = pattern.streams == 1 ? size : kPanelBlockBytes;
      for (int64_t at = 0; at < size; at += turn)
        for (int s = 0; s < pattern.streams; ++s)
          pairs_(kZeros, 0, base + s * gap + first + at, turn / kPanelBlockBytes, pattern.prefetch,
                 acc[s]);
    });
  }
  void bytes(const char* base, int64_t gap, const ReadPattern& pattern) const {
    panels(gap, [&](int64_t first, int64_t size) {
      alignas(64) float acc[kMaxReadStreams][kPanelColumns] = {};
      QuantizedPanel p;
      p.scale = kZeros;
      p.depth = p.block = size / kPanelColumns;
      p.chunk = chunk_;
      p.prefetch = pattern.prefetch;
      const int64_t count = ceilDiv(p.depth, chunk_);
      const int64_t turn = chunksOfTurn(pattern.streams, count, chunk_ * kPanelColumns);
      for (int64_t chunk = 0; chunk < count; chunk += turn)
        for (int s = 0; s < pattern.streams; ++s) {
          p.q = base + s * gap + first;
          bytes_(p, {kZeros}, chunk, std::min(count, chunk + turn), acc[s]);
        }
    });
  }

 private:
  static constexpr int64_t kPanelBytes = 16 * kPage;  // about as many rows as layers have
  alignas(64) static constexpr char kZeros[kPanelBytes / kPanelColumns * 4] = {};

  template <class Body>
  static void panels(int64_t gap, Body body) {
    const int64_t size = std::min(gap, kPanelBytes);
    for (int64_t first = 0; first + size <= gap; first += size) body(first, size);
  }

  PanelFn pairs_;
  QuantizedPanelFn bytes_;
  int64_t chunk_;
};

}  // namespace

const std::vector<ReadPattern>& readPatterns() {
  static const std::vector<ReadPattern> patterns = {
      ReadPattern{}, {1, 0}, {1, 1024}, {4, 0}, {kMaxReadStreams, 1024}};
  return patterns;
}

size_t chooseReadPattern(const std::vector<ReadRound>& rounds, double gain) {
  size_t chosen = 0;
  double best = 0;
  for (size_t pattern = 1; !rounds.empty() && pattern < rounds[0].size(); ++pattern) {
    std::vector<double> ratios;
    for (const ReadRound& round : rounds) ratios.push_back(round[pattern] / round[0]);
    const auto won =
        std::count_if(ratios.begin(), ratios.end(), [&](double ratio) { return ratio >= gain; });
    const double middle = middleOf(ratios);
    if (size_t(won) * 4 < ratios.size() * 3 || middle <= best) continue;
    chosen = pattern;
    best = middle;
  }
  return chosen;
}

double spreadOf(const std::vector<ReadRound>& rounds, size_t pattern) {
  const std::vector<double> rates = ratesOf(rounds, pattern);
  const double best = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
  return best > 0 ? 1 - middleOf(rates) / best : 0;
}

int64_t slicePages(int64_t bytes, int threads) {
  return std::max<int64_t>(kMaxReadStreams, bytes / kPage / threads / kSlices);
}

MeasuredPattern measureReadPattern(ThreadPool& pool, KernelIsa isa, double gain) {
  constexpr int64_t kLeast = int64_t(48) << 20, kMost = int64_t(256) << 20;
  const int64_t bytes = std::clamp(twiceLastCache(), kLeast, kMost);
  // A slice is read at a time, and the next one by the next pattern: what is read has been away
  // from the caches for as long as the others took. An odd number of pages between streams, so that
  // they do not meet in the same sets of a cache.
  const int64_t inSlice = slicePages(bytes, pool.threads()), pages = kSlices * inSlice;
  Pages memory(pages * pool.threads() * kPage + 2 * kPage);  // prefetches stay inside
  pool.run(pool.threads(), [&](int64_t index, int) {
    std::memset(memory.data() + index * pages * kPage, int(index) + 1, size_t(pages * kPage));
  });
  const DecodeWalk walk(isa);
  int64_t slice = 0;
  auto secondsOf = [&](const ReadPattern& pattern, bool quantized) {
    const int64_t gap = ((inSlice / pattern.streams - 1) | 1) * kPage;
    const int64_t from = slice++ % kSlices * inSlice;
    const double start = secondsNow();
    pool.run(pool.threads(), [&](int64_t index, int) {
      const char* base = memory.data() + (index * pages + from) * kPage;
      quantized ? walk.bytes(base, gap, pattern) : walk.pairs(base, gap, pattern);
    });
    return (secondsNow() - start) / double(gap * pattern.streams * pool.threads());
  };
  std::vector<ReadRound> rounds;
  size_t chosen = 0;
  do {
    for (int i = 0; i < kRounds; ++i) {
      ReadRound& round = rounds.emplace_back();
      for (const ReadPattern& pattern : readPatterns())
        round.push_back(2 / (secondsOf(pattern, false) + secondsOf(pattern, true)));
    }
    chosen = chooseReadPattern(rounds, gain);
  } while (spreadOf(rounds, chosen) > kCalm && rounds.size() < kMostRounds);
  const std::vector<double> rates = ratesOf(rounds, chosen);
  MeasuredPattern made{readPatterns()[chosen], spreadOf(rounds, chosen)};
  made.pattern.bytesPerSecond = *std::max_element(rates.begin(), rates.end());
  return made;
}

}  // namespace lathe::cpu
