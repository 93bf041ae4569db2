// SPDX-License-Identifier: Apache-2.0
// Loads and stores of 4, 8 and 16 bytes, through global memory (both read paths) and shared memory
// (by pointer and by address), each permuted by lane; n is the number of 16-byte words of a block.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(128)
    golden_memory(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  LATHE_SHARED(uint4, s, 128);
  const u32 t = threadIdx.x;
  const uint4* words = (const uint4*)in;
  uint4* to = (uint4*)out;
  prefetch_l2(words + t);
  if (t == 0) prefetch_l2_bulk(words, 128 * 16);
  st_global_16(to + t, ld_global_16(words + (t ^ 3)));
  st_global_16(to + n + t, ld_global_nc_16(words + (t ^ 9)));
  st_global_8((uint2*)(to + 2 * n) + t, ld_global_8((const uint2*)words + (t ^ 17)));
  st_global_8((uint2*)(to + 2 * n) + 128 + t, ld_global_nc_8((const uint2*)words + (t ^ 5)));
  st_global_4((u32*)(to + 3 * n) + t, ld_global_4((const u32*)words + (t ^ 33)));
  st_global_4((u32*)(to + 3 * n) + 128 + t, ld_global_nc_4((const u32*)words + (t ^ 65)));
  st_global_4((u32*)(to + 3 * n) + 256 + t, 0);
  st_global_4((u32*)(to + 3 * n) + 384 + t, t);
  st_shared_16(s + (t ^ 1), words[t]);
  block_sync();
  to[4 * n + t] = ld_shared_16(smem_addr(s + (t ^ 6)));
  to[5 * n + t] = ld_shared_16(s + (t ^ 12));
  const uint2 pair = ld_shared_8(smem_addr(s + t) + 8);
  const u32 one = ld_shared_4(smem_addr(s + t) + 4);
  block_sync();
  st_shared_16(smem_addr(s + t), make_uint4(one, pair.x, pair.y, t));
  st_shared_8(smem_addr(s + t), make_uint2(pair.y, pair.x));
  st_shared_4(smem_addr(s + t) + 8, one ^ t);
  block_sync();
  const uint2 high = ld_shared_8((const uint2*)(s + (t ^ 2)) + 1);
  to[6 * n + t] = make_uint4(high.x, high.y, ld_shared_4((const u32*)(s + t)), t);
  block_sync();
  st_shared_8((uint2*)(s + t) + 1, make_uint2(t, ~t));
  st_shared_4((u32*)(s + t) + 1, t * 3);
  block_sync();
  to[7 * n + t] = s[t ^ 7];
}
