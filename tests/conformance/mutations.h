// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small changes to one op: another axis, permutation, stride, constant, predicate, operand order.
#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace lathe::conformance {

struct Mutation {
  std::string name;
  std::function<void(mlir::Operation*)> apply;  ///< to the same op of a clone
};

/// Everything that can be changed about one op. Changes that break a type give invalid modules.
std::vector<Mutation> mutationsOf(mlir::Operation* op);

/// Verifies without a word: most mutants are no valid modules.
bool isValid(mlir::ModuleOp module);

/// Returns the results of `op` from `forward` as well: one more user.
void returnToo(mlir::ModuleOp module, mlir::Operation* op);

}  // namespace lathe::conformance
