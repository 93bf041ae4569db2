// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dtype of a pattern's value, as far as the pattern says it.
#include <optional>
#include <vector>

#include "lathe/passes/pattern_node.h"

namespace mlir {
class MLIRContext;
}

namespace lathe {

/// What a condition asks of the node's value, or what its op makes of operands whose dtypes are
/// known. Nothing where several dtypes are possible.
std::optional<DType> dtypeOfNode(mlir::MLIRContext* context, const std::vector<PatternNode>& nodes,
                                 size_t id);

}  // namespace lathe
