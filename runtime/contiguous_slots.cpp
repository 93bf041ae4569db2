// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "lathe/runtime/error.h"
#include "lathe/runtime/kv_slots.h"
#include "runtime/language_program.h"

namespace lathe {
namespace {

class ContiguousSlots final : public KvSlots {
 public:
  ContiguousSlots(Session& session, const GeneratorLimits& limits, int64_t slots, int64_t positions)
      : session_(session), vocab_(limits.vocab) {
    prefill_ = languageEntry(session, "prefill", limits.vocab);
    decode_ = languageEntry(session, "decode", limits.vocab);
    const LanguageSizes sizes = languageSizes(session.program(), prefill_, limits);
    expectedIn("texts at once", slots, sizes.maxRows);
    chunk_ = sizes.chunk;
    positions_ = positions;
    session.setSymbol(kCacheSymbol, capacityFor(positions, sizes.maxPositions, sizes.cacheStep));
    const EntryPoint& entry = session.program().entries[prefill_.index];
    const Slot& ids = entry.slots[size_t(entry.inputs[prefill_.ids].slot)];
    session.keepStateRows(ids.shape[0].text(), slots);
    ids_.resize(size_t(slots));
  }

  int64_t slots() const override { return int64_t(ids_.size()); }
  void throwIfEnded() const override { session_.throwIfEnded(); }
  int64_t vocab() const override { return vocab_; }
  int64_t positions() const override { return positions_; }
  int64_t maxChunk() const override { return chunk_; }
  std::span<const int> ids(int64_t slot) const override { return ids_.at(size_t(slot)); }

  bool begin(int64_t slot, int64_t from, int64_t count, int64_t) override {
    const std::span<const int> source = ids(from);
    if (count < 0 || count > int64_t(source.size()))
      throw Error(ErrorCode::InvalidArgument,
                  "expected from 0 to " + std::to_string(source.size()) +
                      " tokens to go on from, got " + std::to_string(count));
    if (from != slot) {
      session_.copyStateRow(from, slot, kCacheSymbol, count);
      ids_.at(size_t(slot)).assign(source.begin(), source.begin() + count);
    }
    ids_.at(size_t(slot)).resize(size_t(count));
    return true;
  }
  void end(int64_t) override {}  // its row is its own
  void clear(int64_t slot) override { ids_.at(size_t(slot)).clear(); }

  std::span<const float> prefill(int64_t slot, std::span<const int> ids) override {
    std::vector<int>& held = ids_.at(size_t(slot));
    expectedIn("tokens", int64_t(ids.size()), chunk_);
    check(slot, ids);
    const std::vector<int64_t> wide(ids.begin(), ids.end());
    const int64_t position = int64_t(held.size());
    const std::span<const float> logits = run(prefill_, slot, wide, {&position, 1});
    held.insert(held.end(), ids.begin(), ids.end());
    return logits;
  }

  std::span<const float> next(std::span<const int64_t> slots, std::span<const int> ids) override {
    checkOneEach(slots, ids);
    const auto [first, last] = std::ranges::minmax(slots);
    for (size_t i = 0; i < slots.size(); ++i) check(slots[i], ids.subspan(i, 1));
    // A row that rests writes behind the end of what it holds, where the next token will be.
    const size_t rows = size_t(last - first) + 1;
    std::vector<int64_t> tokens(rows, 0), places(rows);
    for (size_t row = 0; row < rows; ++row)
      places[row] = std::min(int64_t(ids_[size_t(first) + row].size()), positions_ - 1);
    for (size_t i = 0; i < slots.size(); ++i) tokens[size_t(slots[i] - first)] = ids[i];
    const std::span<const float> logits = run(decode_, first, tokens, places);
    for (size_t i = 0; i < slots.size(); ++i) ids_[size_t(slots[i])].push_back(ids[i]);
    // A full row that rested has lost its last token.
    for (size_t row = 0; row < rows; ++row)
      if (std::vector<int>& held = ids_[size_t(first) + row];
          int64_t(held.size()) == positions_ && places[row] == positions_ - 1 &&
          std::ranges::find(slots, first + int64_t(row)) == slots.end())
        held.pop_back();
    const bool inOrder = std::ranges::is_sorted(slots) && rows == slots.size();
    if (inOrder) return logits;
    gathered_.resize(slots.size() * size_t(vocab_));
    for (size_t i = 0; i < slots.size(); ++i)
      std::ranges::copy(logits.subspan(size_t((slots[i] - first) * vocab_), size_t(vocab_)),
                        gathered_.begin() + int64_t(i) * vocab_);
    return gathered_;
  }

 private:
  void check(int64_t slot, std::span<const int> ids) const {
    checkIds(ids, vocab_);
    checkRoom(slot, int64_t(ids_.at(size_t(slot)).size()), int64_t(ids.size()), positions_);
  }

  std::span<const float> run(const LanguageEntry& entry, int64_t firstRow,
                             std::span<const int64_t> ids, std::span<const int64_t> positions) {
    const int64_t rows = int64_t(positions.size());
    const Shape idsShape{rows, int64_t(ids.size()) / rows}, positionsShape{rows};
    std::vector<Array>& inputs = &entry == &prefill_ ? prefillInputs_ : decodeInputs_;
    std::vector<Array>& outputs = &entry == &prefill_ ? prefillOutputs_ : decodeOutputs_;
    inputs.resize(2);
    auto put = [](Array& input, const Shape& shape, std::span<const int64_t> values) {
      if (!input.defined() || input.shape() != shape) input = Array(DType::I64, shape);
      std::ranges::copy(values, input.as<int64_t>().begin());
    };
    put(inputs[entry.ids], idsShape, ids);
    put(inputs[entry.positions()], positionsShape, positions);
    session_.selectStateRows(firstRow);
    session_.run(entry.index, inputs, outputs);
    return outputs[0].as<float>();
  }

  Session& session_;
  int64_t vocab_, chunk_ = 0, positions_ = 0;
  LanguageEntry prefill_, decode_;
  std::vector<std::vector<int>> ids_;  // by slot
  std::vector<Array> prefillInputs_, decodeInputs_, prefillOutputs_, decodeOutputs_;
  std::vector<float> gathered_;
};

}  // namespace

std::unique_ptr<KvSlots> contiguousSlots(Session& session, const GeneratorLimits& limits,
                                         int64_t slots, int64_t positions) {
  return std::make_unique<ContiguousSlots>(session, limits, slots, positions);
}

}  // namespace lathe
