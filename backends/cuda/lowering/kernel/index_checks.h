// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ops of a call check an index when they run, and what an error tells of them.
#include "backends/cuda/device/kernel_table.h"
#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// The source lines of a region's ops that check an index, in their order: layers share kernels, so
/// the lines belong to the call.
mlir::ArrayAttr originsOfChecks(RegionOp region);

/// Notes on every op that checks an index its place in that list, where ops are about to move.
void numberChecks(mlir::func::FuncOp region);
std::optional<int64_t> notedCheck(mlir::Operation* op);

/// What a cache write checks.
IndexCheck checkOf(UpdateOp update);
/// What the gathers of a region check, in their order: embeddings become gathers when it is
/// printed.
std::vector<IndexCheck> checksOfGathers(mlir::func::FuncOp region);

}  // namespace lathe::cuda
