// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small mistakes in an op: another axis, permutation, constant, predicate, enumeration, a swapped
// or dropped operand.
#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace lathe::conformance {

struct Mutation {
  std::string name;
  std::function<void(mlir::Operation*)> apply;
};

/// Everything that can be changed about one op. Changes that break a type or a constraint are among
/// them: verify what comes out.
std::vector<Mutation> mutationsOf(mlir::Operation* op);
/// Arguments of the function, of the same type, in the place of each operand.
std::vector<Mutation> otherArguments(mlir::Operation* op);

/// Verifies without a word: most mutants are no valid modules.
bool isValid(mlir::ModuleOp module);
/// Returns the results of `op` from `forward` as well: one more user.
void returnToo(mlir::ModuleOp module, mlir::Operation* op);

}  // namespace lathe::conformance
