// SPDX-License-Identifier: Apache-2.0
#pragma once
// The canonicalizations backwards: other spellings of the same graph, made mechanically.
#include <cstdint>

#include "mlir/IR/BuiltinOps.h"

namespace lathe::conformance {

/// Replaces ops of the module by equivalent ones, each with a probability of one half: commuted
/// operands, squares as powers, means as sums, roots and quotients, sigmoids and exponentials,
/// factors as divisors and on the other side of a product, predicates and conjunctions turned
/// round, masks negated or added, axes kept by a reshape, transposes, reshapes and casts in two
/// steps. The same seed gives the same spelling. Values agree but for the rounding of float64.
void respell(mlir::ModuleOp module, uint64_t seed);

}  // namespace lathe::conformance
