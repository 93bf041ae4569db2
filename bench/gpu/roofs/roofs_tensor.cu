// SPDX-License-Identifier: Apache-2.0
// The peak of mma.sync bf16 with operands in registers, on random data and on zeros. (wgmma reaches
// more; the matrix peak that models are held against is the best product of torch-prefill.json.)
#include "roofs.cuh"

namespace {

constexpr int kIterations = 20000, kTiles = 16;

__global__ void __launch_bounds__(256) products(const u32* from, float* out, int iterations) {
  u32 a[4][4], b[4][2];
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) a[i][j] = from[(t * 24 + i * 4 + j) & 0xfffff];
    for (int j = 0; j < 2; ++j) b[i][j] = from[(t * 24 + 16 + i * 2 + j) & 0xfffff];
  }
  float c[kTiles][4] = {};
  for (int it = 0; it < iterations; ++it)
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[m][0]), "+f"(c[m][1]), "+f"(c[m][2]), "+f"(c[m][3])
          : "r"(a[m >> 2][0]), "r"(a[m >> 2][1]), "r"(a[m >> 2][2]), "r"(a[m >> 2][3]),
            "r"(b[m & 3][0]), "r"(b[m & 3][1]));
  float sum = 0;
  for (int m = 0; m < kTiles; ++m)
    for (int j = 0; j < 4; ++j) sum += c[m][j];
  out[t] = sum;
}

}  // namespace

void measureTensorCores() {
  const u64 bytes = 4 << 20;
  uint4* from = nullptr;
  float* out = nullptr;
  if (!ok(cudaMalloc(&from, bytes), "memory") || !ok(cudaMalloc(&out, bytes), "memory")) return;
  auto measure = [&](const std::string& key, int blocksEach) {
    const int blocks = multiprocessors() * blocksEach;
    const Times t =
        timeMs(11, [&] { products<<<blocks, 256>>>((const u32*)from, out, kIterations); });
    if (!ok(cudaGetLastError(), key)) return;
    const double flop = (double)blocks * 8 * kIterations * kTiles * 4096;
    put(key, "{\"tflops\": " + number(flop / t.median / 1e9) +
                 ", \"best\": " + number(flop / t.least / 1e9) +
                 ", \"worst\": " + number(flop / t.greatest / 1e9) + "}");
  };
  fillRandom(from, bytes / 16);
  measure("mma_sync_bf16_b1", 1);
  measure("mma_sync_bf16_b2", 2);
  cudaMemset(from, 0, bytes);
  measure("mma_sync_bf16_zeros_b2", 2);
  cudaFree(from);
  cudaFree(out);
}
