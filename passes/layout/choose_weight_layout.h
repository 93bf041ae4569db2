// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Puts `lathe.pack` in front of every linear and grouped_linear op whose weight comes from the
/// checkpoint alone and whose input `wants` accepts, and marks the op `packed`: one layout per
/// weight for all entry points. The packing is weight-only arithmetic, so hoisting moves it into
/// `load`.
void chooseWeightLayout(mlir::ModuleOp module, const std::function<bool(mlir::Value x)>& wants);

}  // namespace lathe
