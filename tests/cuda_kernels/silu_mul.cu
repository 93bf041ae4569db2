// SPDX-License-Identifier: Apache-2.0
// out[i] = silu(gate[i]) * up[i]; bf16, 16-byte vectors; n is a multiple of 8
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
silu_mul(const bf16* __restrict__ gate, const bf16* __restrict__ up, bf16* __restrict__ out, int n) {
  const int i = (int)(blockIdx.x * 256 + threadIdx.x) * 8;
  if (i >= n) return;
  const f32x8 g = load_bf16x8(gate + i);
  const f32x8 u = load_bf16x8(up + i);
  f32x8 o;
  #pragma unroll
  for (int j = 0; j < 8; ++j) o.v[j] = g.v[j] / (1.0f + fast_exp(-g.v[j])) * u.v[j];
  store_bf16x8(out + i, o);
}
