// SPDX-License-Identifier: Apache-2.0
// lathe.cumsum of [outer, length, inner] along the middle. Small floats are added in f32, integers
// wrap.
#pragma once
#include "lathe_device.cuh"

// The type that sums are kept in: integers in words without a sign.
template <class T, bool kIsInteger>
struct RunningType {
  typedef typename element<T>::compute Type;
};
template <class T>
struct RunningType<T, true> {
  typedef typename element<T>::word Type;
};
template <class T>
struct RunningSum {
  typedef typename RunningType<T, element<T>::is_integer>::Type Type;
  LT_FN Type wide(T x) {
    if constexpr (element<T>::is_integer)
      return (Type)x;
    else
      return convert<Type>(x);
  }
  LT_FN T narrow(Type x) {
    if constexpr (element<T>::is_integer)
      return (T)x;
    else
      return convert<T>(x);
  }
};

// inner > 1: a thread follows one line; its neighbours' elements lie side by side.
template <class T>
LT_FN void cumsumLines(T* y, const T* x, i64 outer, i64 length, i64 inner) {
  typedef RunningSum<T> R;
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 line = (i64)blockIdx.x * blockDim.x + threadIdx.x; line < outer * inner; line += step) {
    const i64 base = line / inner * length * inner + line % inner;
    typename R::Type sum = 0;
#pragma unroll 4
    for (i64 i = 0; i < length; ++i) {
      sum += R::wide(x[base + i * inner]);
      y[base + i * inner] = R::narrow(sum);
    }
  }
}

// inner = 1: a block of kThreads follows one row, kThreads elements at a time: sums over the lanes
// of each warp, then over the warps, then from piece to piece.
template <int kThreads, class T>
LT_FN void cumsumRows(T* y, const T* x, i64 rows, i64 length) {
  typedef RunningSum<T> R;
  typedef typename R::Type Sum;
  LATHE_SHARED(Sum, totals, kThreads / 32);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    Sum before = 0;
    for (i64 first = 0; first < length; first += kThreads) {
      const i64 i = first + threadIdx.x;
      Sum sum = i < length ? R::wide(x[row * length + i]) : (Sum)0;
#pragma unroll
      for (int d = 1; d < 32; d <<= 1) {
        const Sum lower = shfl_up(sum, d);
        if (lane >= d) sum = lower + sum;
      }
      if (lane == 31) totals[warp] = sum;
      block_sync();
      Sum offset = before;
#pragma unroll
      for (int w = 0; w < kThreads / 32; ++w) {
        if (w < warp) offset = offset + totals[w];
        before = before + totals[w];
      }
      if (i < length) y[row * length + i] = R::narrow(offset + sum);
      block_sync();
    }
  }
}
