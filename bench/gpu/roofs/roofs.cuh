// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the programs' parts that measure a GPU's roofs: the report, which is saved after every
// entry so that a failure costs one, and timing by events.
#include <cuda_runtime.h>

#include <functional>
#include <string>

using u32 = unsigned int;
using u64 = unsigned long long;

void put(const std::string& key, const std::string& json);
std::string number(double value);
/// False, with an entry `error_WHAT`, for anything but success.
bool ok(cudaError_t error, const std::string& what);

/// Milliseconds: median, least, greatest of `repetitions` runs after three.
struct Times {
  double median, least, greatest;
};
Times timeMs(int repetitions, const std::function<void()>& work);
/// GB/s of `bytes` per run.
void putBandwidth(const std::string& key, double bytes, const Times& times);

int multiprocessors();
/// Random bf16 pairs with exponents near 1: zeros would let the clocks rise.
void fillRandom(uint4* memory, u64 count);

void measureLaunches();
void measureMemory();
void measureTensorCores();
/// SM clocks in MHz under a light load.
void measureClock(const char* key);
