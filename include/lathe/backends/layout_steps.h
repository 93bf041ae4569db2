// SPDX-License-Identifier: Apache-2.0
#pragma once
// From `fused` to `laid-out`: what every backend with kernels for linear ops does alike.
#include <functional>
#include <string>
#include <vector>

#include "lathe/backends/backend.h"

namespace mlir {
class Value;
}

namespace lathe {

/// Gains folded (fast mode only), sibling linears of an input merged where `merges` says so of it,
/// weights quantized as `request` says, weights laid out by `weightLayout`, ops that `whyNot`
/// declines expanded, weight-only arithmetic hoisted.
std::vector<Step> layoutSteps(const BackendRequest& request,
                              std::function<bool(mlir::Value)> merges, Step weightLayout,
                              std::function<std::string(mlir::Operation*)> whyNot);

/// Weights in the formats of the request: nothing where they stay as they are stored.
std::vector<Step> quantizationSteps(const BackendRequest& request);

}  // namespace lathe
