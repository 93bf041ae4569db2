// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds, initialisation and races of kernel accesses. Internal to host execution.
#include "backends/cuda/hostexec/executor.h"

namespace lathe::cuda::host {

/// Where an access is in the kernel text: a code offset of the module, or for primitives file and
/// line.
struct Place {
  u32 code = 0;
  const char* file = nullptr;
  int line = 0;

  u32 mark() const { return file ? 0x80000000u | u32(line) : code; }
  Text text(const Executor& x) const;
};

struct Access {
  u64 bytes;
  bool write;
  Place place;
  bool asynchronous = false;  ///< the data land later
};

/// Names what lies at an address of global memory.
Text globalName(const Executor& x, const char* p);
/// Shared memory of the running thread's block `rank`.
void checkShared(Executor& x, Block& b, u32 offset, const Access& access);
void checkGlobal(Executor& x, const char* p, const Access& access);
/// Of ld.global.nc: what it reads must not change while the kernel runs.
void checkReadOnly(Executor& x, const char* p, const Access& access);

}  // namespace lathe::cuda::host
