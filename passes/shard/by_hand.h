// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the graph's author says of pieces: lathe.shard_weights and lathe.shard.
#include <optional>

#include "lathe/passes/pipeline.h"
#include "llvm/ADT/StringMap.h"
#include "passes/rewrite/asked_once.h"
#include "passes/shard/cut.h"

namespace lathe {

/// How weights, values of weights alone and other values are cut by hand. A cut that is whole means
/// that every rank shall have the value whole.
class CutsByHand {
 public:
  /// Takes the graph's word for weights away, with lathe.shard of what weights alone make; what is
  /// left of lathe.shard is for activations. Throws Error (InvalidArgument) with the user's line
  /// where the mesh has no such axis, no weight has the name, or the ranks do not divide a size.
  CutsByHand(mlir::ModuleOp module, const Mesh& mesh);

  /// Nothing was said of the others.
  std::optional<Cut> said(mlir::Value v) const;
  /// Whether anything was said of the weights that a value is made of.
  bool isSaidOf(mlir::Value v) const;
  /// How a value of weights alone is cut because its weights are; whole where nothing was said.
  Cut ofLoaded(mlir::Value v) const;
  /// Whether pieces of a value of weights alone agree with what was said of them. Where they do
  /// not, `why` is told.
  bool agrees(mlir::Value v, const Cut& cut, std::string* why = nullptr) const;
  /// The cut that a lathe.shard of activations asks for.
  Cut of(ShardOp op) const;

 private:
  bool isSaidOf(mlir::Value v, AskedOnce<bool>& asked) const;
  Cut ofLoaded(mlir::Value v, AskedOnce<Cut>& asked) const;
  bool agrees(mlir::Value v, const Cut& cut, std::string* why,
              AskedOnce<bool, std::pair<mlir::Value, Cut>>& asked) const;
  Cut checked(mlir::Operation* says, mlir::RankedTensorType type, int64_t axis,
              llvm::StringRef meshAxis, const std::string& what) const;

  Mesh mesh_;
  llvm::StringMap<Cut> weights_;
  llvm::DenseMap<mlir::Value, Cut> values_;
};

}  // namespace lathe
