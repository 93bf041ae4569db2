// SPDX-License-Identifier: Apache-2.0
#pragma once
// How large the numbers of a value can be, where arithmetic on index ramps and constants tells.
#include <optional>

#include "mlir/IR/Value.h"

namespace lathe {

/// A bound of |v| for all elements, NaN excluded: biases that grow with the distance of a key. None
/// for what depends on inputs, weights or states, and where an intermediate may overflow f32.
std::optional<double> largestMagnitude(mlir::Value v);

}  // namespace lathe
