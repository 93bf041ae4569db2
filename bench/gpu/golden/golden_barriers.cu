// SPDX-License-Identifier: Apache-2.0
// A barrier of two of four warps hands values over while the others do not take part.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(128)
    golden_barriers(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  LATHE_SHARED(u32, s, 128);
  const u32 t = threadIdx.x;
  s[t] = in[t];
  named_sync(1 + (int)(warp_id() >> 1), 64);
  const u32 v = s[t ^ 63];
  block_sync();
  s[t] = v + 1;
  block_sync();
  out[t] = v;
  out[n + t] = s[127 - t];
}
