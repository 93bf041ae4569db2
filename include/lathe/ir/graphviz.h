// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// The module in Graphviz's language: a cluster per entry point and, inside, per module path; a
/// node per op with its result type and source line; an edge per use.
std::string toGraphviz(mlir::ModuleOp module);

}  // namespace lathe
