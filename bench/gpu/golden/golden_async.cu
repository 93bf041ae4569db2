// SPDX-License-Identifier: Apache-2.0
// Copies that land later: cp.async groups of 16, 8 and 4 bytes, whole and cut short, and a bulk
// copy counted by an mbarrier that two threads also arrive at. n is the number of 16-byte words.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(128)
    golden_async(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  LATHE_SHARED(uint4, s, 512);
  LATHE_SHARED(u64, bar, 1);
  const u32 t = threadIdx.x;
  const uint4* from = (const uint4*)in;
  uint4* to = (uint4*)out;
  if (t == 0) {
    mbar_init(bar, 3);
    mbar_init_fence();
  }
  block_sync();
  if (t == 0) {
    mbar_arrive_expect_tx(bar, 2048);
    bulk_load(s + 384, from + 128, 2048, bar);
  }
  if (t == 40 || t == 90) mbar_arrive(bar);
  cp_async_16(smem_addr(s + t), from + (t ^ 5));
  cp_async_commit();
  const u32 second = smem_addr(s + 128 + t);
  cp_async_8(second, (const uint2*)(from + t));
  cp_async_4(second + 8, (const u32*)(from + (t ^ 1)));
  cp_async_4(second + 12, (const u32*)(from + (t ^ 2)), (int)(t & 1) * 4);
  cp_async_commit();
  const u32 third = smem_addr(s + 256 + t);
  if (t & 1)
    cp_async_16(third, from + t, (int)(t >> 1) % 5 * 4);
  else {
    cp_async_8(third, (const uint2*)(from + t), (int)(t >> 1) % 3 * 4);
    cp_async_8(third + 8, (const uint2*)(from + t) + 1);
  }
  cp_async_commit();
  cp_async_wait<2>();
  block_sync();
  to[t] = s[t ^ 64];
  cp_async_wait<1>();
  block_sync();
  to[n + t] = s[128 + (t ^ 64)];
  cp_async_wait<0>();
  block_sync();
  to[2 * n + t] = s[256 + (t ^ 64)];
  mbar_wait(bar, 0);
  to[3 * n + t] = s[384 + (t ^ 3)];
}
