// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which whole numbers an input may hold without leaving the tables that it indexes.
#include "lathe/backends/interpreter.h"
#include "mlir/IR/Value.h"

namespace lathe {

/// The largest value at which no gather, embedding, update or cached attention that `value` reaches
/// is out of range; a small number where nothing is indexed. At least 0.
int64_t largestIndex(mlir::Value value, const Symbols& sizes);

}  // namespace lathe
