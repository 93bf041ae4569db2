// SPDX-License-Identifier: Apache-2.0
// lathe.paged_update in place: row s of sequence b goes to place p % length of the block
// table[b * entries + p / length], with p = positions[b] + s. Memory moves in words (u8, u16, u32,
// uint2 or uint4). Hooks::start(n) is the word at which the new rows of the n-th of batch * outer
// lines begin; they lie `stride` words apart.
#pragma once
#include "lathe_device.cuh"

// Sizes of a call: `outer` lines of `length` rows are a block.
struct PagedSizes {
  i64 batch, outer, entries, blocks, length, count;
};

LT_FN bool isOutside(i64 position, const PagedSizes& n) {
  // Compared without adding: a position may be anything.
  return position < 0 || position > n.entries * n.length - n.count;
}

// Whether something behind place p of sequence b is written to where p goes: the last one stays.
template <class Entry, class Position>
LT_FN bool isWrittenLater(const Entry* table, const Position* positions, i64 b, i64 p, i64 block,
                          const PagedSizes& n) {
  for (i64 other = b; other < n.batch; ++other) {
    const i64 first = (i64)positions[other];
    if (isOutside(first, n)) continue;
    const i64 end = first + n.count;
    for (i64 entry = other == b ? p / n.length + 1 : first / n.length; entry * n.length < end;
         ++entry) {
      const i64 place = entry * n.length + p % n.length;
      if (place >= first && place < end && (i64)table[other * n.entries + entry] == block)
        return true;
    }
  }
  return false;
}

template <class Hooks, class Word, class Entry, class Position>
LT_FN void updateBlocks(Word* y, const Word* value, const Entry* table, const Position* positions,
                        i64* placeStatus, i64* blockStatus, const PagedSizes& n, i64 rowWords,
                        i64 stride, const Hooks& hooks) {
  const i64 total = n.batch * n.outer * n.count * rowWords, step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const i64 word = i % rowWords, row = i / rowWords % n.count, line = i / rowWords / n.count;
    const i64 b = line / n.outer, position = (i64)positions[b];
    if (isOutside(position, n)) {
      lt_report_index(placeStatus, position);
      continue;
    }
    const i64 p = position + row, block = (i64)table[b * n.entries + p / n.length];
    if (block < 0 || block >= n.blocks) {
      lt_report_index(blockStatus, block);
      continue;
    }
    if (isWrittenLater(table, positions, b, p, block, n)) continue;
    y[((block * n.outer + line % n.outer) * n.length + p % n.length) * rowWords + word] =
        value[hooks.start(line) + row * stride + word];
  }
}
