// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which keys and values an attention kernel may request before the previous kernel has ended.
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cuda {

/// In the config of an attention call: its keys and values are states of the program to which this
/// run appends at the call's positions, once and in place, and nobody writes the positions before
/// the call. So what lies in front of them was written by earlier runs.
constexpr const char* kOldKeys = "old_keys";
void markOldKeys(mlir::ModuleOp module);

}  // namespace lathe::cuda
