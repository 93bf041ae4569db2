// SPDX-License-Identifier: Apache-2.0
#pragma once
// What kernel text calls the operands and results of a region.
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// Identifiers, all different: of the operands by their role in a fused op, their module path or
/// their place, then of the results.
std::vector<std::string> namesOf(mlir::func::FuncOp region);
/// What a statement calls the value of an op: "total" of a sum, "power" of an exponential.
std::string nameOf(mlir::Operation* op);

}  // namespace lathe::cuda
