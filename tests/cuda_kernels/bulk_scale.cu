// SPDX-License-Identifier: Apache-2.0
// out[i] = 2 * in[i]; f32, tiles of 1024 through a two-stage bulk-copy ring with mbarriers. 128 threads; n % 1024 == 0
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(128)
bulk_scale(const float* __restrict__ in, float* __restrict__ out, int tiles) {
  LATHE_SHARED(float, ring, 2048);
  LATHE_SHARED(u64, full, 2);
  if (threadIdx.x == 0) {
    mbar_init(&full[0], 1);
    mbar_init(&full[1], 1);
    mbar_init_fence();
  }
  block_sync();
  grid_dep_wait();
  if (threadIdx.x == 0)
    for (int s = 0; s < 2 && s < tiles; ++s) {
      mbar_arrive_expect_tx(&full[s], 4096);
      bulk_load(&ring[s * 1024], in + s * 1024, 4096, &full[s]);
    }
  for (int j = 0; j < tiles; ++j) {
    const int s = j & 1;
    mbar_wait(&full[s], (u32)(j >> 1) & 1);
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int c = (int)threadIdx.x + i * 128;
      out[j * 1024 + c] = 2.0f * ring[s * 1024 + c];
    }
    block_sync();
    if (threadIdx.x == 0 && j + 2 < tiles) {
      mbar_arrive_expect_tx(&full[s], 4096);
      bulk_load(&ring[s * 1024], in + (j + 2) * 1024, 4096, &full[s]);
    }
  }
  grid_dep_launch();
}
