// SPDX-License-Identifier: Apache-2.0
#pragma once
// Temporary memory of a kernel call, provided by the caller so that kernels never allocate.
#include <cstddef>
#include <cstdint>

namespace lathe::cpu {

/// 64-byte aligned memory that holds no value before or after a call. Every kernel has a function
/// that gives the bytes it needs; a smaller span throws Error(InvalidArgument).
struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
};

/// Rounds up to a multiple of 64, the alignment of every buffer carved from a Scratch.
constexpr size_t alignUp64(size_t bytes) { return (bytes + 63) & ~size_t(63); }
constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

}  // namespace lathe::cpu
