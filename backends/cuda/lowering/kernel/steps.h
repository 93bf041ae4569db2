// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of the pipeline that cuda alone has (cuda_backend.cpp says in which order they run).
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

/// Weights that lie as `[in, out]` are transposed to `[out, in]`, which hoisting moves into `load`:
/// a warp that computes an output column then reads one contiguous row, and both kinds of matrix
/// kernels share that one layout.
void transposeWeights(mlir::ModuleOp module);

/// x + iota over an axis of size 1, which is 0, is x, where that has the dims of the sum: the
/// positions of a step of one token.
void dropSingleRamps(mlir::ModuleOp module);

/// Gathers around a linear op what its matrix kernel can do on the way in and out, in a
/// `lathe.region` of its own: the norm of its input, the gate of a gated MLP, or the norms
/// and rotation of queries and keys together with the writes into the cache. With few rows
/// (decoding) such a region is one kernel; with many it runs as its parts.
void formLinearRegions(mlir::ModuleOp module);

/// In the config of an attention call: its keys and values are states of the program to which this
/// run appends at the call's positions, once and in place, and nobody writes the positions before
/// the call. So what lies in front of them was written by earlier runs, and a kernel may request it
/// before the previous kernel has ended.
constexpr const char* kOldKeys = "old_keys";
void markOldKeys(mlir::ModuleOp module);

/// Attention with one query and few keys, and the linear op that alone reads it, become one call
/// (attended_linear.h).
void joinAttention(mlir::ModuleOp module);

}  // namespace lathe::cuda
