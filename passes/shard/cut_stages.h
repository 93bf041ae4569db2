// SPDX-License-Identifier: Apache-2.0
#pragma once
// One stage of a pipeline: of each entry point the ops, weights and states of some layers.
#include <cstdint>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Leaves stage `stage` of `stages` in the module, as passes/shard/stage_plan.h cuts it. What an
/// earlier stage computes and this one reads is received from it where it stood, and what this one
/// computes and a later one reads is sent as soon as it is there. What is cheap and made of inputs
/// alone, such as positions, masks and angles, each stage computes for itself. Every stage has all
/// inputs. The first has all outputs, which the others send to it; the others have none. Throws
/// Error (InvalidArgument) for more stages than there is to cut.
void cutStages(mlir::ModuleOp module, int64_t stages, int64_t stage);

}  // namespace lathe
