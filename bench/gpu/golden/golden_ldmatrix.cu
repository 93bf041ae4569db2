// SPDX-License-Identifier: Apache-2.0
// ldmatrix: 2-byte elements that hold their own index; lane l points at the 16-byte row 5 l % 32.
#include "lathe_device.cuh"
extern "C" __global__ void __launch_bounds__(32)
    golden_ldmatrix(const u32* __restrict__ in, u32* __restrict__ out, long long n) {
  LATHE_SHARED(u16, s, 256);
  const u32 l = lane_id();
  for (u32 i = 0; i < 8; ++i) s[l * 8 + i] = (u16)(l * 8 + i);
  block_sync();
  const u32 address = smem_addr(s) + l * 5 % 32 * 16;
  u32 four[4], two[2];
  ldmatrix_x4(four, address);
  for (int i = 0; i < 4; ++i) out[i * n + l] = four[i];
  ldmatrix_x4_trans(four, address);
  for (int i = 0; i < 4; ++i) out[(4 + i) * n + l] = four[i];
  ldmatrix_x2(two, address);
  for (int i = 0; i < 2; ++i) out[(8 + i) * n + l] = two[i];
  ldmatrix_x2_trans(two, address);
  for (int i = 0; i < 2; ++i) out[(10 + i) * n + l] = two[i];
}
