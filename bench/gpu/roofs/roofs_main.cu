// SPDX-License-Identifier: Apache-2.0
// Roofs of one GPU: bandwidths, launch gaps, the peak of mma.sync. Writes one JSON object to the
// file that its argument names.
#include "roofs.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

std::string gPath;
std::vector<std::string> gEntries;

__device__ __forceinline__ u32 mix(u32 x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

__global__ void fill(uint4* p, u64 n) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n;
       i += (u64)gridDim.x * blockDim.x) {
    u32 h = mix((u32)i ^ (u32)(i >> 32) * 0x9e3779b9u), r[4];
    for (u32& word : r) {
      h = mix(h + 0x9e3779b9u);
      word = (h & 0x80ff80ffu) | 0x3f003f00u;
    }
    p[i] = make_uint4(r[0], r[1], r[2], r[3]);
  }
}

__global__ void clockRate(u64* result, int iterations) {  // SM clocks against the GPU's timer
  u64 t0, t1;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t0)::"memory");
  const long long c0 = clock64();
  float x = (float)threadIdx.x;
  for (int i = 0; i < iterations; ++i) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
  const long long c1 = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t1)::"memory");
  result[0] = (u64)(c1 - c0);
  result[1] = t1 - t0;
  result[2] = (u64)x;
}

void save() {
  FILE* f = fopen(gPath.c_str(), "w");
  if (!f) {
    perror(gPath.c_str());
    exit(2);
  }
  fprintf(f, "{\n");
  for (size_t i = 0; i < gEntries.size(); ++i)
    fprintf(f, "%s%s\n", gEntries[i].c_str(), i + 1 < gEntries.size() ? "," : "");
  fprintf(f, "}\n");
  fclose(f);
}

void describeDevice() {
  cudaDeviceProp p;
  if (!ok(cudaGetDeviceProperties(&p, 0), "properties")) return;
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  auto attribute = [](cudaDeviceAttr which) {
    int value = 0;
    cudaDeviceGetAttribute(&value, which, 0);
    return double(value);
  };
  std::string text = std::string("{\"name\": \"") + p.name + "\"";
  auto add = [&](const char* key, double value) {
    char entry[96];
    snprintf(entry, sizeof entry, ", \"%s\": %.15g", key, value);
    text += entry;
  };
  add("compute_capability", p.major + p.minor / 10.0);
  add("multiprocessors", p.multiProcessorCount);
  add("memory_bytes", double(p.totalGlobalMem));
  add("l2_bytes", p.l2CacheSize);
  add("shared_bytes_per_block", double(p.sharedMemPerBlockOptin));
  add("shared_bytes_per_multiprocessor", double(p.sharedMemPerMultiprocessor));
  add("memory_bus_bits", p.memoryBusWidth);
  add("clock_khz_most", attribute(cudaDevAttrClockRate));
  add("memory_khz", attribute(cudaDevAttrMemoryClockRate));
  add("ecc", attribute(cudaDevAttrEccEnabled));
  add("driver", driver);
  add("runtime", runtime);
  put("device", text + "}");
}

}  // namespace

void put(const std::string& key, const std::string& json) {
  gEntries.push_back("\"" + key + "\": " + json);
  printf("  %-40s %s\n", key.c_str(), json.c_str());
  fflush(stdout);
  save();
}

std::string number(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.6g", value);
  return text;
}

bool ok(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return true;
  put("error_" + what, std::string("\"") + cudaGetErrorName(error) + "\"");
  return false;
}

int multiprocessors() {
  static const int count = [] {
    int n = 0;
    cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);
    return std::max(n, 1);
  }();
  return count;
}

void fillRandom(uint4* memory, u64 count) { fill<<<multiprocessors() * 8, 256>>>(memory, count); }

Times timeMs(int repetitions, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < 3; ++i) work();
  cudaDeviceSynchronize();
  std::vector<double> all;
  for (int i = 0; i < repetitions; ++i) {
    cudaEventRecord(begin);
    work();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    all.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all.front(), all.back()};
}

void putBandwidth(const std::string& key, double bytes, const Times& t) {
  if (!ok(cudaGetLastError(), key) || t.median <= 0) return;
  put(key, "{\"gbps\": " + number(bytes / t.median / 1e6) +
               ", \"best_gbps\": " + number(bytes / t.least / 1e6) + ", \"worst_gbps\": " +
               number(bytes / t.greatest / 1e6) + ", \"ms\": " + number(t.median) + "}");
}

void measureClock(const char* key) {
  u64 *device = nullptr, values[3];
  if (!ok(cudaMalloc(&device, sizeof values), "clock_memory")) return;
  clockRate<<<1, 32>>>(device, 20000000);
  if (ok(cudaMemcpy(values, device, sizeof values, cudaMemcpyDeviceToHost), "clock"))
    put(key, number((double)values[0] / (double)values[1] * 1000));
  cudaFree(device);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s OUT.json\n", argv[0]);
    return 2;
  }
  gPath = argv[1];
  put("check", "\"roofs\"");
  describeDevice();
  measureClock("sm_mhz_at_start");
  measureLaunches();
  measureMemory();
  measureTensorCores();
  measureClock("sm_mhz_at_end");
  const bool good = cudaDeviceSynchronize() == cudaSuccess;
  put("outcome", good ? "\"measured\"" : "\"failed\"");
  return !good;
}
