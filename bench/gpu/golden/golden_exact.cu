// SPDX-License-Identifier: Apache-2.0
// Arithmetic that IEEE 754 defines to the last bit, in f32 (n words each) and f64 (n words each).
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
    golden_exact(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  const float a = bit_cast<float>(in[i]), b = bit_cast<float>(in[n + i]);
  const float c = bit_cast<float>(in[2 * n + i]);
  const double e = (double)a * 1.0000000001, f = (double)b * 0.9999999999, g = (double)c;
  const float singles[] = {a / b,           a * b + c,     math_fma(a, b, c), math_sqrt(a),
                           math_rsqrt(a),   math_floor(a), math_ceil(a),      math_rint(a),
                           math_fmod(a, b), math_abs(a),   max_nan(a, b),     min_nan(a, b)};
  const double doubles[] = {e / f,           e * f + g,     math_fma(e, f, g), math_sqrt(e),
                            math_rsqrt(e),   math_floor(e), math_ceil(e),      math_rint(e),
                            math_fmod(e, f), math_abs(e),   max_nan(e, f),     min_nan(e, f)};
#pragma unroll
  for (int k = 0; k < 12; ++k) {
    out[k * n + i] = bit_cast<u32>(singles[k]);
    // The upper and the lower word folded: equal if and, but for chance, only if both are.
    const u64 bits = bit_cast<u64>(doubles[k] != doubles[k] ? 0.0 : doubles[k]);
    out[(12 + k) * n + i] = (u32)bits ^ (u32)(bits >> 32) * 0x9e3779b9u;
  }
}
