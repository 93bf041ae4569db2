// SPDX-License-Identifier: Apache-2.0
// y[n] = sum_k w[n,k] * x[k]; bf16 weights and input, f32 out. One warp per row, 8 rows per block, grid = (n / 8, splits).
// Partial sums go to ws[split][n]; the last block of a row group adds them in split order (deterministic). counter[] must be zero.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
gemv_splitk(const bf16* __restrict__ w, const bf16* __restrict__ x, float* y, float* ws, u32* counter, int n, int k) {
  LATHE_SHARED(u32, last, 1);
  const int lane = threadIdx.x & 31, row = (int)(blockIdx.x * 8 + (threadIdx.x >> 5)), per = k / (int)gridDim.y;
  const bf16* wr = w + (u64)row * k;
  const int k1 = ((int)blockIdx.y + 1) * per;
  float s = 0.0f;
  for (int c = (int)blockIdx.y * per + lane * 8; c < k1; c += 256) {
    const f32x8 a = load_bf16x8(wr + c), b = load_bf16x8(x + c);
    #pragma unroll
    for (int j = 0; j < 8; ++j) s = fmaf(a.v[j], b.v[j], s);
  }
  s = warp_sum(s);
  if (lane == 0) ws[blockIdx.y * n + row] = s;
  block_sync();
  if (threadIdx.x == 0) last[0] = counter_add_acq_rel(counter + blockIdx.x, 1) == gridDim.y - 1;
  block_sync();
  if (last[0] && threadIdx.x < 8) {
    const int r = (int)(blockIdx.x * 8 + threadIdx.x);
    float t = 0.0f;
    for (u32 i = 0; i < gridDim.y; ++i) t += ws[i * n + r];
    y[r] = t;
  }
}
