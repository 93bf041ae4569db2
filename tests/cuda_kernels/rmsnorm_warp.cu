// SPDX-License-Identifier: Apache-2.0
// out[r,:] = x[r,:] * rsqrt(mean(x^2) + eps) * w; one warp per row, 4 rows per block; cols % 256 == 0
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(128)
rmsnorm_warp(const bf16* __restrict__ x, const bf16* __restrict__ w, bf16* __restrict__ out, int rows, int cols, float eps) {
  const int lane = threadIdx.x & 31, row = (int)(blockIdx.x * 4 + (threadIdx.x >> 5));
  if (row >= rows) return;  // warp-uniform
  const bf16* xr = x + (u64)row * cols;
  float ss = 0.0f;
  for (int c = lane * 8; c < cols; c += 256) {
    const f32x8 v = load_bf16x8(xr + c);
    #pragma unroll
    for (int j = 0; j < 8; ++j) ss = fmaf(v.v[j], v.v[j], ss);
  }
  const float r = fast_rsqrt(warp_sum(ss) / (float)cols + eps);
  for (int c = lane * 8; c < cols; c += 256) {
    const f32x8 v = load_bf16x8(xr + c), g = load_bf16x8(w + c);
    f32x8 o;
    #pragma unroll
    for (int j = 0; j < 8; ++j) o.v[j] = v.v[j] * r * g.v[j];
    store_bf16x8(out + (u64)row * cols + c, o);
  }
}
