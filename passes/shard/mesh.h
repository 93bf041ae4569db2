// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ranks a module is for, and whether it says anything of them.
#include "lathe/passes/pipeline.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// The mesh that a module is compiled for: what was asked for, else what the graph says, else one
/// rank and one stage. The graph's ranks are those of each stage; in simulation there are no
/// stages. Throws Error (InvalidArgument) for a graph that says several, for stages that do not
/// divide the ranks and for a stage that there is not.
Mesh meshOf(mlir::ModuleOp module, const Mesh& asked);

/// Whether the graph says anything of ranks: lathe.mesh, lathe.shard_weights, lathe.shard.
bool saysOfRanks(mlir::ModuleOp module);
/// Takes all of that away.
void dropSaidOfRanks(mlir::ModuleOp module);

}  // namespace lathe
