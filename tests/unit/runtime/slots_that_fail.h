// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <new>
#include <span>

#include "lathe/runtime/error.h"
#include "lathe/runtime/kv_slots.h"

namespace lathe::test {

/// Slots of which `begin` fails so often, and prefill while it is told to.
class SlotsThatFail final : public KvSlots {
 public:
  SlotsThatFail(std::unique_ptr<KvSlots> slots, int times, bool outOfMemory)
      : slots_(std::move(slots)), times_(times), outOfMemory_(outOfMemory) {}
  int64_t slots() const override { return slots_->slots(); }
  int64_t vocab() const override { return slots_->vocab(); }
  int64_t positions() const override { return slots_->positions(); }
  int64_t maxChunk() const override { return slots_->maxChunk(); }
  std::span<const int> ids(int64_t slot) const override { return slots_->ids(slot); }
  bool begin(int64_t slot, int64_t from, int64_t count, int64_t tokens) override {
    if (times_-- <= 0) return slots_->begin(slot, from, count, tokens);
    if (outOfMemory_) throw std::bad_alloc();
    throw Error(ErrorCode::Io, "no copy");
  }
  void end(int64_t slot) override { slots_->end(slot); }
  void clear(int64_t slot) override { slots_->clear(slot); }
  std::span<const float> prefill(int64_t slot, std::span<const int> ids) override {
    if (failsToRead) throw Error(ErrorCode::Io, "no answer");
    return slots_->prefill(slot, ids);
  }
  KvBlocks blocks() const override { return slots_->blocks(); }
  bool failsToRead = false;
  std::span<const float> next(std::span<const int64_t> slots, std::span<const int> ids) override {
    return slots_->next(slots, ids);
  }

 private:
  std::unique_ptr<KvSlots> slots_;
  int times_;
  bool outOfMemory_;
};

}  // namespace lathe::test
