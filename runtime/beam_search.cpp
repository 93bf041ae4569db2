// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/beam_search.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "lathe/runtime/error.h"
#include "lathe/runtime/sampler.h"

namespace lathe {
namespace {

struct Beam {
  std::vector<int> ids;
  double logProbability = 0;
};

struct Extension {
  double logProbability;
  int64_t beam;
  int id;
};

double scoreOf(double logProbability, size_t count, double penalty) {
  return logProbability / std::pow(double(count), penalty);
}

// The best of all beams, best first; among equals the earlier beam and the lower id.
std::vector<Extension> bestExtensions(std::span<const float> logits, const std::vector<Beam>& beams,
                                      size_t rows, size_t count,
                                      std::span<const int64_t> excluded) {
  const size_t vocab = logits.size() / rows;
  std::vector<Extension> all;
  std::vector<float> row(vocab);
  for (size_t beam = 0; beam < beams.size(); ++beam) {
    std::ranges::copy(logits.subspan(beam * vocab, vocab), row.begin());
    exclude(excluded, row);
    for (const Choice& choice : likeliestLogProbabilities(row, int64_t(count)))
      if (std::isfinite(choice.probability))
        all.push_back(
            {beams[beam].logProbability + choice.probability, int64_t(beam), int(choice.id)});
  }
  std::ranges::sort(all, [](const Extension& a, const Extension& b) {
    return std::tuple(-a.logProbability, a.beam, a.id) <
           std::tuple(-b.logProbability, b.beam, b.id);
  });
  if (all.size() > count) all.resize(count);
  return all;
}

}  // namespace

std::vector<BeamText> beamSearch(BatchGenerator& generator, std::span<const int> prompt,
                                 const BeamSearchOptions& options) {
  const int64_t length = int64_t(prompt.size()), most = generator.maxPositions();
  auto require = [](bool good, const std::string& expected) {
    if (!good) throw Error(ErrorCode::InvalidArgument, expected);
  };
  require(options.newTokens >= 1,
          "expected at least 1 token to add, got " + std::to_string(options.newTokens));
  require(std::isfinite(options.lengthPenalty), "expected a finite length penalty");
  require(options.forcedTokens >= 0 && options.forcedTokens <= length,
          "expected from 0 to " + std::to_string(length) + " forced tokens, got " +
              std::to_string(options.forcedTokens));
  require(length <= most, "the prompt has " + std::to_string(length) +
                              " tokens, the model takes at most " + std::to_string(most) +
                              " positions");
  const int64_t count = std::min(options.newTokens, most - length + 1);
  const size_t width = size_t(std::max<int64_t>(options.beams, 0));
  generator.reserve(options.beams, std::max(length, length + count - 1));
  std::span<const float> logits = generator.prefill(
      std::vector<std::vector<int>>(width, std::vector<int>(prompt.begin(), prompt.end())));

  std::vector<Beam> beams(1);
  std::vector<BeamText> ended;
  auto putAside = [&](std::vector<int> ids, double logProbability, bool isEnded) {
    const double score =
        scoreOf(logProbability, ids.size() + size_t(options.forcedTokens), options.lengthPenalty);
    const auto place = std::ranges::upper_bound(ended, score, std::greater(), &BeamText::score);
    ended.insert(place, {std::move(ids), score, isEnded});
    if (ended.size() > width) ended.pop_back();
  };
  for (int64_t step = 1; step <= count; ++step) {
    // Twice as many as are kept, so that enough go on where some end.
    std::vector<Extension> best = bestExtensions(logits, beams, width, 2 * width, options.excluded);
    std::vector<Beam> next;
    std::vector<int64_t> rows;
    for (size_t rank = 0; rank < best.size() && next.size() < width; ++rank) {
      const Extension& extension = best[rank];
      std::vector<int> ids = beams[size_t(extension.beam)].ids;
      ids.push_back(extension.id);
      if (std::ranges::find(options.endIds, extension.id) == options.endIds.end()) {
        next.push_back({std::move(ids), extension.logProbability});
        rows.push_back(extension.beam);
      } else if (rank < width) {
        putAside(std::move(ids), extension.logProbability, true);
      }
    }
    beams = std::move(next);
    if (beams.empty() || step == count) break;
    const double attainable = scoreOf(beams[0].logProbability, size_t(step + options.forcedTokens),
                                      options.lengthPenalty);
    if (ended.size() == width && ended.back().score >= attainable) return ended;
    // Rows beyond the beams that there are follow the first.
    rows.resize(width, rows[0]);
    std::vector<int> ids;
    for (size_t row = 0; row < width; ++row)
      ids.push_back(beams[row < beams.size() ? row : 0].ids.back());
    generator.gather(rows);
    logits = generator.next(ids);
  }
  for (Beam& beam : beams) putAside(std::move(beam.ids), beam.logProbability, false);
  return ended;
}

}  // namespace lathe
