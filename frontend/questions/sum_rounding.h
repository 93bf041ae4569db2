// SPDX-License-Identifier: Apache-2.0
#pragma once
// What adding in another order may change.
#include "backends/reference/interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe {

/// Relative rounding that f32 sums of a function's products may differ by between backends, which
/// add in orders of their own: a sum of k terms that round at random is off by sqrt(k) units, and
/// so is every product that follows from another. 0 without products.
double roundingOfSums(mlir::func::FuncOp function, const Symbols& sizes);

}  // namespace lathe
