// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "mlir/IR/Value.h"

namespace lathe {

/// What a condition is for every input: of a constant, and of an index ramp compared with a number
/// outside its range. Nothing if it is not proved.
std::optional<bool> provedCondition(mlir::Value condition);

}  // namespace lathe
