// SPDX-License-Identifier: Apache-2.0
#pragma once
// The constants that a graph of 16-bit floats could not write down.
#include "lathe/passes/dag_pattern.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace lathe {

/// A copy of the module in which every 16-bit float constant that is no more than the rounding of a
/// number that a pattern asks for (1 / sqrt(2) in bf16 is 0.707031) is that number. In float64 the
/// copy computes what fusions take the graph to mean. Null if there is no such constant.
mlir::OwningOpRef<mlir::ModuleOp> withMeantConstants(mlir::ModuleOp module,
                                                     const PatternLibrary& library);

}  // namespace lathe
