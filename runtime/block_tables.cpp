// SPDX-License-Identifier: Apache-2.0
#include "runtime/block_tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lathe/runtime/error.h"

namespace lathe {

BlockTables::BlockTables(int64_t slots, int64_t blocks, int64_t tokens)
    : tokens_(tokens), slots_(size_t(slots)), users_(size_t(blocks)) {
  free_.reserve(size_t(blocks));  // leave() takes no memory
  for (int64_t block = blocks; block > 0; --block) free_.push_back(block - 1);
}

int64_t BlockTables::room(int64_t slot) const {
  const Slot& s = slots_.at(size_t(slot));
  return (int64_t(s.blocks.size()) + s.set) * tokens_;
}

int64_t BlockTables::available(std::span<const int64_t> kept) const {
  std::vector<bool> held(users_.size());
  for (int64_t block : kept) held[size_t(block)] = true;
  int64_t set = 0;
  for (const Slot& s : slots_) {
    if (!s.runs) continue;
    set += s.set;
    for (int64_t block : s.blocks) held[size_t(block)] = true;
  }
  return std::ranges::count(held, false) - set;
}

BlockTables::Begun BlockTables::begin(int64_t slot, int64_t from, int64_t count, int64_t tokens) {
  Slot& s = slots_.at(size_t(slot));
  const Slot& source = slots_.at(size_t(from));
  if (s.runs)
    throw Error(ErrorCode::InvalidArgument,
                "slot " + std::to_string(slot) + ": expected one without a running text");
  if (count < 0 || count > int64_t(source.ids.size()) || tokens < count)
    throw Error(ErrorCode::InvalidArgument,
                "expected from 0 to " + std::to_string(source.ids.size()) +
                    " tokens to go on from, and room for them, got " + std::to_string(count) +
                    " and room for " + std::to_string(tokens));
  // Whole blocks are shared. One that is written on is the text's own: it stays where nobody else
  // has it, and is copied else.
  const int64_t whole = count / tokens_;
  const bool goesOn = count % tokens_ > 0;
  const int64_t last = goesOn ? source.blocks[size_t(whole)] : -1;
  const bool isOwn = goesOn && from == slot && users_[size_t(last)] == 1;
  std::vector<int64_t> blocks(source.blocks.begin(),
                              source.blocks.begin() + whole + (isOwn ? 1 : 0));
  const int64_t wanted = std::max<int64_t>(0, entriesFor(tokens) - int64_t(blocks.size()));
  if (wanted > available(blocks)) return {};
  // All memory is taken before anything changes: neither the rest of this nor grow() can fail.
  blocks.reserve(blocks.size() + size_t(wanted));
  std::vector<int> ids(source.ids.begin(), source.ids.begin() + count);

  for (int64_t block : blocks) ++users_[size_t(block)];
  for (int64_t block : std::exchange(s.blocks, std::move(blocks))) leave(block);
  s.ids = std::move(ids);
  s.set = wanted;
  s.runs = true;
  Begun begun{.hasRoom = true};
  if (goesOn && !isOwn) {
    // It may have been given up for this one, or be this one: its contents are there until another
    // block is taken.
    s.blocks.push_back(take());
    --s.set;
    begun.copy = Copy{last, s.blocks.back()};
  }
  return begun;
}

void BlockTables::end(int64_t slot) {
  Slot& s = slots_.at(size_t(slot));
  s.runs = false;
  s.set = 0;
  s.ended = ++ends_;
}

void BlockTables::clear(int64_t slot) {
  Slot& s = slots_.at(size_t(slot));
  for (int64_t block : std::exchange(s.blocks, {})) leave(block);
  s.ids.clear();
}

void BlockTables::grow(int64_t slot, int64_t tokens) {
  Slot& s = slots_.at(size_t(slot));
  while (int64_t(s.blocks.size()) < entriesFor(int64_t(s.ids.size()) + tokens)) {
    s.blocks.push_back(take());
    --s.set;
  }
}

void BlockTables::append(int64_t slot, std::span<const int> ids) {
  std::vector<int>& held = slots_.at(size_t(slot)).ids;
  held.insert(held.end(), ids.begin(), ids.end());
}

KvBlocks BlockTables::counts() const {
  KvBlocks counts{.tokens = tokens_,
                  .all = int64_t(users_.size()),
                  .used = int64_t(users_.size() - free_.size())};
  for (const Slot& s : slots_) counts.set += s.set;
  return counts;
}

// What a text left is given up from its end, so that its beginning serves others longest.
int64_t BlockTables::take() {
  while (free_.empty()) {
    Slot* oldest = nullptr;
    for (Slot& s : slots_)
      if (!s.runs && !s.blocks.empty() && (!oldest || s.ended < oldest->ended)) oldest = &s;
    if (!oldest)
      throw Error(ErrorCode::OutOfMemory,
                  "all " + std::to_string(users_.size()) + " blocks of the cache are in use");
    leave(oldest->blocks.back());
    oldest->blocks.pop_back();
    oldest->ids.resize(std::min(oldest->ids.size(), oldest->blocks.size() * size_t(tokens_)));
  }
  const int64_t block = free_.back();
  free_.pop_back();
  ++users_[size_t(block)];
  return block;
}

void BlockTables::leave(int64_t block) {
  if (--users_[size_t(block)] == 0) free_.push_back(block);
}

}  // namespace lathe
