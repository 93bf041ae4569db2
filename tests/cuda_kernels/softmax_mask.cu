// SPDX-License-Identifier: Apache-2.0
// out[r,:] = softmax(scale * x[r,:] where mask[r,:] != 0); f32, online max and sum; one block of 128 threads per row, any cols
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(128)
softmax_mask(const float* __restrict__ x, const u8* __restrict__ mask, float* __restrict__ out, int cols, float scale) {
  LATHE_SHARED(float, sm, 4);
  LATHE_SHARED(float, sl, 4);
  const u64 base = (u64)blockIdx.x * cols;
  const float k = scale * 1.4426950408889634f;
  float m = -1e30f, l = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) {
    if (!mask[base + c]) continue;
    const float v = x[base + c] * k, mn = fmaxf(m, v);
    l = fmaf(l, fast_ex2(m - mn), fast_ex2(v - mn));
    m = mn;
  }
  const float wm = warp_max(m);
  const float wl = warp_sum(l * fast_ex2(m - wm));
  if ((threadIdx.x & 31) == 0) { sm[threadIdx.x >> 5] = wm; sl[threadIdx.x >> 5] = wl; }
  block_sync();
  float bm = sm[0], bl = 0.0f;
  #pragma unroll
  for (int w = 1; w < 4; ++w) bm = fmaxf(bm, sm[w]);
  #pragma unroll
  for (int w = 0; w < 4; ++w) bl = fmaf(sl[w], fast_ex2(sm[w] - bm), bl);
  const float inv = bl > 0.0f ? 1.0f / bl : 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128)
    out[base + c] = mask[base + c] ? fast_ex2(x[base + c] * k - bm) * inv : 0.0f;
}
