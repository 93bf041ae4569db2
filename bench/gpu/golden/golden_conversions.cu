// SPDX-License-Identifier: Apache-2.0
// Conversions: `in` holds n words whose upper halves take every value, then n words in f16's range.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(256)
    golden_conversions(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  const float x = bit_cast<float>(in[i]), y = bit_cast<float>(in[n + i]);
  const float beside = bit_cast<float>(in[n + (i ^ 1)]);
  out[i] = to_bf16(x).bits;
  out[n + i] = to_f16(y).bits;
  out[2 * n + i] = bit_cast<u32>(to_f32(f16{(u16)i}));
  out[3 * n + i] = bit_cast<u32>(to_f32(bf16{(u16)i}));
  out[4 * n + i] = pack_bf16x2(y, beside);
  out[5 * n + i] = pack_f16x2(y, beside);
  out[6 * n + i] = (u32)convert<i32>(x);
  out[7 * n + i] = (u32)convert<u8>(x) | (u32)(u8)convert<i8>(x) << 8 | (u32)to_bool(x) << 16;
}
