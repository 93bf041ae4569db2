// SPDX-License-Identifier: Apache-2.0
#include "runtime/language_program.h"

#include <algorithm>
#include <optional>
#include <string>

#include "lathe/runtime/device.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/kv_slots.h"

namespace lathe {
namespace {

constexpr const char *kIds = "input_ids", *kPositions = "positions", *kTable = "block_table",
                     *kLogits = "logits";

Error misfit(const EntryPoint& entry, const std::string& message) {
  return Error(ErrorCode::InvalidArgument,
               "entry point '" + entry.name + "' cannot generate text: " + message);
}

// The place of an input of integers in 64 bits among the others.
std::optional<size_t> findInput(const EntryPoint& entry, std::string_view name, size_t rank) {
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const Slot& slot = entry.slots[size_t(entry.inputs[i].slot)];
    if (entry.inputs[i].name == name && slot.dtype == DType::I64 && slot.shape.size() == rank)
      return i;
  }
  return std::nullopt;
}

bool isPaged(const EntryPoint& entry) {
  return entry.inputs.size() == 3 && findInput(entry, kTable, 2);
}

// Where `input_ids` is among the two inputs.
size_t findInputs(const EntryPoint& entry) {
  const auto ids = findInput(entry, kIds, 2);
  if (entry.inputs.size() == 2 && ids && findInput(entry, kPositions, 1)) return *ids;
  if (isPaged(entry))
    throw misfit(entry,
                 "its cache is in blocks, which `lathe serve` runs (pagedSlots); compile the "
                 "model without --cache-block");
  throw misfit(entry, "expected the inputs input_ids i64 [batch, seq] and positions i64 [batch]");
}

void checkLogits(const EntryPoint& entry, int64_t vocab, bool ofEveryToken) {
  if (entry.outputs.size() != 1 || entry.outputs[0].name != kLogits)
    throw misfit(entry, "expected the one output logits");
  const Slot& slot = entry.slots[size_t(entry.outputs[0].slot)];
  if (slot.dtype != DType::F32 || slot.shape.size() != (ofEveryToken ? 3 : 2))
    throw misfit(entry, ofEveryToken ? "expected logits to be f32 [batch, seq, vocab]"
                                     : "expected logits to be f32 [batch, vocab]");
  if (slot.shape.back() != DimExpr(vocab))
    throw misfit(entry, "it has logits for " + slot.shape.back().text() +
                            " tokens, the model has " + std::to_string(vocab));
}

}  // namespace

LanguageEntry languageEntry(const Session& session, std::string_view name, int64_t vocab,
                            bool ofEveryToken) {
  const EntryPoint& entry = session.program().entry(name);
  LanguageEntry found{session.entryIndex(name), findInputs(entry)};
  checkLogits(entry, vocab, ofEveryToken);
  return found;
}

PagedEntry pagedEntry(const Session& session, std::string_view name, int64_t vocab) {
  const EntryPoint& entry = session.program().entry(name);
  const auto ids = findInput(entry, kIds, 2), positions = findInput(entry, kPositions, 1);
  if (!isPaged(entry) || !ids || !positions)
    throw misfit(entry,
                 "expected the inputs input_ids i64 [batch, seq], positions i64 [batch] and "
                 "block_table i64 [batch, entries]");
  checkLogits(entry, vocab, false);
  return {session.entryIndex(name), *ids, *positions, *findInput(entry, kTable, 2)};
}

bool hasPagedCache(const Program& program) {
  const auto decode = std::ranges::find(program.entries, "decode", &EntryPoint::name);
  return decode != program.entries.end() && isPaged(*decode);
}

bool isOfGreedy(const TensorInfo& state) {
  return state.name == GreedyStates::kIds || state.name == GreedyStates::kPositions ||
         state.name == GreedyStates::kChosen;
}

void checkGreedy(const Program& program, const EntryPoint& entry) {
  if (!entry.inputs.empty() || !entry.outputs.empty())
    throw misfit(entry, "expected neither inputs nor outputs");
  for (const char* name : {GreedyStates::kIds, GreedyStates::kPositions, GreedyStates::kChosen}) {
    const bool isChosen = name == GreedyStates::kChosen;
    const bool found = std::ranges::any_of(program.states, [&](const TensorInfo& state) {
      return state.name == name && state.dtype == DType::I64 &&
             state.shape.size() == (name == GreedyStates::kPositions ? 1u : 2u) &&
             (!isChosen || state.shape[0] == DimExpr(GreedyStates::kSteps));
    });
    if (!found || std::ranges::find(entry.statesIn, name, &Port::name) == entry.statesIn.end())
      throw misfit(entry, "expected the state " + std::string(name) + " of integers in 64 bits" +
                              (isChosen ? ", [16, batch]" : ""));
  }
}

static void checkLimits(const GeneratorLimits& limits) {
  if (limits.maxPositions < 1)
    throw Error(ErrorCode::InvalidArgument,
                "Generator: expected at least 1 of the model's positions, got " +
                    std::to_string(limits.maxPositions));
}

LanguageSizes languageSizes(const Program& program, const LanguageEntry& prefill,
                            const GeneratorLimits& limits) {
  checkLimits(limits);
  LanguageSizes sizes;
  sizes.maxPositions = limits.maxPositions;
  sizes.chunk = promptTokensOf(program.backend);
  const EntryPoint& entry = program.entries[prefill.index];
  const std::vector<DimExpr>& shape = entry.slots[size_t(entry.inputs[prefill.ids].slot)].shape;
  bool hasCache = false;
  for (const SymbolInfo& s : program.symbols) {
    if (DimExpr::symbol(s.name) == shape[0]) sizes.maxRows = s.hi;
    if (DimExpr::symbol(s.name) == shape[1]) sizes.chunk = std::min(sizes.chunk, s.hi);
    if (s.name != kCacheSymbol) continue;
    hasCache = true;
    sizes.maxPositions = std::min(sizes.maxPositions, s.hi);
    sizes.cacheStep = s.multiple;
  }
  if (!hasCache) throw misfit(entry, "the program has no symbol 'cache'");
  return sizes;
}

PagedSizes pagedSizes(const Program& program, const PagedEntry& prefill,
                      const GeneratorLimits& limits) {
  checkLimits(limits);
  const EntryPoint& entry = program.entries[prefill.index];
  auto shapeOf = [&](size_t input) -> const std::vector<DimExpr>& {
    return entry.slots[size_t(entry.inputs[input].slot)].shape;
  };
  PagedSizes sizes{.maxPositions = limits.maxPositions, .chunk = promptTokensOf(program.backend)};
  const DimExpr blocks = DimExpr::symbol(kBlocksSymbol);
  auto readStates = [&](const Program& stage) {
    for (const TensorInfo& state : stage.states)
      if (state.shape.size() == 4 && state.shape[0] == blocks)
        sizes.block = state.shape[2].asConstant().value_or(0);
  };
  readStates(program);
  for (const auto& stage : program.laterStages) readStates(*stage);
  if (sizes.block < 1 || sizes.block > kMostBlockTokens)
    throw misfit(entry, "expected states [blocks, heads, tokens of a block, depth]");
  for (const SymbolInfo& s : program.symbols) {
    const DimExpr symbol = DimExpr::symbol(s.name);
    if (symbol == shapeOf(prefill.ids)[0]) sizes.maxRows = s.hi;
    if (symbol == shapeOf(prefill.ids)[1]) sizes.chunk = std::min(sizes.chunk, s.hi);
    if (symbol == blocks) sizes.maxBlocks = s.hi;
    if (symbol == shapeOf(prefill.table)[1])
      sizes.maxPositions =
          std::min(sizes.maxPositions, std::min(s.hi, sizes.maxPositions) * sizes.block);
  }
  return sizes;
}

KvLimits kvLimits(const Session& session, const GeneratorLimits& limits) {
  if (hasPagedCache(session.program())) {
    const PagedEntry prefill = pagedEntry(session, "prefill", limits.vocab);
    const PagedSizes sizes = pagedSizes(session.program(), prefill, limits);
    return {sizes.maxPositions, sizes.maxRows};
  }
  const LanguageEntry prefill = languageEntry(session, "prefill", limits.vocab);
  const LanguageSizes sizes = languageSizes(session.program(), prefill, limits);
  return {sizes.maxPositions, sizes.maxRows};
}

int64_t expectedIn(const char* what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return value;
  throw Error(ErrorCode::InvalidArgument, "expected from 1 to " + std::to_string(most) + " " +
                                              what + ", got " + std::to_string(value));
}

void checkOneEach(std::span<const int64_t> slots, std::span<const int> ids) {
  if (slots.empty() || slots.size() != ids.size())
    throw Error(ErrorCode::InvalidArgument, "expected a token for each of " +
                                                std::to_string(slots.size()) + " slots, got " +
                                                std::to_string(ids.size()));
}

void checkRoom(int64_t slot, int64_t held, int64_t tokens, int64_t positions) {
  if (held + tokens > positions)
    throw Error(ErrorCode::InvalidArgument,
                "slot " + std::to_string(slot) + ": " + std::to_string(tokens) +
                    " tokens at position " + std::to_string(held) + " end past the " +
                    std::to_string(positions) + " positions that it has");
}

int64_t chunkOfRows(int64_t chunk, int64_t rows) {
  constexpr int64_t kLeast = 64;  // shorter passes leave products at a fraction of their speed
  return std::max(std::min(chunk, kLeast), chunk / std::max<int64_t>(rows, 1));
}

int64_t capacityFor(int64_t positions, int64_t maxPositions, int64_t cacheStep) {
  if (positions < 1 || positions > maxPositions)
    throw Error(ErrorCode::InvalidArgument, "expected from 1 to " + std::to_string(maxPositions) +
                                                " positions, the model's maximum, got " +
                                                std::to_string(positions));
  const int64_t most = maxPositions / cacheStep * cacheStep;
  const int64_t step =
      Generator::kCapacityStep % cacheStep == 0 ? Generator::kCapacityStep : cacheStep;
  const int64_t capacity = std::min((positions + step - 1) / step * step, most);
  if (capacity < positions)
    throw Error(ErrorCode::InvalidArgument, "expected at most " + std::to_string(most) +
                                                " positions, got " + std::to_string(positions));
  return capacity;
}

void checkIds(std::span<const int> ids, int64_t vocab) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab)
      throw Error(ErrorCode::InvalidArgument,
                  "token " + std::to_string(i) + ": expected an id from 0 to " +
                      std::to_string(vocab - 1) + ", got " + std::to_string(ids[i]));
}

}  // namespace lathe
