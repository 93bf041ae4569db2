// SPDX-License-Identifier: Apache-2.0
// Causal attention, bf16, head dim 64; q, k, v, o are [heads][S][64], S % 64 == 0. Block = 64 query rows, 4 warps of 16.
// K and V tiles of 64 keys, double buffered with cp.async, 16-byte chunks XOR-swizzled by row. grid = (S / 64, heads).
#include "lathe_device.cuh"

static __device__ __forceinline__ u32 at(u32 base, int row, int chunk) { return base + (u32)(row * 128 + ((chunk ^ (row & 7)) * 16)); }

static __device__ __forceinline__ void load_tile(u32 dst, const bf16* src) {  // 64 x 64 bf16 = 512 chunks of 16 bytes
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int c = (int)threadIdx.x + i * 128;
    cp_async_16(at(dst, c >> 3, c & 7), src + c * 8);
  }
}

extern "C" __global__ void __launch_bounds__(128)
attention(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v, bf16* __restrict__ o, int S, float scale) {
  LATHE_DYN_SHARED(smem);  // Q 8 KiB | K 2 x 8 KiB | V 2 x 8 KiB
  const u32 sq = smem_addr(smem), sk = sq + 8192, sv = sq + 24576;
  const int lane = threadIdx.x & 31, warp = (int)(threadIdx.x >> 5), g = lane >> 2, t = lane & 3;
  const int q0 = (int)blockIdx.x * 64;
  const u64 head = (u64)blockIdx.y * S * 64;
  const int tiles = (int)blockIdx.x + 1;

  load_tile(sq, q + head + (u64)q0 * 64);
  load_tile(sk, k + head);
  load_tile(sv, v + head);
  cp_async_commit();

  frag_a qa[4];
  frag_c acc[8];
  #pragma unroll
  for (int d = 0; d < 8; ++d) acc[d] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};
  float m[2] = {-1e30f, -1e30f}, l[2] = {0.0f, 0.0f};
  const float k2 = scale * 1.4426950408889634f;

  for (int j = 0; j < tiles; ++j) {
    const u32 buf = (u32)(j & 1) * 8192;
    if (j + 1 < tiles) {
      load_tile(sk + (buf ^ 8192), k + head + (u64)(j + 1) * 4096);
      load_tile(sv + (buf ^ 8192), v + head + (u64)(j + 1) * 4096);
    }
    cp_async_commit();
    cp_async_wait<1>();
    block_sync();
    if (j == 0) {
      #pragma unroll
      for (int kk = 0; kk < 4; ++kk) ldmatrix_x4(qa[kk].r, at(sq, warp * 16 + (lane & 15), kk * 2 + (lane >> 4)));
    }
    frag_c s[8];
    #pragma unroll
    for (int n = 0; n < 8; ++n) s[n] = frag_c{{0.0f, 0.0f, 0.0f, 0.0f}};
    #pragma unroll
    for (int kk = 0; kk < 4; ++kk) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        u32 b[4];
        ldmatrix_x4(b, at(sk + buf, n * 16 + (lane & 7) + (lane >> 4) * 8, kk * 2 + ((lane >> 3) & 1)));
        mma_bf16(s[2 * n], qa[kk], b[0], b[1]);
        mma_bf16(s[2 * n + 1], qa[kk], b[2], b[3]);
      }
    }
    #pragma unroll
    for (int h = 0; h < 2; ++h) {  // rows g and g + 8 of the warp
      const int row = q0 + warp * 16 + g + 8 * h;
      float mx = m[h];
      #pragma unroll
      for (int n = 0; n < 8; ++n)
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n].r[2 * h + e];
          x = (j * 64 + n * 8 + 2 * t + e <= row) ? x * k2 : -1e30f;
          mx = fmaxf(mx, x);
        }
      mx = fmaxf(mx, shfl_xor(mx, 1));
      mx = fmaxf(mx, shfl_xor(mx, 2));
      const float c = fast_ex2(m[h] - mx);
      m[h] = mx;
      float sum = 0.0f;
      #pragma unroll
      for (int n = 0; n < 8; ++n)
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n].r[2 * h + e];
          x = fast_ex2(x - mx);
          sum += x;
        }
      l[h] = fmaf(l[h], c, sum);
      #pragma unroll
      for (int d = 0; d < 8; ++d) { acc[d].r[2 * h] *= c; acc[d].r[2 * h + 1] *= c; }
    }
    #pragma unroll
    for (int kk = 0; kk < 4; ++kk) {
      frag_a p;
      p.r[0] = pack_bf16x2(s[2 * kk].r[0], s[2 * kk].r[1]);
      p.r[1] = pack_bf16x2(s[2 * kk].r[2], s[2 * kk].r[3]);
      p.r[2] = pack_bf16x2(s[2 * kk + 1].r[0], s[2 * kk + 1].r[1]);
      p.r[3] = pack_bf16x2(s[2 * kk + 1].r[2], s[2 * kk + 1].r[3]);
      #pragma unroll
      for (int d = 0; d < 4; ++d) {
        u32 b[4];
        ldmatrix_x4_trans(b, at(sv + buf, kk * 16 + (lane & 15), d * 2 + (lane >> 4)));
        mma_bf16(acc[2 * d], p, b[0], b[1]);
        mma_bf16(acc[2 * d + 1], p, b[2], b[3]);
      }
    }
    block_sync();
  }
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = l[h];
    sum += shfl_xor(sum, 1);
    sum += shfl_xor(sum, 2);
    const float inv = 1.0f / sum;
    u32* dst = (u32*)(o + head + (u64)(q0 + warp * 16 + g + 8 * h) * 64);
    #pragma unroll
    for (int d = 0; d < 8; ++d) dst[d * 4 + t] = pack_bf16x2(acc[d].r[2 * h] * inv, acc[d].r[2 * h + 1] * inv);
  }
}
