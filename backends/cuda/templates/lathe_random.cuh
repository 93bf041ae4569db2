// SPDX-License-Identifier: Apache-2.0
// lathe.random_bits: Philox-4x32-10 (Salmon et al., SC 2011). Word n is word n % 4 of the block
// with counter n / 4 under the 64-bit key `seed`.
#pragma once
#include "lathe_device.cuh"

LT_FN uint4 philox(u64 counter, u64 key) {
  uint4 c = make_uint4((u32)counter, (u32)(counter >> 32), 0, 0);
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 a = (u64)0xD2511F53u * c.x, b = (u64)0xCD9E8D57u * c.z;
    c = make_uint4((u32)(b >> 32) ^ c.y ^ k0, (u32)b, (u32)(a >> 32) ^ c.w ^ k1, (u32)a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

LT_FN vec<i32, 4> random_words(i64 block, i64 seed) {
  return bit_cast<vec<i32, 4>>(philox((u64)block, (u64)seed));
}

LT_FN void randomBits(i32* y, const i64* seed, i64 count) {
  const i64 step = (i64)gridDim.x * blockDim.x;
  const u64 key = (u64)*seed;
  for (i64 block = (i64)blockIdx.x * blockDim.x + threadIdx.x; block * 4 < count; block += step) {
    const uint4 words = philox((u64)block, key);
    if (block * 4 + 4 <= count) {
      st_global_16(y + block * 4, words);
    } else {
      y[block * 4] = (i32)words.x;
      if (block * 4 + 1 < count) y[block * 4 + 1] = (i32)words.y;
      if (block * 4 + 2 < count) y[block * 4 + 2] = (i32)words.z;
    }
  }
}
