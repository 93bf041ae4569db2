// SPDX-License-Identifier: Apache-2.0
#pragma once
// What compilation takes for granted about a module, and IR text may break.

namespace mlir {
class ModuleOp;
}

namespace lathe {

/// Modules that Graph records always pass. Throws Error (InvalidFile) with the line of the text
/// unless every function is one block over ranked tensors of the dialect's dtypes whose dims are
/// numbers or declared symbols, names are unique, states are declared and given back, and a weight
/// has one type wherever it is read.
void checkEntryPoints(mlir::ModuleOp module);

/// Throws Error (InvalidArgument) for a module of a stage after `fused`: its weights are laid out
/// and its ops are kernel calls already, which no backend can do a second time.
void checkBeforeLayout(mlir::ModuleOp module);

}  // namespace lathe
