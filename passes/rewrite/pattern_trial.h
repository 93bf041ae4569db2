// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a pattern when it is registered: on small graphs made of what it says that it matches.
#include <string>

#include "lathe/passes/dag_pattern.h"
#include "lathe/passes/numerics.h"

namespace lathe {

/// Why a pattern is wrong wherever it applies, or an empty string: in all graphs made here that it
/// takes, its replacement has another type than the root, or gives other values (value_check.h)
/// although the pattern does not say `approximate()`. The words name the types of its placeholders,
/// the element and both numbers.
///
/// The graphs have float, integer and boolean placeholders of one to four axes, of equal shapes and
/// of shapes that broadcast or contract, sizes of 1 and single columns among them. A pattern that
/// is right in one of them may still be wrong in another graph: every match is run again. Nothing
/// is said of patterns that take none of them, such as those that ask for sizes of a model, or
/// whose functions throw.
std::string whyNeverRight(const DagPattern& pattern, const Evaluator& evaluate);

}  // namespace lathe
