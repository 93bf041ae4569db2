// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments against the types of a function: names, shapes and the values of the symbols.
#include <vector>

#include "backends/reference/dense.h"
#include "lathe/backends/interpreter.h"

namespace lathe::reference {

/// The arguments as interpreter values; throws Error for a wrong number, rank, static dim or dtype.
std::vector<Dense> checkedArguments(mlir::func::FuncOp function,
                                    const std::vector<Array>& arguments, Precision precision);

/// Binds every dim that is a bare symbol, on top of `given`, then checks the other dims and the
/// ranges of the module's `lathe.dim`s. The arguments have passed checkedArguments. Throws Error
/// with the argument, the dim, what was expected and what came.
Symbols bindSymbols(mlir::func::FuncOp function, const std::vector<Array>& arguments,
                    const Symbols& given);

}  // namespace lathe::reference
