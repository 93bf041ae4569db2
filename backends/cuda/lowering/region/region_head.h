// SPDX-License-Identifier: Apache-2.0
#pragma once
// The comment in front of a printed kernel.
#include <string>

#include "lathe/ir/types.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::cuda {

/// Under a title the region's ops with their source lines, operands and results, what it costs, and
/// for static sizes the time that the traffic alone takes on an H200.
std::string headOf(mlir::func::FuncOp region, const std::string& title);
/// For a call of a kernel from a template: its operands, attributes and source line.
std::string headOf(KernelOp call, const std::string& title);

}  // namespace lathe::cuda
