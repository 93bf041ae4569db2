// SPDX-License-Identifier: Apache-2.0
// lathe.cast between bytes and 4-bit integers, two to a byte with the even one in the low half.
#pragma once
#include "lathe_device.cuh"

// A byte of the result of each thread; the last may hold one element alone.
LT_FN void packHalves(u8* y, const u8* x, i64 count) {
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; 2 * i < count; i += step) {
    const u32 high = 2 * i + 1 < count ? x[2 * i + 1] : 0;
    y[i] = (u8)((x[2 * i] & 15u) | high << 4);
  }
}

// Two's complement: flipping the upper bit of four adds 8, and that is taken off again.
template <bool isSigned>
LT_FN void unpackHalves(u8* y, const u8* x, i64 count) {
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    const u32 bits = (u32)x[i / 2] >> (i % 2 * 4) & 15u;
    y[i] = (u8)(isSigned ? (bits ^ 8u) - 8u : bits);
  }
}
