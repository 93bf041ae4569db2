// SPDX-License-Identifier: Apache-2.0
#pragma once
// One graph for every rank of a mesh: `fused` to `sharded`.
#include "lathe/passes/pipeline.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Cuts weights, states and what is computed of them over the ranks of the mesh, as passes/shard/
/// shard_plan.h finds it. What has no rule is computed whole by every rank, from operands that are
/// gathered; the context's rewrite log is told of it. With `mesh.simulate` all ranks stand in one
/// graph, which runs on any backend: a sum over the ranks is an addition, a gather a concatenation.
/// What the graph itself says of ranks (passes/shard/by_hand.h) goes before the plan, and is taken
/// away; a mesh of one changes nothing else. Throws Error (InvalidArgument) for a mesh without
/// ranks, or in strict mode, which keeps sums in one piece.
void shard(mlir::ModuleOp module, const Mesh& mesh);

}  // namespace lathe
