// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which products are cut by columns, which by rows, which tables by their rows, and which states
// are cut with them.
//
// Two products whose second reads what becomes of the first's columns one by one share the work
// without a word between them: the first computes columns, the second products of those with rows
// of its weight, and one sum over the ranks follows. That is how Megatron-LM splits a transformer
// (Shoeybi et al., 2019): q, k, v, gate and up by columns, o and down by rows. Here the pairs are
// found by the ops' factors, whatever lies between them. Of a mixture every expert is cut so, and
// each rank has a piece of all of them: whichever a token chooses, the ranks share the work.
#include <map>
#include <string>
#include <vector>

#include "passes/shard/by_hand.h"

namespace lathe {

/// What stays whole although a pair came near, and why.
struct KeptWhole {
  mlir::Operation* op;
  std::string reason;
};

struct ShardPlan {
  /// Ops that make pieces of whole operands and pieces of weights: how their first result is cut.
  llvm::DenseMap<mlir::Operation*, Cut> columns;
  /// Products of cut rows, which sums follow: how their activations are cut.
  llvm::DenseMap<mlir::Operation*, Cut> rows;
  /// Embeddings of which a rank has some rows of the table: sums of what the ranks find follow.
  llvm::DenseSet<mlir::Operation*> tables;
  std::map<std::string, Cut, std::less<>> states;
  /// Norms over an axis that is cut: the plan is for a graph where they are open (open_norms.h).
  llvm::DenseSet<mlir::Operation*> norms;
  std::vector<KeptWhole> whole;
};

/// The operands of a product of activations and a weight, or rows of weights that indices choose.
struct WeightMatmul {
  unsigned activation, weight;
  /// The axes that it sums over.
  int64_t activationAxis, weightAxis;
};
/// Nothing for other ops, and where something is done to the sum that addends cannot have.
std::optional<WeightMatmul> weightMatmulOf(mlir::Operation* op);

/// Changes nothing in the module. What was said by hand stands: the plan is made around it.
ShardPlan planShards(mlir::ModuleOp module, int64_t ranks, const CutsByHand& byHand);

}  // namespace lathe
