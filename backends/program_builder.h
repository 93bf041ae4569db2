// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a lowered module to a Program: slots, aliases, calls. The same for every backend whose
// lowered form is `lathe.kernel` ops.
#include "mlir/IR/BuiltinOps.h"
#include "runtime/program.h"

namespace lathe {

/// Fills everything of the program but `backend` and the blobs with code; calls have the costs that
/// `noteCost` (passes/cost.h) put on their kernel ops. Kernels of the kinds in
/// `inPlace` may write their first result over their first operand: `update` always, `region` where
/// its config says so. Writes the slot numbers onto the kernel ops.
Program buildProgram(mlir::ModuleOp module);

}  // namespace lathe
