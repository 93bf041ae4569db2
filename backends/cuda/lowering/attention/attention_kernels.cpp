// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/attention/attention_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cuda/lowering/kernel/hopper_facts.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

// Shared memory of a block on sm_90, less what templates declare themselves.
constexpr int64_t kSharedLimit = 227 * 1024 - 1024;
constexpr int64_t kMostSplits = 64;  // that one kernel can add up
constexpr int kSharedPerProcessor = 233472;

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t group(const AttentionKernel& a) { return a.queryHeads / a.keyHeads; }
bool isSmall(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; }

// Of one block's shared memory, as the templates lay it out.
int64_t sharedBytes(const AttentionKernel& a, const AttentionChoice& choice) {
  switch (choice.method) {
    case AttentionMethod::Decode: {
      int64_t pitch = roundUp(a.valueDepth, 64) + 16, chunks = roundUp(a.depth, 32) / 32;
      int64_t words = choice.warps * 16 * (pitch + 2) + 16 * kMostSplits + 16;
      return 4 * (words + (a.depth > 128 ? chunks * 256 : 0));
    }
    case AttentionMethod::Tiled: {
      int64_t pitch = roundUp(a.depth, 16) * 2 + 16,
              valuePitch = roundUp(a.valueDepth, 16) * 2 + 16;
      return choice.warps * choice.rowTiles * 16 * std::max(pitch, valuePitch) +
             2 * choice.keys * (pitch + valuePitch);
    }
    case AttentionMethod::Simt: {
      int64_t rows = choice.warps * 4;
      int64_t words = rows * a.depth + 32 * (a.depth | 1) + 32 * a.valueDepth + rows * 32;
      return words * (a.dtype == DType::F64 ? 8 : 4);
    }
  }
  return 0;
}

// Rows of queries that one block takes.
int64_t rowsPerBlock(const AttentionChoice& choice) {
  switch (choice.method) {
    case AttentionMethod::Decode:
      return 16;
    case AttentionMethod::Tiled:
      return choice.warps * choice.rowTiles * 16;
    case AttentionMethod::Simt:
      return choice.warps * 4;
  }
  return 1;
}

constexpr int kDecodeWarps = 8;

// Blocks that a processor's registers are to hold: two of more than four warps would leave 128 to a
// thread, with which some tiles spill.
int residentBlocks(const AttentionChoice& choice) { return choice.warps <= 4 ? 2 : 1; }

// Scratch of one split's row, in bytes.
int64_t partialBytes(const AttentionKernel& a, AttentionMethod method) {
  if (method == AttentionMethod::Decode) return 4 * (roundUp(a.valueDepth, 64) + 4);
  return (a.valueDepth + 2) * (a.dtype == DType::F64 ? 8 : 4);
}

// Every stride and the offset in whole 16-byte words of 2-byte elements.
bool isAligned(const AttentionView& view) {
  for (const DimExpr& e : {view.offset, view.batch, view.head, view.token})
    for (const auto& [monomial, coefficient] : e.terms())
      if (coefficient % 8 != 0) return false;
  return true;
}

std::string configText(const AttentionKernel& a, const AttentionChoice& choice) {
  const bool wide = a.dtype == DType::F64;
  const std::string_view real = wide ? "double" : "float";
  std::string_view mask = !a.mask                  ? "kMaskNone"
                          : *a.mask == DType::Bool ? "kMaskBool"
                                                   : "kMaskAdded";
  std::string text = fmt::format(
      "struct Config {{\n"
      "  typedef {} Element;\n"
      "  typedef {} Mask;\n"
      "  typedef {} Position;\n"
      "  typedef {} Entry;\n"
      "  static constexpr int kDepth = {}, kValueDepth = {}, kKeyHeads = {}, kGroup = {};\n"
      "  static constexpr int kCausal = {}, kMask = {}, kMaskedRow = {};\n"
      "  static constexpr i64 kWindow = {};\n"
      "  static constexpr {} kScale = {}, kSoftcap = {};\n"
      "  static constexpr bool kOverlaps = true;\n"
      "  static constexpr i64 kBlock = {};\n",
      elementType(a.dtype), elementType(a.mask.value_or(DType::Bool)), elementType(a.positions),
      elementType(a.table), a.depth, a.valueDepth, a.keyHeads, group(a),
      "causal_" + std::string(nameOf(a.causal)), mask,
      "masked_row_" + std::string(nameOf(a.maskedRow)), a.window, real, realLiteral(a.scale, wide),
      real == "float" ? realLiteral(a.softcap) : realLiteral(a.softcap, true), a.blockKeys);
  text += fmt::format("  static constexpr int kWarps = {};\n", choice.warps);
  switch (choice.method) {
    case AttentionMethod::Decode:
      text += fmt::format(
          "  static constexpr int kLeastKeys = {}, kMostSplits = {};\n"
          "  static constexpr bool kOldKeys = {};\n",
          choice.leastKeys, kMostSplits, a.oldKeys);
      break;
    case AttentionMethod::Tiled:
      text += fmt::format(
          "  static constexpr int kRowTiles = {}, kKeys = {};\n"
          "  static constexpr bool kPacksHeads = {};\n",
          choice.rowTiles, choice.keys, choice.packsHeads);
      break;
    case AttentionMethod::Simt:
      text += fmt::format("  static constexpr int kLeastKeys = {};\n", choice.leastKeys);
      break;
  }
  return text + "};\n";
}

std::string viewText(KernelParameters& p, std::string_view name, const AttentionView& view) {
  auto size = [&](std::string_view part, const DimExpr& e) {
    return p.size(fmt::format("{}_{}", name, part), e);
  };
  std::string batch = size("batch", view.batch), head = size("head", view.head);
  return fmt::format("{{{}, {}, {}}}", batch, head, size("token", view.token));
}

}  // namespace

AttentionView AttentionView::dense(const DimExpr& heads, const DimExpr& tokens,
                                   const DimExpr& depth) {
  return {0, heads * tokens * depth, tokens * depth, depth};
}

std::string whyNotTensorCores(const AttentionKernel& a) {
  if (!isSmall(a.dtype)) return "tensor cores take bf16 and f16";
  if (a.depth % 8 || a.valueDepth % 8 || a.depth > 256 || a.valueDepth > 256)
    return fmt::format(
        "tensor cores take head depths that are multiples of 8 up to 256, got {} and {}", a.depth,
        a.valueDepth);
  for (const AttentionView* view : {&a.q, &a.k, &a.v, &a.y})
    if (!isAligned(*view)) return "rows of an operand do not begin at multiples of 16 bytes";
  return {};
}

std::string whyNotAttention(const AttentionKernel& a) {
  if (!isFloat(a.dtype)) return fmt::format("attention takes floats, got {}", nameOf(a.dtype));
  if (a.depth < 1 || a.valueDepth < 1)
    return fmt::format("attention takes head depths of at least 1, got {} and {}", a.depth,
                       a.valueDepth);
  AttentionChoice simt;
  if (whyNotTensorCores(a).empty() || sharedBytes(a, simt) <= kSharedLimit) return {};
  return fmt::format(
      "attention takes head depths whose tiles fit {} bytes of shared memory, {} and {} take {}",
      kSharedLimit, a.depth, a.valueDepth, sharedBytes(a, simt));
}

void addAttention(const AttentionKernel& a, const AttentionChoice& choice, const std::string& name,
                  std::vector<Condition> conditions, KernelSet& set) {
  KernelParameters p;
  const std::string_view element = elementType(a.dtype);
  p.input(element, "q", 0);
  p.input(element, "k", 1);
  p.input(element, "v", 2);
  int next = 3;
  std::string mask = "nullptr", positions = "nullptr";
  if (a.mask) p.input(elementType(*a.mask), mask = "mask", next++);
  if (a.causal == Causal::positions)
    p.input(elementType(a.positions), positions = "positions", next++);
  if (a.blockKeys > 0) p.input(elementType(a.table), "table", next++);
  p.output(element, "y", next);

  auto shifted = [&](std::string_view pointer, const DimExpr& offset) {
    if (offset == DimExpr(0)) return std::string(pointer);
    return fmt::format("{} + {}", pointer, p.size(fmt::format("{}_offset", pointer), offset));
  };
  std::string body = "  AttentionArguments<Config> a;\n";
  auto assign = [&](std::string_view field, const std::string& value) {
    body += fmt::format("  a.{} = {};\n", field, value);
  };
  assign("q", shifted("q", a.q.offset));
  assign("k", shifted("k", a.k.offset));
  assign("v", shifted("v", a.v.offset));
  assign("y", shifted("y", a.y.offset));
  assign("mask", mask);
  assign("positions", positions);
  assign("batches", p.size("batches", a.batch));
  assign("queries", p.size("queries", a.queries));
  assign("keys", p.size("keys", a.keys));
  body += fmt::format("  a.qs = {};\n", viewText(p, "q", a.q));
  body += fmt::format("  a.ks = {};\n", viewText(p, "k", a.k));
  body += fmt::format("  a.vs = {};\n", viewText(p, "v", a.v));
  body += fmt::format("  a.ys = {};\n", viewText(p, "y", a.y));
  const char* fields[] = {"maskBatch", "maskHead", "maskQuery", "maskKey"};
  for (size_t i = 0; i < 4; ++i) assign(fields[i], p.size(fields[i], a.maskStrides[i]));
  if (a.blockKeys > 0) {
    p.status("status", {-1, a.blocks, 0});
    assign("table", "table");
    assign("status", "status");
    assign("entries", p.size("entries", a.entries));
    assign("blocks", p.size("blocks", a.blocks));
  }

  Launch launch;
  launch.kernel = name;
  launch.threads = choice.warps * 32;
  launch.sharedBytes = sharedBytes(a, choice);
  launch.waits = true;
  Variant variant;
  variant.when = std::move(conditions);
  const int64_t rows = rowsPerBlock(choice);
  const DimExpr groupRows = a.queries * DimExpr(group(a));
  std::string_view file, function;
  if (choice.method == AttentionMethod::Tiled) {
    file = "lathe_attention.cuh";
    function = "attentionTiled(a)";
    launch.grid = {GridAxis{choice.packsHeads ? a.keyHeads : a.queryHeads},
                   {.count = choice.packsHeads ? groupRows : a.queries, .per = rows, .folds = true},
                   {.count = a.batch, .folds = true}};
    variant.what = fmt::format("tiled {}x{} attention", rows, choice.keys);
  } else {
    const bool isDecode = choice.method == AttentionMethod::Decode;
    const std::string_view real = a.dtype == DType::F64 ? "double" : "float";
    file = isDecode ? "lathe_attention_decode.cuh" : "lathe_attention_simt.cuh";
    function = isDecode ? "attentionDecode(a, partials, counters)"
                        : "attentionSimt(a, partials, counters)";
    variant.what =
        fmt::format("{} attention, {} splits", isDecode ? "decode" : "simt", choice.mostSplits);
    // A block at least, also where there are no keys.
    launch.grid = {GridAxis{groupRows, rows},
                   GridAxis{a.batch * DimExpr(a.keyHeads), 1, kMostOnAxis},
                   GridAxis{a.keys + DimExpr(1), choice.leastKeys, choice.mostSplits}};
    if (choice.mostSplits > 1) {
      const int64_t row = a.queryHeads * choice.mostSplits * partialBytes(a, choice.method);
      variant.scratchBytes = a.batch * a.queries * DimExpr(row);
    }
    p.counters("counters", choice.mostSplits > 1 ? choice.mostTiles : 0);
    p.scratch(real, "partials", 0);
  }
  body += fmt::format("  {};\n", function);
  launch.arguments = p.arguments();
  launch.checks = p.checks();
  variant.launches.push_back(std::move(launch));
  set.variants.push_back(std::move(variant));
  auto isPrinted = [&](const KernelText& text) { return text.name == name; };
  if (std::ranges::any_of(set.kernels, isPrinted)) return;
  set.kernels.push_back({name, fmt::format("#include \"{}\"\n\n{}\n{}", file, configText(a, choice),
                                           kernelFunction(name, choice.warps * 32, p, body,
                                                          residentBlocks(choice)))});
}

namespace {

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
      if (std::max(a.depth, a.valueDepth) > tile.depth || (packs && group(a) == 1)) continue;
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
  choice.mostTiles = sizes.batch * a.keyHeads * ((sizes.queries * group(a) + rows - 1) / rows);
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

std::string nameOf(const AttentionKernel& a, const AttentionChoice& c) {
  return fmt::format("{}_tiled{}x{}x{}{}", a.name, c.warps, c.rowTiles, c.keys,
                     c.packsHeads ? "p" : "");
}

}  // namespace

double attentionSeconds(const AttentionKernel& a, const AttentionSizes& sizes,
                        const AttentionChoice& choice) {
  const double elementBytes = double(sizeOf(a.dtype)), depths = double(a.depth + a.valueDepth);
  const bool packs = choice.method != AttentionMethod::Tiled || choice.packsHeads;
  const int64_t heads = packs ? a.keyHeads : a.queryHeads;
  const int64_t rows = packs ? sizes.queries * group(a) : sizes.queries;
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
    const AttentionSizes measured{sizes.batch, length,
                                  std::max(length, a.keys.asConstant().value_or(length))};
    return choices[chosenCandidate(
        questionOf(a, measured, choices, nameOf(a, choices.front()), std::move(when)))];
  };
  auto addTiled = [&](const AttentionChoice& c, std::vector<Condition> when) {
    addAttention(a, c, nameOf(a, c), std::move(when), set);
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
