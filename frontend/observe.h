// SPDX-License-Identifier: Apache-2.0
#pragma once
// How each observed value is kept: whichever moves fewer bytes.
#include <functional>

#include "lathe/frontend/compile.h"

namespace mlir {
class ModuleOp;
}

namespace lathe {

/// Marks every observed result of a recorded module as an output or as recomputed
/// (passes/observe.h). Both are tried on copies, one value at a time: `lower` takes a copy to the
/// stage `lowered`. What moves fewer bytes with all symbols at the upper ends of their ranges is
/// chosen, an output if they are equal; what it adds to a graph without the value is what it costs.
/// Results that were marked before keep their mark.
std::vector<CompileRecord::Observed> decideObserved(
    mlir::ModuleOp module, const std::function<void(mlir::ModuleOp)>& lower);

}  // namespace lathe
