// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

/// Gathers around a linear op what its matrix kernel can do on the way in and out, in a
/// `lathe.region` of its own: the norm of its input, the gate of a gated MLP, or the norms
/// and rotation of queries and keys together with the writes into the cache. With few rows
/// (decoding) such a region is one kernel; with many it runs as its parts.
void formLinearRegions(mlir::ModuleOp module);

}  // namespace lathe::cuda
