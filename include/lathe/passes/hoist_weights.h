// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weight-only arithmetic moves out of the entry points into the `load` function, which runs once
// when weights are bound. Entry points share what they have in common: a derived weight is named by
// the expression that makes it.
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Hoists from every entry point of the module. `load` returns the derived tensors; the entry
/// points read them as `lathe.weight` of the same names, which the function attribute
/// `lathe.derived` lists in order.
void hoistWeights(mlir::ModuleOp module);

}  // namespace lathe
