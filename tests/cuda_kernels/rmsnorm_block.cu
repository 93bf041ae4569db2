// SPDX-License-Identifier: Apache-2.0
// As rmsnorm_warp, one block of 256 threads per row, the row kept in registers; cols == 2048
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
rmsnorm_block(const bf16* __restrict__ x, const bf16* __restrict__ w, bf16* __restrict__ out, float eps) {
  constexpr int COLS = 2048;
  const u64 at = (u64)blockIdx.x * COLS + threadIdx.x * 8;
  const f32x8 v = load_bf16x8(x + at);
  float ss = 0.0f;
  #pragma unroll
  for (int j = 0; j < 8; ++j) ss = fmaf(v.v[j], v.v[j], ss);
  const float r = fast_rsqrt(block_sum<256>(ss) / (float)COLS + eps);
  const f32x8 g = load_bf16x8(w + threadIdx.x * 8);
  f32x8 o;
  #pragma unroll
  for (int j = 0; j < 8; ++j) o.v[j] = v.v[j] * r * g.v[j];
  store_bf16x8(out + at, o);
}
