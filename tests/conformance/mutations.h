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
  bool inOneOp = true;  ///< false: the formula is another one, not the same with one slip
};

/// Everything that can be changed about one op. Changes that break a type or a constraint are among
/// them: verify what comes out.
std::vector<Mutation> mutationsOf(mlir::Operation* op);
/// Arguments of the function, of the same type, in the place of each operand.
std::vector<Mutation> otherArguments(mlir::Operation* op);
/// Mistakes that change more than one op: another source for one use of a shared value, an op
/// further down its chain, an axis of 1 elsewhere, a mean by another count.
std::vector<Mutation> structuralMutations(mlir::Operation* op);
/// All of the three.
std::vector<Mutation> allMutations(mlir::Operation* op);

/// Verifies without a word: most mutants are no valid modules.
bool isValid(mlir::ModuleOp module);
/// Returns the results of `op` from its function as well: one more user.
void returnToo(mlir::Operation* op);

}  // namespace lathe::conformance
