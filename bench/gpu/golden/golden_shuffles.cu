// SPDX-License-Identifier: Apache-2.0
// Shuffles of elements of 1 to 16 bytes within a warp, and ballots. `out`: n words for each row.
#include "lathe_device.cuh"
template <class T>
LT_FN void golden_rows(u32* out, long long n, T v, u32 (*word)(T)) {
  const int l = (int)lane_id();
  const T rows[] = {shfl_xor(v, 1),     shfl_xor(v, 16),     shfl_xor(v, 31), shfl_idx(v, 5),
                    shfl_idx(v, l * 7), shfl_idx(v, l + 40), shfl_down(v, 1), shfl_down(v, 24),
                    shfl_up(v, 1),      shfl_up(v, 24)};
#pragma unroll
  for (int k = 0; k < 10; ++k) out[k * n + l] = word(rows[k]);
}
LT_FN u32 golden_u32(u32 x) { return x; }
LT_FN u32 golden_u8(u8 x) { return x; }
LT_FN u32 golden_u16(u16 x) { return x; }
LT_FN u32 golden_f64(double x) { return (u32)(bit_cast<u64>(x) >> 32); }
LT_FN u32 golden_uint4(uint4 x) { return x.x ^ x.y << 8 ^ x.z << 16 ^ x.w << 24; }
extern "C" __global__ void __launch_bounds__(32)
    golden_shuffles(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  const u32 l = lane_id(), v = in[l];
  golden_rows<u32>(out, n, v, golden_u32);
  golden_rows<u8>(out + 10 * n, n, (u8)v, golden_u8);
  golden_rows<u16>(out + 20 * n, n, (u16)v, golden_u16);
  golden_rows<double>(out + 30 * n, n, (double)v, golden_f64);
  golden_rows<uint4>(out + 40 * n, n, make_uint4(l, l + 1, l + 2, l + 3), golden_uint4);
  out[50 * n + l] = warp_ballot(v & 1);
  out[51 * n + l] = warp_ballot(l < 3 || l == 31);
  out[52 * n + l] = (u32)warp_any(l == 9) | (u32)warp_all(l < 32) << 1 | (u32)warp_all(l < 31) << 2;
  warp_sync();
}
