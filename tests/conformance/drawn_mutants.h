// SPDX-License-Identifier: Apache-2.0
#pragma once
// Near misses drawn from what patterns really match: the old side of every match in the samples, in
// other spellings of them and in the seeds' models, with one thing changed.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/rewriting.h"

namespace lathe::conformance {

/// Modules as text, each with one function `forward` that a fusion takes as a whole, and with its
/// symbols declared. No two are equal.
const std::vector<std::string>& matchedForms();

struct Mutant {
  std::string what;  ///< "argument 1 through i32"
  Module module;
};
/// One thing changed in each: the dtype of all floats or of one value on its way (integers and
/// booleans too), one dim to 1, a constant by a thousandth and beyond 2^53, an axis, a permutation,
/// a predicate, one use of an operand to a second value of its type, the number of users. All
/// verify.
std::vector<Mutant> mutantsOf(mlir::ModuleOp form);

}  // namespace lathe::conformance
