// SPDX-License-Identifier: Apache-2.0
// Which kernels of attention a call gets: the candidates, a model of their time, and one for every
// range of the symbols.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cuda/lowering/attention/attention_blocks.h"
#include "backends/cuda/lowering/kernel/hopper_facts.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

constexpr int kSharedPerProcessor = 233472;
constexpr int kDecodeWarps = 8;

// Tiles that fit 255 registers without spilling, by the deeper of keys and values.
std::vector<AttentionChoice> tiledChoices(const AttentionKernel& a) {
  struct Tile {
    int depth, warps, rowTiles, keys;
  };
  static constexpr Tile kTiles[] = {{64, 4, 2, 64},  {128, 4, 2, 32}, {128, 8, 1, 64},
                                    {128, 4, 1, 64}, {256, 8, 1, 32}, {256, 4, 1, 32}};
  std::vector<AttentionChoice> choices;
  for (const Tile& tile : kTiles)
    for (bool packs : {false, true}) {
      if (std::max(a.depth, a.valueDepth) > tile.depth || (packs && groupOf(a) == 1)) continue;
      AttentionChoice choice{AttentionMethod::Tiled, tile.warps, tile.rowTiles, tile.keys};
      choice.packsHeads = packs;
      choices.push_back(choice);
    }
  return choices;
}

// Where tiles fill more than half of the places once: splits whose waves are fuller, if any. Adding
// them up costs about a seventh.
int64_t splitsOfAWave(int64_t tiles, int64_t together) {
  int64_t best = 1;
  double least = 1;
  for (int64_t splits = 2; splits <= 8; ++splits) {
    const double waves = double((tiles * splits + together - 1) / together);
    if (waves / double(splits) * 1.15 >= least) continue;
    least = waves / double(splits) * 1.15;
    best = splits;
  }
  return best;
}

AttentionChoice splitChoice(const AttentionKernel& a, AttentionMethod method,
                            const AttentionSizes& sizes) {
  AttentionChoice choice;
  choice.method = method;
  // Few queries wait for memory: a tile of 16 keys for each of eight warps is under way at once.
  if (method == AttentionMethod::Decode) choice.warps = kDecodeWarps;
  const int64_t rows = rowsPerBlock(choice);
  choice.mostTiles = sizes.batch * a.keyHeads * ((sizes.queries * groupOf(a) + rows - 1) / rows);
  // As many blocks as run at once, and no split of fewer keys than pay for adding up.
  const int64_t together = int64_t(kMultiprocessors) * residentBlocks(choice);
  int64_t splits = together / std::max<int64_t>(choice.mostTiles, 1);
  if (splits == 1) splits = splitsOfAWave(choice.mostTiles, together);
  splits = std::min(splits, (sizes.keys + choice.leastKeys - 1) / choice.leastKeys);
  choice.mostSplits = int(std::clamp<int64_t>(splits, 1, kMostSplits));
  return choice;
}

// The one that the rule gives, and neighbours of it for measuring.
std::vector<AttentionChoice> splitChoices(const AttentionKernel& a, AttentionMethod method,
                                          const AttentionSizes& sizes) {
  std::vector<AttentionChoice> choices{splitChoice(a, method, sizes)};
  const AttentionChoice first = choices.front();
  if (first.mostSplits == 1) return choices;
  for (int warps : {first.warps, 4})
    for (int leastKeys : {first.leastKeys, 128, 512})
      for (int splits : {first.mostSplits, first.mostSplits / 2, first.mostSplits * 2}) {
        AttentionChoice c = first;
        c.warps = warps;
        c.leastKeys = leastKeys;
        c.mostSplits = int(std::clamp<int64_t>(splits, 1, kMostSplits));
        const bool isNew = std::ranges::none_of(choices, [&](const AttentionChoice& other) {
          return other.warps == c.warps && other.leastKeys == c.leastKeys &&
                 other.mostSplits == c.mostSplits;
        });
        if (isNew) choices.push_back(c);
      }
  return choices;
}

// As measured of cuDNN on an H200 at 4096 tokens; short prompts and its launches take more.
double librarySeconds(const AttentionKernel& a, const AttentionSizes& sizes) {
  const bool halves = a.causal != Causal::none && sizes.queries >= sizes.keys;
  const double products = 2.0 * double(sizes.batch * a.queryHeads * sizes.queries) *
                          double(sizes.keys * (a.depth + a.valueDepth)) * (halves ? 0.5 : 1);
  return kLaunchSeconds + 5e-6 + products / (a.depth <= 64 ? 340e12 : 477e12);
}

std::string nameOf(const AttentionKernel& a, const AttentionChoice& c) {
  return fmt::format("{}_tiled{}x{}x{}{}", a.name, c.warps, c.rowTiles, c.keys,
                     c.packsHeads ? "p" : "");
}

}  // namespace

double attentionSeconds(const AttentionKernel& a, const AttentionSizes& sizes,
                        const AttentionChoice& choice) {
  if (choice.method == AttentionMethod::Library) return librarySeconds(a, sizes);
  const double elementBytes = double(sizeOf(a.dtype)), depths = double(a.depth + a.valueDepth);
  const bool packs = choice.method != AttentionMethod::Tiled || choice.packsHeads;
  const int64_t heads = packs ? a.keyHeads : a.queryHeads;
  const int64_t rows = packs ? sizes.queries * groupOf(a) : sizes.queries;
  const int64_t perBlock = rowsPerBlock(choice), tiles = (rows + perBlock - 1) / perBlock;
  const int64_t splits =
      choice.method == AttentionMethod::Tiled
          ? 1
          : std::clamp<int64_t>(sizes.keys / choice.leastKeys, 1, choice.mostSplits);
  const double blocks = double(sizes.batch * heads * tiles * splits);
  // Blocks side by side on one processor; the last wave is seldom full.
  const double resident = std::clamp<double>(
      double(kSharedPerProcessor / (sharedBytes(a, choice) + 1024)), 1, residentBlocks(choice));
  const double waves = std::ceil(blocks / (kMultiprocessors * resident));
  const bool halves = a.causal != Causal::none && sizes.queries >= sizes.keys;
  const double keys = double(sizes.keys) / double(splits) * (halves ? 0.5 : 1);
  // Products per processor and second: two m16 tiles per warp share one read of the keys.
  const double rate = choice.method == AttentionMethod::Simt ? 20e12
                      : choice.rowTiles == 2                 ? 400e12
                                                             : 280e12;
  const double blockWork = 2.0 * double(perBlock) * keys * depths;
  const double work = waves * resident * blockWork / (rate / kMultiprocessors);
  const double bytes =
      double(sizes.batch) * elementBytes *
      (double(a.keyHeads * sizes.keys) * depths + double(a.queryHeads * sizes.queries) * depths);
  const double reach = std::min(1.0, blocks / kMultiprocessors);
  const double adding = splits > 1 ? 1.5e-6 + 2e-8 * double(splits) : 0;
  return kLaunchSeconds + adding + std::max(work, bytes / (kMemoryBandwidth * reach));
}

std::vector<AttentionChoice> attentionCandidates(const AttentionKernel& a,
                                                 const AttentionSizes& sizes) {
  std::vector<AttentionChoice> choices;
  if (whyNotTensorCores(a).empty()) {
    choices = tiledChoices(a);
    choices.push_back(splitChoice(a, AttentionMethod::Decode, sizes));
  } else {
    choices.push_back(splitChoice(a, AttentionMethod::Simt, sizes));
  }
  // The same with fewer splits, for measuring.
  if (choices.back().mostSplits > 1) {
    AttentionChoice fewer = choices.back();
    fewer.mostSplits = 1;
    choices.push_back(fewer);
  }
  std::erase_if(choices,
                [&](const AttentionChoice& c) { return sharedBytes(a, c) > kSharedLimit; });
  std::ranges::sort(choices, {},
                    [&](const AttentionChoice& c) { return attentionSeconds(a, sizes, c); });
  return choices;
}

KernelSet attentionKernels(const AttentionKernel& a) {
  if (std::string reason = whyNotAttention(a); !reason.empty())
    throw Error(ErrorCode::Unsupported, reason);
  constexpr int64_t kFewQueries = 16, kManyKeys = int64_t{1} << 20, kAny = int64_t{1} << 40;
  constexpr int64_t kMeasuredKeys = 4096;  // where their number is known only at run time
  const bool tensorCores = whyNotTensorCores(a).empty();
  const int64_t keys = a.keys.asConstant().value_or(kManyKeys);
  const std::optional<int64_t> queries = a.queries.asConstant(), batch = a.batch.asConstant();
  KernelSet set;

  // Few queries: keys are split the more, the smaller the batch. Every range of batches doubles.
  auto addSplit = [&](AttentionMethod method, int64_t most, std::vector<Condition> when) {
    for (int64_t low = batch.value_or(1), high;; low = high + 1) {
      high = batch.value_or(2 * low - 1);
      const std::vector<AttentionChoice> choices = splitChoices(a, method, {low, 1, keys});
      if (choices.front().mostSplits == 1) high = kAny;
      std::vector<Condition> conditions = when;
      if (!batch) conditions.push_back({a.batch, 0, high});
      const std::string name = a.name + (method == AttentionMethod::Decode ? "_decode" : "_simt");
      const AttentionSizes sizes{low, queries.value_or(1), std::min(keys, kMeasuredKeys)};
      AttentionChoice choice =
          choices[chosenCandidate(questionOf(a, sizes, choices, name, conditions))];
      choice.mostTiles = splitChoice(a, method, {high, most, keys}).mostTiles;
      const AttentionChoice usual = choices.front();
      std::string own = name;
      if (choice.leastKeys != usual.leastKeys) own += std::to_string(choice.leastKeys);
      if (choice.warps != usual.warps) own += "x" + std::to_string(choice.warps);
      addAttention(a, choice, own, std::move(conditions), set);
      if (batch || high == kAny) break;
    }
  };
  if (!tensorCores) {
    // Blocks of many rows fill the device without splits.
    if (queries.value_or(1) <= kFewQueries) {
      std::vector<Condition> when;
      if (!queries) when.push_back({a.queries, 0, kFewQueries});
      addSplit(AttentionMethod::Simt, queries.value_or(kFewQueries), when);
    }
    if (queries.value_or(kFewQueries + 1) > kFewQueries)
      addAttention(a, AttentionChoice(), a.name + "_simt", {}, set);
    return set;
  }
  if (queries.value_or(1) <= kFewQueries) {
    std::vector<Condition> when;
    if (!queries) when.push_back({a.queries, 0, kFewQueries});
    addSplit(AttentionMethod::Decode, queries.value_or(kFewQueries), when);
    if (queries) return set;
  }
  // Prompts: the best tile for short ones, and for long ones.
  auto best = [&](int64_t length, std::vector<Condition> when) {
    const AttentionSizes sizes{batch.value_or(1), length, std::max(length, std::min(keys, kAny))};
    std::vector<AttentionChoice> choices = attentionCandidates(a, sizes);
    std::erase_if(choices,
                  [](const AttentionChoice& c) { return c.method != AttentionMethod::Tiled; });
    if (choices.empty()) choices = {tiledChoices(a).back()};
    // The last one: it is taken where it was measured to be ahead, and not because the model says
    // so.
    if (plainAttentionOf(a)) choices.push_back({.method = AttentionMethod::Library});
    const AttentionSizes measured{sizes.batch, length,
                                  std::max(length, a.keys.asConstant().value_or(length))};
    const TuningQuestion question =
        questionOf(a, measured, choices, nameOf(a, choices.front()), std::move(when));
    const size_t number = chosenCandidate(question);
    const bool library = choices[number].method == AttentionMethod::Library;
    return std::pair(choices[library ? standInFor(question, number) : number], library);
  };
  auto addTiled = [&](const std::pair<AttentionChoice, bool>& chosen, std::vector<Condition> when) {
    addAttention(a, chosen.first, nameOf(a, chosen.first), std::move(when), set);
    if (chosen.second) addLibrary(a, set);
  };
  if (queries) {
    addTiled(best(*queries, {}), {});
    return set;
  }
  for (int64_t length : {32, 128, 512}) {
    const std::vector<Condition> when{{a.queries, 0, 2 * length}};
    addTiled(best(length, when), when);
  }
  addTiled(best(4096, {}), {});
  return set;
}

}  // namespace lathe::cuda
