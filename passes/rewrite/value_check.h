// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs both sides of a rewrite on small samples: a pattern is believed only as far as its values
// go.
#include <optional>
#include <string>

#include "lathe/passes/numerics.h"
#include "passes/rewrite/cut_out.h"

namespace lathe {

/// A value that both sides of a rewrite give differently, in words; nothing if all samples agree.
///
/// Samples have small sizes of every symbol (different ones, and the smallest that its range in
/// `graph` allows, which is 1 as a rule), small, common and large floats, wide integers beyond 2^53
/// and random booleans, whole rows of false among them; and, where the old side gives numbers,
/// whole numbers and halves about 0; if there is no product, floats in the thousands, too, and
/// numbers at and about the constants of the ops and their quotients. Static sizes that make a
/// sample expensive are divided where all ops still fit; a difference found so is looked at again
/// in full size. Floats agree within 1e-5 of a value and of the middle value, and within what
/// constants of 16 bits explain, which are matched as they round: 0.6 of what the next number in
/// place of each changes. Integers and booleans are equal. Not compared are samples that the old
/// side refuses, such as an index outside of its table, and those of more than 5 * 10^8 operations.
///
/// With `special`, NaN and infinities are among the floats: what an audit asks.
std::optional<std::string> valueDifference(const CutOut& cut, mlir::ModuleOp graph,
                                           const Evaluator& evaluate, bool special = false);

}  // namespace lathe
