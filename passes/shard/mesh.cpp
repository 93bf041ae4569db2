// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/mesh.h"

#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {

Mesh meshOf(ModuleOp module, const Mesh& asked) {
  Mesh mesh = asked;
  MeshOp said;
  for (auto op : module.getOps<MeshOp>()) {
    if (said)
      throw Error(ErrorCode::InvalidArgument,
                  "mesh: the graph is for " + std::to_string(int64_t(said.getRanks())) +
                      " ranks at " + originText(firstOrigin(said.getLoc())) + " and for " +
                      std::to_string(int64_t(op.getRanks())) + " at " +
                      originText(firstOrigin(op.getLoc())) + "; leave one of both out");
    said = op;
  }
  if (mesh.axis.empty()) mesh.axis = said ? said.getMeshAxis().str() : "tp";
  mesh.stages = std::max<int64_t>(mesh.stages, 1);
  if (mesh.ranks == 0) mesh.ranks = (said ? int64_t(said.getRanks()) : 1) * mesh.stages;
  if (mesh.ranks % mesh.stages)
    throw Error(ErrorCode::InvalidArgument,
                "mesh: expected " + std::to_string(mesh.stages) +
                    " stages with as many ranks each, got " + std::to_string(mesh.ranks) +
                    " ranks; take a multiple of " + std::to_string(mesh.stages));
  if (mesh.stage < 0 || mesh.stage >= mesh.stages)
    throw Error(ErrorCode::InvalidArgument, "mesh: stage " + std::to_string(mesh.stage) +
                                                " is none of " + std::to_string(mesh.stages));
  if (mesh.splitRows && mesh.ranksOfStage() <= 1)
    throw Error(ErrorCode::InvalidArgument,
                "mesh: split rows are shared between the ranks of a layer, and each layer has one; "
                "take 2 or more (--ranks, Mesh::ranks, Graph::mesh) or leave the rows whole");
  if (!mesh.simulate) return mesh;
  // One device computes the stages one after the other, as it does without them.
  mesh.ranks /= mesh.stages;
  mesh.stages = 1;
  mesh.stage = 0;
  return mesh;
}

bool saysOfRanks(ModuleOp module) {
  return module
      .walk([](Operation* op) {
        return isa<MeshOp, ShardWeightsOp, ShardOp>(op) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

void dropSaidOfRanks(ModuleOp module) {
  module.walk([](Operation* op) {
    if (auto shard = dyn_cast<ShardOp>(op)) shard.getY().replaceAllUsesWith(shard.getX());
    if (isa<MeshOp, ShardWeightsOp, ShardOp>(op)) op->erase();
  });
}

}  // namespace lathe
