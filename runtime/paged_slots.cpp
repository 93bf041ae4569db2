// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "lathe/runtime/error.h"
#include "lathe/runtime/kv_slots.h"
#include "runtime/block_tables.h"
#include "runtime/language_program.h"

namespace lathe {
namespace {

class PagedSlots final : public KvSlots {
 public:
  PagedSlots(Session& session, const PagedEntry& prefill, const PagedEntry& decode, int64_t vocab,
             const PagedSizes& sizes, int64_t slots, int64_t positions, int64_t blocks)
      : session_(session),
        vocab_(vocab),
        chunk_(sizes.chunk),
        positions_(std::min(positions, blocks * sizes.block)),
        entries_((positions_ + sizes.block - 1) / sizes.block),
        tables_(slots, blocks, sizes.block),
        prefill_{prefill},
        decode_{decode} {
    session.setSymbol(kBlocksSymbol, blocks);
  }

  int64_t slots() const override { return tables_.slots(); }
  int64_t vocab() const override { return vocab_; }
  int64_t positions() const override { return positions_; }
  int64_t maxChunk() const override { return chunk_; }
  std::span<const int> ids(int64_t slot) const override { return tables_.ids(slot); }
  KvBlocks blocks() const override { return tables_.counts(); }
  void throwIfEnded() const override { session_.throwIfEnded(); }

  bool begin(int64_t slot, int64_t from, int64_t count, int64_t tokens) override {
    const auto begun = tables_.begin(slot, from, count, std::min(tokens, positions_));
    try {
      if (begun.copy) session_.copyStateBlock(kBlocksSymbol, begun.copy->from, begun.copy->to);
    } catch (...) {  // no text runs in the slot, and what its last block holds is not known
      tables_.clear(slot);
      tables_.end(slot);
      throw;
    }
    return begun.hasRoom;
  }
  void end(int64_t slot) override { tables_.end(slot); }
  void clear(int64_t slot) override { tables_.clear(slot); }

  std::span<const float> prefill(int64_t slot, std::span<const int> ids) override {
    expectedIn("tokens", int64_t(ids.size()), chunk_);
    return run(prefill_, {&slot, 1}, ids);
  }

  std::span<const float> next(std::span<const int64_t> slots, std::span<const int> ids) override {
    checkOneEach(slots, ids);
    return run(decode_, slots, ids);
  }

 private:
  struct Calls {
    PagedEntry entry;
    std::vector<Array> inputs = std::vector<Array>(3), outputs = {};
  };

  static std::span<int64_t> sized(Array& input, const Shape& shape) {
    if (!input.defined() || input.shape() != shape) input = Array(DType::I64, shape);
    return input.as<int64_t>();
  }

  // As many ids for each of the slots, in the order of the slots.
  std::span<const float> run(Calls& calls, std::span<const int64_t> slots,
                             std::span<const int> ids) {
    const auto rows = int64_t(slots.size()), tokens = int64_t(ids.size()) / rows;
    checkIds(ids, vocab_);
    for (int64_t slot : slots)
      checkRoom(slot, int64_t(tables_.ids(slot).size()), tokens,
                std::min(tables_.room(slot), positions_));
    for (int64_t slot : slots) tables_.grow(slot, tokens);
    std::ranges::copy(ids, sized(calls.inputs[calls.entry.ids], {rows, tokens}).begin());
    const auto positions = sized(calls.inputs[calls.entry.positions], {rows});
    const auto table = sized(calls.inputs[calls.entry.table], {rows, entries_});
    // Entries that no token is at name any block.
    std::ranges::fill(table, 0);
    for (size_t row = 0; row < slots.size(); ++row) {
      positions[row] = int64_t(tables_.ids(slots[row]).size());
      std::ranges::copy(tables_.blocks(slots[row]), table.begin() + int64_t(row) * entries_);
    }
    session_.run(calls.entry.index, calls.inputs, calls.outputs);
    for (size_t row = 0; row < slots.size(); ++row)
      tables_.append(slots[row], ids.subspan(row * size_t(tokens), size_t(tokens)));
    return calls.outputs[0].as<float>();
  }

  Session& session_;
  int64_t vocab_, chunk_, positions_, entries_;
  BlockTables tables_;
  Calls prefill_, decode_;
};

}  // namespace

std::unique_ptr<KvSlots> pagedSlots(Session& session, const GeneratorLimits& limits, int64_t slots,
                                    int64_t positions, int64_t tokens) {
  const PagedEntry prefill = pagedEntry(session, "prefill", limits.vocab);
  const PagedEntry decode = pagedEntry(session, "decode", limits.vocab);
  const PagedSizes sizes = pagedSizes(session.program(), prefill, limits);
  expectedIn("texts at once", slots, sizes.maxRows);
  expectedIn("positions", positions, sizes.maxPositions);
  int64_t blocks = slots * ((positions + sizes.block - 1) / sizes.block);
  if (tokens != 0) {
    expectedIn("tokens in the cache", tokens, sizes.maxBlocks * sizes.block);
    blocks = (tokens + sizes.block - 1) / sizes.block;
  }
  expectedIn("blocks", blocks, sizes.maxBlocks);
  return std::make_unique<PagedSlots>(session, prefill, decode, limits.vocab, sizes, slots,
                                      positions, blocks);
}

}  // namespace lathe
