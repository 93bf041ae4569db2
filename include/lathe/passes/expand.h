// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Replaces every fused op that a backend declines by its decomposition, until none is left.
/// Throws Error (Unsupported) with the backend's reason for an elementary op that it declines: a
/// missing op is never replaced by another backend's in silence.
void expandDeclined(mlir::ModuleOp module,
                    const std::function<std::string(mlir::Operation*)>& whyNot);

}  // namespace lathe
