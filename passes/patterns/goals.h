// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the author of an op means, told by the ops alone and not by how near a pattern came.
#include <string>
#include <string_view>
#include <vector>

#include "mlir/IR/Operation.h"

namespace lathe {

/// A fused op (the patterns "attention" and "attention-...") and the ops that are meant to be one.
struct Goal {
  const char* fused;
  /// True for the op at which the fusion ends, or which cannot be written without meaning it.
  bool (*isMeant)(mlir::Operation* op);
  /// Why it is none where no pattern of the fusion starts at such an op.
  const char* otherwise;
  bool certain = false;  ///< `otherwise` is why, whatever patterns start there

  bool owns(std::string_view pattern) const;
};

/// The goals of the built-in fusions, the largest first: of two that an op is meant for, the first
/// one is told.
const std::vector<Goal>& fusionGoals();

}  // namespace lathe
