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
constexpr int64_t kSlices = 16;  // of a thread's memory
constexpr int kRounds = 8, kMostRounds = 16;
constexpr double kCalm = 0.12;  // rates that vary less were measured undisturbed

double middleOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Other programs make a rate lower, and in most moments some do: three quarters may be too low. A
// few may be too high, where those of a neighbour pause.
double undisturbed(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates.empty() ? 0 : rates[(rates.size() - 1) * 3 / 4];
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
      : panels_(panelKernels(isa)), quantized_(quantizedKernels(isa)) {}

  void walk(WeightKind kind, const char* base, int64_t gap, const ReadPattern& pattern) const {
    for (int64_t first = 0, size = 0; first < gap; first += size) {
      size = std::min(gap - first, kPanelBytes);
      alignas(64) float acc[kMaxReadStreams][kPanelColumns] = {};
      const Places at{base + first, gap, size};
      switch (kind) {
        case WeightKind::F32:
          floats(panels_.f32[0], at, pattern, acc);
          break;
        case WeightKind::BF16:
          floats(panels_.bf16[0], at, pattern, acc);
          break;
        case WeightKind::Int8:
          quantized(8, at, pattern, acc);
          break;
        case WeightKind::Int4:
          quantized(4, at, pattern, acc);
          break;
      }
    }
  }

 private:
  static constexpr int64_t kPanelBytes = 16 * kPage;  // about as many rows as layers have
  static constexpr int64_t kInt4Group = 32;           // as most models in 4 bits have them
  // A row of the longest panel, in f32 or in fixed point, and its scales.
  alignas(64) static constexpr char kZeros[2 * kPanelBytes / kPanelColumns * 4] = {};
  using Sums = float (&)[kMaxReadStreams][kPanelColumns];
  // Of a panel of each stream.
  struct Places {
    const char* base;
    int64_t gap, size;
  };

  static void floats(PanelFn kernel, const Places& at, const ReadPattern& pattern, Sums acc) {
    const int64_t turn = pattern.streams == 1 ? at.size : kPanelBlockBytes;
    for (int64_t from = 0; from < at.size; from += turn)
      for (int s = 0; s < pattern.streams; ++s)
        kernel(kZeros, 0, at.base + s * at.gap + from, turn / kPanelBlockBytes, pattern.prefetch,
               acc[s]);
  }

  // Of a row in 8 bits where there is such a kernel: others may be slower than memory.
  void quantized(int bits, const Places& at, const ReadPattern& pattern, Sums acc) const {
    const auto& bytes = quantized_.byteRows(bits);
    const QuantizedPanelFn kernel = bytes       ? bytes->panel[0]
                                    : bits == 8 ? quantized_.int8[0]
                                                : quantized_.int4[0];
    QuantizedPanel p;
    p.scale = kZeros;
    p.depth = at.size * 8 / (bits * kPanelColumns);
    p.prefetch = pattern.prefetch;
    // Columns in int8 have one scale; int4 has one for each group.
    if (bits == 8) {
      p.block = p.depth;
      p.chunk = bytes ? kByteChunk : quantized_.chunk;
    } else {
      p.bf16 = true;
      p.block = p.chunk = kInt4Group;
    }
    const int64_t count = ceilDiv(p.depth, p.chunk);
    const int64_t turn = chunksOfTurn(pattern.streams, count, p.chunk * kPanelColumns * bits / 8);
    for (int64_t chunk = 0; chunk < count; chunk += turn)
      for (int s = 0; s < pattern.streams; ++s) {
        p.q = at.base + s * at.gap;
        kernel(p, {kZeros}, chunk, std::min(count, chunk + turn), acc[s]);
      }
  }

  const PanelKernels& panels_;
  const QuantizedKernels& quantized_;
};

}  // namespace

std::string_view nameOf(WeightKind kind) {
  constexpr std::string_view names[] = {"f32", "bf16", "int8", "int4"};
  return names[size_t(kind)];
}

const std::vector<ReadPattern>& readPatterns() {
  static const std::vector<ReadPattern> patterns = {
      ReadPattern{}, {1, 0}, {1, 1024}, {4, 0}, {kMaxReadStreams, 1024}, {2, 4096}};
  return patterns;
}

size_t chooseReadPattern(const std::vector<ReadRound>& rounds, double gain) {
  if (rounds.empty()) return 0;
  size_t chosen = 0;
  double best = gain * undisturbed(ratesOf(rounds, 0));
  for (size_t pattern = 1; pattern < rounds[0].size(); ++pattern) {
    const auto won = std::ranges::count_if(
        rounds, [&](const ReadRound& round) { return round[pattern] > round[0]; });
    const double rate = undisturbed(ratesOf(rounds, pattern));
    if (size_t(won) * 8 < rounds.size() * 5 || rate < best) continue;
    chosen = pattern;
    best = rate;
  }
  return chosen;
}

double spreadOf(const std::vector<ReadRound>& rounds, size_t pattern) {
  const std::vector<double> rates = ratesOf(rounds, pattern);
  const double best = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
  return best > 0 ? 1 - middleOf(rates) / best : 0;
}

ChosenPatterns choosePatterns(const ReadRounds& rounds, double gain) {
  ChosenPatterns made;
  for (WeightKind kind : kWeightKinds) {
    const std::vector<ReadRound>& measured = rounds[size_t(kind)];
    if (measured.empty()) continue;
    const size_t chosen = chooseReadPattern(measured, gain);
    ReadPattern& pattern = made.patterns[kind] = readPatterns()[chosen];
    pattern.bytesPerSecond = std::ranges::max(ratesOf(measured, chosen));
    made.spread = std::max(made.spread, spreadOf(measured, chosen));
  }
  return made;
}

int64_t slicePages(int64_t bytes, int threads) {
  return std::max<int64_t>(kMaxReadStreams, bytes / kPage / threads / kSlices);
}

ReadRounds measureReadPatterns(ThreadPool& pool, KernelIsa isa, double gain) {
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
  auto rateOf = [&](WeightKind kind, const ReadPattern& pattern) {
    const int64_t gap = ((inSlice / pattern.streams - 1) | 1) * kPage;
    const int64_t from = slice++ % kSlices * inSlice;
    const double start = secondsNow();
    pool.run(pool.threads(), [&](int64_t index, int) {
      const char* base = memory.data() + (index * pages + from) * kPage;
      walk.walk(kind, base, gap, pattern);
    });
    return double(gap * pattern.streams * pool.threads()) / (secondsNow() - start);
  };
  ReadRounds rounds;
  do {
    for (int i = 0; i < kRounds; ++i)
      for (WeightKind kind : kWeightKinds) {
        ReadRound& round = rounds[size_t(kind)].emplace_back();
        for (const ReadPattern& pattern : readPatterns()) round.push_back(rateOf(kind, pattern));
      }
  } while (rounds[0].size() < kMostRounds && choosePatterns(rounds, gain).spread > kCalm);
  return rounds;
}

}  // namespace lathe::cpu
