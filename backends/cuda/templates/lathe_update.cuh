// SPDX-License-Identifier: Apache-2.0
// lathe.update in place: rows positions[b] .. positions[b] + count of one axis are overwritten.
// Memory moves in words (u8, u16, u32, uint2 or uint4). Hooks::start(n) is the word at which the
// new rows of the n-th of batch * outer blocks begin; they lie `stride` words apart.
#pragma once
#include "lathe_device.cuh"

template <class Hooks, class Word, class Position>
LT_FN void updateRows(Word* y, const Word* value, const Position* positions, i64* status, i64 batch,
                      i64 outer, i64 length, i64 count, i64 rowWords, i64 stride,
                      const Hooks& hooks) {
  const i64 total = batch * outer * count * rowWords, step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const i64 word = i % rowWords, row = i / rowWords % count, block = i / rowWords / count;
    const i64 position = (i64)positions[block / outer];
    // Compared without adding: a position may be anything.
    if (position < 0 || position > length - count)
      lt_report_index(status, position);
    else
      y[(block * length + position + row) * rowWords + word] =
          value[hooks.start(block) + row * stride + word];
  }
}
