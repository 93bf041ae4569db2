// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which linear ops are cut by columns, which by rows, and which states are cut with them.
//
// Two linear ops whose second reads what becomes of the first's columns one by one share the work
// without a word between them: the first computes columns, the second products of those with rows
// of its weight, and one sum over the ranks follows. That is how Megatron-LM splits a transformer
// (Shoeybi et al., 2019): q, k, v, gate and up by columns, o and down by rows. Here the pairs are
// found by the ops' factors, whatever lies between them.
#include <map>
#include <string>
#include <vector>

#include "passes/shard/cut.h"

namespace lathe {

/// What stays whole although a pair came near, and why.
struct KeptWhole {
  mlir::Operation* op;
  std::string reason;
};

struct ShardPlan {
  /// Linear ops (and embeddings of weights) whose results are cut along the last axis.
  llvm::DenseMap<mlir::Operation*, int64_t> columns;
  llvm::DenseSet<mlir::Operation*> rows;  ///< linear ops that read cut rows: sums follow
  std::map<std::string, Cut, std::less<>> states;
  std::vector<KeptWhole> whole;
};

/// Changes nothing in the module.
ShardPlan planShards(mlir::ModuleOp module, int64_t ranks);

}  // namespace lathe
