// SPDX-License-Identifier: Apache-2.0
// c[m, n] = sum over k of a[m, k] b[k, n] without tensor cores, for every element type and layout.
//
// A block computes a tile of kTileM x kTileN, a thread kThreadM x kThreadN of it, k in ascending
// order. The operands are anything with `at(row, column)`.
//
// Config: Input; kTileM, kTileN, kTileK, kThreadM, kThreadN; kColumnsFirst (neighbouring threads
// read neighbouring n of b, else neighbouring k).
#pragma once
#include "lathe_matmul.cuh"

template <class T>
struct StridedOperand {
  const T* data;
  long long rowStride, columnStride;
  LT_MEMBER T at(long long row, long long column) const {
    return data[row * rowStride + column * columnStride];
  }
};

template <class C>
struct SimtShape {
  static constexpr int kAcross = C::kTileN / C::kThreadN, kDown = C::kTileM / C::kThreadM;
  static constexpr int kThreads = kAcross * kDown;
};

/// The tile that begins at (row0, column0).
template <class C, class Hooks, class A, class B>
LT_FN void simtTile(const Hooks& hooks, const A& a, const B& b, long long row0, long long column0,
                    long long m, long long n, long long k) {
  typedef SimtShape<C> S;
  typedef MatmulElement<typename C::Input> Element;
  typedef typename Element::Sum Sum;
  // One element more per row: a column is written without meeting a bank twice.
  LATHE_SHARED(Sum, left, C::kTileK * (C::kTileM + 1));
  LATHE_SHARED(Sum, right, C::kTileK * (C::kTileN + 1));
  const int across = (int)threadIdx.x % S::kAcross, down = (int)threadIdx.x / S::kAcross;
  grid_dep_launch();
  grid_dep_wait();

  Sum sums[C::kThreadM][C::kThreadN] = {};
  for (long long k0 = 0; k0 < k; k0 += C::kTileK) {
    for (int i = (int)threadIdx.x; i < C::kTileM * C::kTileK; i += S::kThreads) {
      const int row = i / C::kTileK, at = i % C::kTileK;
      const bool inside = row0 + row < m && k0 + at < k;
      left[at * (C::kTileM + 1) + row] = inside ? Element::wide(a.at(row0 + row, k0 + at)) : Sum(0);
    }
    for (int i = (int)threadIdx.x; i < C::kTileN * C::kTileK; i += S::kThreads) {
      const int column = C::kColumnsFirst ? i % C::kTileN : i / C::kTileK;
      const int at = C::kColumnsFirst ? i / C::kTileN : i % C::kTileK;
      const bool inside = column0 + column < n && k0 + at < k;
      right[at * (C::kTileN + 1) + column] =
          inside ? Element::wide(b.at(k0 + at, column0 + column)) : Sum(0);
    }
    block_sync();
#pragma unroll
    for (int at = 0; at < C::kTileK; ++at) {
      Sum x[C::kThreadM], y[C::kThreadN];
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) x[i] = left[at * (C::kTileM + 1) + down + i * S::kDown];
#pragma unroll
      for (int j = 0; j < C::kThreadN; ++j)
        y[j] = right[at * (C::kTileN + 1) + across + j * S::kAcross];
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i)
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j)
          sums[i][j] = Element::multiplyAdd(x[i], y[j], sums[i][j]);
    }
    block_sync();
  }
#pragma unroll
  for (int i = 0; i < C::kThreadM; ++i)
#pragma unroll
    for (int j = 0; j < C::kThreadN; ++j) {
      const long long row = row0 + down + i * S::kDown, column = column0 + across + j * S::kAcross;
      if (row < m && column < n) hooks.store(row, column, sums[i][j]);
    }
}

/// All of the product; grid: x covers the tiles of m and n, those of m first.
template <class C, class Hooks, class A, class B>
LT_FN void simtGemm(const Hooks& hooks, const A& a, const B& b, long long m, long long n,
                    long long k) {
  const u32 tilesOfRows = (u32)((m + C::kTileM - 1) / C::kTileM);
  const long long row0 = (long long)(blockIdx.x % tilesOfRows) * C::kTileM;
  const long long column0 = (long long)(blockIdx.x / tilesOfRows) * C::kTileN;
  simtTile<C>(hooks, a, b, row0, column0, m, n, k);
}
