// SPDX-License-Identifier: Apache-2.0
// out = in^T for 32 x 32 tiles of f32, one warp per tile, two tiles per block; only warp_sync orders the shared-memory traffic
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(64)
transpose(const float* __restrict__ in, float* __restrict__ out, int n) {
  LATHE_SHARED(float, tile, 2 * 32 * 33);
  const int lane = threadIdx.x & 31, warp = (int)(threadIdx.x >> 5);
  const int x = ((int)blockIdx.x * 2 + warp) * 32, y = (int)blockIdx.y * 32;
  float* t = tile + warp * 32 * 33;
  for (int r = 0; r < 32; ++r) t[r * 33 + lane] = in[(y + r) * n + x + lane];
  warp_sync();
  for (int r = 0; r < 32; ++r) out[(x + r) * n + y + lane] = t[lane * 33 + r];
}
