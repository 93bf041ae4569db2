// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small mistakes in an op: another axis, permutation, constant, predicate, enumeration, a swapped
// or dropped operand.
#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/Operation.h"

namespace lathe::conformance {

struct Mutation {
  std::string name;
  std::function<void(mlir::Operation*)> apply;
};

/// Everything that can be changed about one op. Changes that break a type or a constraint are among
/// them: verify what comes out.
std::vector<Mutation> mutationsOf(mlir::Operation* op);

}  // namespace lathe::conformance
