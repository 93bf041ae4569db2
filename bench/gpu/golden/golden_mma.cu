// SPDX-License-Identifier: Apache-2.0
// mma.sync m16n8k16, one block for each tile: blocks 0-255 place a single 1 in A (lane b / 8,
// element b % 8) against small integers in B, blocks 256-383 a single 1 in B (lane, element of
// (b - 256)) against small integers in A, the others take A, B and C from `in`. bf16, then f16.
#include "lathe_device.cuh"
LT_FN u32 golden_pair(bool half, float lo, float hi) {
  return half ? pack_f16x2(lo, hi) : pack_bf16x2(lo, hi);
}
LT_FN void golden_tile(const u32* in, u32* out, long long n, bool half) {
  const u32 l = lane_id(), b = blockIdx.x;
  float a[8], e[4];
  frag_c c{{0, 0, 0, 0}};
  const bool oneInA = b < 256, oneInB = !oneInA && b < 384;
  for (u32 i = 0; i < 8; ++i)
    a[i] = oneInA ? (b == l * 8 + i ? 1.0f : 0.0f) : (float)(l * 8 + i + 1);
  for (u32 i = 0; i < 4; ++i)
    e[i] = oneInB ? (b - 256 == l * 4 + i ? 1.0f : 0.0f) : (float)(l * 4 + i + 1);
  if (!oneInA && !oneInB) {
    const u32* tile = in + (b - 384) * 512;
    for (u32 i = 0; i < 8; ++i) a[i] = bit_cast<float>(tile[l * 8 + i]);
    for (u32 i = 0; i < 4; ++i) e[i] = bit_cast<float>(tile[256 + l * 4 + i]);
    for (u32 i = 0; i < 4; ++i) c.r[i] = bit_cast<float>(tile[384 + l * 4 + i]);
  }
  frag_a f;
  for (int i = 0; i < 4; ++i) f.r[i] = golden_pair(half, a[2 * i], a[2 * i + 1]);
  const u32 b0 = golden_pair(half, e[0], e[1]), b1 = golden_pair(half, e[2], e[3]);
  if (half)
    mma_f16(c, f, b0, b1);
  else
    mma_bf16(c, f, b0, b1);
  for (u32 i = 0; i < 4; ++i) out[b * 128 + l * 4 + i] = bit_cast<u32>(c.r[i]);
}
extern "C" __global__ void __launch_bounds__(32)
    golden_mma(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  golden_tile(in, out, n, false);
  golden_tile(in, out + n * 128, n, true);
}
