// SPDX-License-Identifier: Apache-2.0
// Copies of dense buffers, of strided views and of transposed ones, in words of any type.
#pragma once
#include "lathe_device.cuh"

// Hooks::from(i) is the word of the source for word i of the result.
template <class Hooks, class Word>
LT_FN void copyWords(Word* y, const Word* x, i64 count, const Hooks& hooks) {
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    y[i] = x[hooks.from(i)];
}

// The last axis of the result, of `columns`, is strided in the source, and another, of `rows`, is
// dense: tiles of 32 x 32 go through shared memory, so that both sides are read and written in
// rows. Hooks::from(o) and Hooks::to(o) are where the o-th pair of those axes begins in the source
// and in the result; their strides there are (1, sourceStride) and (resultStride, 1).
// Grid: (ceil(rows / 32), ceil(columns / 32) at most, pairs at most); 256 threads.
template <class Hooks, class Word>
LT_FN void copyTransposed(Word* y, const Word* x, i64 pairs, i64 rows, i64 columns,
                          i64 sourceStride, i64 resultStride, const Hooks& hooks) {
  LATHE_SHARED(Word, tile, 32 * 33);
  const int lane = threadIdx.x & 31, line = threadIdx.x >> 5;
  const i64 row = (i64)blockIdx.x * 32, step = (i64)gridDim.y * 32;
  for (i64 pair = blockIdx.z; pair < pairs; pair += gridDim.z) {
    const Word* from = x + hooks.from(pair);
    Word* to = y + hooks.to(pair);
    for (i64 column = (i64)blockIdx.y * 32; column < columns; column += step) {
      for (int i = line; i < 32; i += 8)
        if (row + lane < rows && column + i < columns)
          tile[i * 33 + lane] = from[(column + i) * sourceStride + row + lane];
      block_sync();
      for (int i = line; i < 32; i += 8)
        if (row + i < rows && column + lane < columns)
          to[(row + i) * resultStride + column + lane] = tile[lane * 33 + i];
      block_sync();
    }
  }
}
