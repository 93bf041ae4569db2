// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a lowered module to a Program: slots, aliases, calls. The same for every backend whose
// lowered form is `lathe.kernel` ops.
#include "lathe/runtime/program.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

class WeightOp;

/// What a program knows of a weight: also of which checkpoint tensor it is a piece.
TensorInfo infoOf(WeightOp weight);

/// Fills everything of the program but `backend` and the blobs with code; calls have the costs that
/// `noteCost` (passes/rewrite/cost.h) put on their kernel ops. A call writes a result over the
/// operand that its config names under kReuse (call_attributes.h) where nothing reads that operand
/// afterwards; toKernels names one for `update` and for pointwise regions. Where an entry point
/// returns a value that is not its own (an argument, a weight, another result) there is a call of
/// kind `copy`, which every device must have. Writes the slot numbers onto the kernel ops. Throws
/// Error (Unsupported) for an op that is no kernel call, view, weight or constant.
Program buildProgram(mlir::ModuleOp module);

}  // namespace lathe
