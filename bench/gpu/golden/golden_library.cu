// SPDX-License-Identifier: Apache-2.0
// Functions of the CUDA library, each with its documented error bound, and the fast ones.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
    golden_library(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  const float x = bit_cast<float>(in[i]), y = bit_cast<float>(in[n + i]), p = math_abs(x);
  const float values[] = {math_exp(x),   math_exp2(x), math_log(p),    math_sin(x),  math_cos(x),
                          math_tanh(x),  math_erf(x),  math_pow(p, y), fast_ex2(x),  fast_lg2(p),
                          fast_rsqrt(p), fast_rcp(x),  fast_div(x, y), fast_tanh(x), fast_exp(x)};
#pragma unroll
  for (int k = 0; k < 15; ++k) out[k * n + i] = bit_cast<u32>(values[k]);
  const double d = x, e = y, q = p;
  const double wide[] = {math_exp(d), math_exp2(d), math_log(q), math_sin(d),
                         math_cos(d), math_tanh(d), math_erf(d), math_pow(q, e)};
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const u64 bits = bit_cast<u64>(wide[k]);
    out[(15 + 2 * k) * n + 2 * i] = (u32)bits;
    out[(15 + 2 * k) * n + 2 * i + 1] = (u32)(bits >> 32);
  }
}
