// SPDX-License-Identifier: Apache-2.0
// Sizes that the templates of products and the compiler, which launches them, have to agree on:
// plain C++, included by both.
#pragma once

/// Elements of a load: 16 bytes where rows keep that alignment, else one.
constexpr int gemvWidth(int k, int elementBytes) {
  return (long long)k * elementBytes % 16 == 0 ? 16 / elementBytes : 1;
}
/// The k that `slices` warps cover with whole batches of `batch` steps.
constexpr int gemvCoveredK(int k, int step, int slices, int batch) {
  const int steps = (k + step - 1) / step, all = slices * batch;
  return (steps + all - 1) / all * all * step;
}
/// Elements from one staged row to the next: GemvDot reads whole rows of 512 bytes.
constexpr int gemvDotStride(int coveredK, int elementBytes) {
  const int elements = 16 / elementBytes;
  return (coveredK + elements - 1) / elements * elements;
}
/// GemvMma's lanes read 64 bytes of 8 rows: rows lie 64 bytes past a multiple of 128, so that two
/// neighbours fall into different halves of the 32 banks.
constexpr int gemvMmaStride(int coveredK) { return (coveredK + 63) / 64 * 64 + 32; }

/// Where each of `sumPairs` adjacent pairs of columns (0: none) needs a sum over all of them: how
/// many of them a block of `blockPairs` pairs has, and the blocks of a cluster that has all; 0
/// where there is no such cluster.
constexpr int gemvTermsHere(int blockPairs, int sumPairs) {
  return sumPairs && sumPairs < blockPairs ? sumPairs : blockPairs;
}
constexpr int gemvCluster(int blockPairs, int sumPairs) {
  if (sumPairs == 0 || blockPairs % sumPairs == 0) return 1;
  for (int blocks = 2; blocks <= 8; blocks *= 2)
    if (blocks * blockPairs == sumPairs) return blocks;
  return 0;
}

constexpr int kGemmTileK = 64;
/// Floats from one row of the sums to the next, when they meet in shared memory before the
/// epilogue.
constexpr int gemmSumStride(int tileN) { return tileN + 8; }
/// Shared memory of a block: the ring of 16-bit tiles, afterwards the sums.
constexpr int gemmSharedBytes(int tileM, int tileN, int stages, bool pairs) {
  const int halves = pairs ? 2 : 1, ring = stages * (tileM + halves * tileN) * kGemmTileK * 2;
  const int sums = halves * tileM * gemmSumStride(tileN) * 4;
  return ring > sums ? ring : sums;
}
