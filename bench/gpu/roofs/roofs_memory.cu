// SPDX-License-Identifier: Apache-2.0
// Read, copy and cache bandwidth; cold reads of one layer's weights, launch included.
#include "roofs.cuh"

namespace {

__device__ __forceinline__ uint4 loadStreamed(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
__device__ __forceinline__ uint4 loadCached(const uint4* p) {  // in L2, not in L1
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
__device__ __forceinline__ u32 fold(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }
// A store that never happens keeps the loads.
__device__ __forceinline__ void keep(u32 value, u32* sink) {
  if (value == 0x12345679u) *sink = value;
}

// What is left from `i` on where less than U steps are: its loads are under way together as well.
template <int U>
__device__ __forceinline__ u32 foldRest(const uint4* p, u64 i, u64 n, u64 step) {
  uint4 v[U] = {};
#pragma unroll
  for (int j = 0; j < U; ++j)
    if (i + j * step < n) v[j] = loadStreamed(p + i + j * step);
  u32 all = 0;
#pragma unroll
  for (int j = 0; j < U; ++j) all ^= fold(v[j]);
  return all;
}

// Every block reads a part of its own; U loads of 16 bytes per thread are under way.
template <int U>
__global__ void __launch_bounds__(512) readParts(const uint4* __restrict__ p, u64 n, u32* sink) {
  const u64 part = n / gridDim.x;
  const uint4* from = p + part * blockIdx.x;
  u32 all = 0;
  u64 i = threadIdx.x;
  for (; i + (u64)(U - 1) * blockDim.x < part; i += (u64)U * blockDim.x) {
    uint4 v[U];
#pragma unroll
    for (int j = 0; j < U; ++j) v[j] = loadStreamed(from + i + (u64)j * blockDim.x);
#pragma unroll
    for (int j = 0; j < U; ++j) all ^= fold(v[j]);
  }
  keep(all ^ foldRest<U>(from, i, part, blockDim.x), sink);
}

template <int U>
__global__ void __launch_bounds__(512) readStrided(const uint4* __restrict__ p, u64 n, u32* sink) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  u32 all = 0;
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  for (; i + (U - 1) * step < n; i += U * step) {
    uint4 v[U];
#pragma unroll
    for (int j = 0; j < U; ++j) v[j] = loadStreamed(p + i + j * step);
#pragma unroll
    for (int j = 0; j < U; ++j) all ^= fold(v[j]);
  }
  keep(all ^ foldRest<U>(p, i, n, step), sink);
}

// Every block sweeps the same buffer, each from another place.
__global__ void __launch_bounds__(512)
    readCached(const uint4* __restrict__ p, u64 n, int sweeps, u32* sink) {
  u32 all = 0;
  const u64 step = (u64)blockDim.x * 4, start = (n / gridDim.x) * blockIdx.x / step * step;
  for (int s = 0; s < sweeps; ++s)
    for (u64 c = 0; c < n; c += step) {
      u64 i = start + c;
      if (i >= n) i -= n;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        all ^= fold(loadCached(p + i + threadIdx.x + (u64)j * blockDim.x));
    }
  keep(all, sink);
}

template <int U>
__global__ void __launch_bounds__(512)
    copyStrided(const uint4* __restrict__ p, uint4* __restrict__ q, u64 n) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  for (; i + (U - 1) * step < n; i += U * step) {
    uint4 v[U];
#pragma unroll
    for (int j = 0; j < U; ++j) v[j] = __ldcs(p + i + j * step);
#pragma unroll
    for (int j = 0; j < U; ++j) __stcs(q + i + j * step, v[j]);
  }
  for (; i < n; i += step) __stcs(q + i, __ldcs(p + i));
}

// The default division of L1 and shared memory, and the one that Lathe's kernels have.
template <int U>
void measureReads(const uint4* p, u64 n, u32* sink, bool mostShared) {
  const std::string unrolled = "_u" + std::to_string(U) + (mostShared ? "_most_shared" : "");
  const int share = mostShared ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutDefault;
  for (auto kernel : {&readParts<U>, &readStrided<U>})
    if (!ok(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, share),
            "carveout"))
      return;
  for (int threads : {256, 512})
    for (int blocks : {1, 2, 4}) {
      const Times t =
          timeMs(11, [&] { readParts<U><<<multiprocessors() * blocks, threads>>>(p, n, sink); });
      putBandwidth(
          "read_parts" + unrolled + "_t" + std::to_string(threads) + "_b" + std::to_string(blocks),
          (double)n * 16, t);
    }
  const Times t = timeMs(11, [&] { readStrided<U><<<multiprocessors() * 4, 512>>>(p, n, sink); });
  putBandwidth("read_strided" + unrolled + "_t512_b4", (double)n * 16, t);
}

void measureCopies(uint4* p, u64 n) {
  uint4* q = p + n / 2;
  for (int blocks : {2, 4})
    putBandwidth(
        "copy_b" + std::to_string(blocks) + "_read_and_written", (double)n * 16,
        timeMs(11, [&] { copyStrided<4><<<multiprocessors() * blocks, 512>>>(p, q, n / 2); }));
  putBandwidth("copy_memcpy_read_and_written", (double)n * 16,
               timeMs(11, [&] { cudaMemcpyAsync(q, p, n * 8, cudaMemcpyDeviceToDevice); }));
  putBandwidth("write_memset", (double)n * 16,
               timeMs(11, [&] { cudaMemsetAsync(p, 0x3f, n * 16); }));
  fillRandom(p, n);
}

}  // namespace

void measureMemory() {
  u64 bytes = 8ull << 30;
  uint4* p = nullptr;
  u32* sink = nullptr;
  while (cudaMalloc(&p, bytes) != cudaSuccess && bytes > (256ull << 20)) {
    cudaGetLastError();
    bytes /= 2;
  }
  if (!ok(cudaMalloc(&sink, 4), "memory")) return;
  put("buffer_bytes", std::to_string(bytes));
  const u64 n = bytes / 16;
  fillRandom(p, n);
  if (!ok(cudaDeviceSynchronize(), "fill")) return;
  for (bool mostShared : {false, true}) {
    measureReads<1>(p, n, sink, mostShared);
    measureReads<2>(p, n, sink, mostShared);
    measureReads<4>(p, n, sink, mostShared);
    measureReads<8>(p, n, sink, mostShared);
  }
  measureCopies(p, n);
  for (int mib : {8, 16, 24, 32, 48}) {
    const u64 part = (u64)mib << 16;
    const int sweeps = 4;
    const Times t =
        timeMs(11, [&] { readCached<<<multiprocessors() * 2, 512>>>(p, part, sweeps, sink); });
    putBandwidth("l2_read_" + std::to_string(mib) + "MiB",
                 (double)part * 16 * sweeps * multiprocessors() * 2, t);
  }
  // Weights of one linear layer, walking through the big buffer so that no cache holds them.
  for (int kb : {8400, 12600, 33600, 67000, 525000}) {
    const u64 part = (u64)kb * 1000 / 16;
    u64 at = 0;
    const Times t = timeMs(31, [&] {
      readStrided<4><<<multiprocessors() * 2, 512>>>(p + at, part, sink);
      at += part + (8 << 20);
      if (at + part > n) at = 0;
    });
    putBandwidth("read_cold_" + std::to_string(kb) + "KB_with_launch", (double)part * 16, t);
  }
  cudaFree(p);
  cudaFree(sink);
}
