// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ops of a replacement stand. A value with users of its own that is replaced together
// with the root may be used before the root: the replacement then moves up, with what it needs.
#include <string>

#include "mlir/IR/Operation.h"

namespace lathe {

struct Placement {
  mlir::Operation* before = nullptr;
  llvm::SmallVector<mlir::Operation*, 4> moved;  ///< in block order; to be moved before `before`
  std::string problem;                           ///< why there is no such place; empty if there is
};

/// `created` stand in front of `root`. The place is in front of the first user of every replaced
/// value (pairs of matched value and replacement); nothing moves when that is where they stand.
Placement placementOf(mlir::Operation* root, llvm::ArrayRef<mlir::Operation*> created,
                      llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> replaced);

}  // namespace lathe
