// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of IR texts on made-up arguments.
#include <cstdint>
#include <string>
#include <vector>

#include "lathe/backends/interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe::conformance {

/// The results of `function` on arguments that `seed` draws: small numbers, or with `special` NaNs,
/// infinities, signed zeros, subnormals and the largest numbers, too. Throws Error.
std::vector<Array> runOn(mlir::func::FuncOp function, bool special, Precision precision,
                         uint64_t seed);

/// The files tests/lit/passes/canonical_*.mlir without their ending, in order.
std::vector<std::string> canonicalFiles();

}  // namespace lathe::conformance
