// SPDX-License-Identifier: Apache-2.0
// Reductions over warps, groups of lanes and blocks: floats in the order that the header fixes.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
    golden_reductions(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  const u32 w = in[i];
  const float v = bit_cast<float>(w), near = bit_cast<float>((w & 0x807fffffu) | 0x3f000000u);
  const arg_pair<float> pair{v, i};
  const u32 rows[] = {bit_cast<u32>(warp_sum(v)),
                      bit_cast<u32>(warp_max(v)),
                      bit_cast<u32>(warp_min(v)),
                      bit_cast<u32>(warp_prod(near)),
                      bit_cast<u32>(group_reduce<8>(v, Sum{})),
                      bit_cast<u32>(group_reduce<2>(v, Max{})),
                      bit_cast<u32>(block_sum<256>(v)),
                      bit_cast<u32>(block_max<256>(v)),
                      bit_cast<u32>(block_min<256>(v)),
                      bit_cast<u32>(block_prod<256>(near)),
                      warp_reduce(w, Sum{}),
                      block_reduce<256>(w, Or{}),
                      block_reduce<256>(w, And{}),
                      (u32)block_reduce<256>(pair, ArgMax{}).index,
                      (u32)block_reduce<256>(pair, ArgMin{}).index,
                      (u32)block_any<256>(w == in[0]) | (u32)block_all<256>(w != 0) << 1,
                      (u32)(bit_cast<u64>(block_sum<256>((double)v)) >> 32)};
#pragma unroll
  for (int k = 0; k < 17; ++k) out[k * n + i] = rows[k];
}
