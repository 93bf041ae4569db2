// SPDX-License-Identifier: Apache-2.0
// Blocks that meet through counters in global memory: the last block adds what all have written.
// `out`: n words of sums, then the counter, the ticket counter, a status word of two.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(64)
    golden_grid(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  const long long i = blockIdx.x * 64ll + threadIdx.x;
  grid_dep_launch();
  grid_dep_wait();
  out[i] = in[i] >> 8;
  counter_add_acq_rel(out + n + 1, 1);
  const bool last = grid_last_block(out + n, gridDim.x);
  if (last) {
    u32 sum = 0;
    for (u32 b = 0; b < gridDim.x; ++b) sum += out[b * 64 + threadIdx.x];
    block_sync();
    if (threadIdx.x == 0) {
      counter_store_release(out + n + 2, counter_load_acquire(out + n + 1) + 7);
      lt_report_index((i64*)(out + n + 4), 12345);
    }
    out[n + 8 + threadIdx.x] = sum;
  }
}
