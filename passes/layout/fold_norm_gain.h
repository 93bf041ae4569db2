// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// A norm's gain moves into the weights of the linear layers that read the norm, and a layer norm's
/// bias into theirs: W (g n + b) = (W g) n + W b. Only where every reader is a linear layer with a
/// weight from the checkpoint. Products round elsewhere than the graph says (contract
/// `gain-placement`), so this is for the mode `fast`.
void foldNormGain(mlir::ModuleOp module);

}  // namespace lathe
