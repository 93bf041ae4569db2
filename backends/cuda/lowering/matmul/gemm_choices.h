// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a choice means for one product: shared by the model and the printer.
#include "backends/cuda/lowering/matmul/gemm_kernels.h"

namespace lathe::cuda {

enum class GemvSource { Staged, Copied, Global };

/// Rows up to this many bytes are kept in shared memory, so that two blocks fit a processor.
constexpr int64_t kGemvSharedLimit = 96 * 1024;
/// A cluster stays within a group of processors; so many groups have so many.
constexpr int64_t kGroups = 8, kGroupProcessors = 16;

struct GemvPlan {
  int step = 0;          ///< elements of k that one load of a warp covers
  int loads = 0;         ///< of a lane in one batch
  int groupColumns = 0;  ///< columns of a warp
  int64_t rows = 0;      ///< rows that the kernel computes
  int64_t coveredK = 0;
  int64_t blocks = 0;    ///< along the columns
  int cluster = 1;       ///< of them
  int64_t together = 0;  ///< blocks that run at the same time, whole clusters
  int64_t sharedBytes = 0;
  GemvSource source = GemvSource::Copied;
  int registers = 0;  ///< of a thread, estimated
  int resident = 0;   ///< blocks on a processor; 0: does not fit
};
GemvPlan gemvPlan(const MatmulKernel& matmul, const MatmulSizes& sizes, const MatmulChoice& choice);

/// Registers that a thread of a tile on tensor cores keeps, estimated; beyond 250 it spills.
int gemmRegisters(const MatmulChoice& choice, bool pairs);

}  // namespace lathe::cuda
