// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known of the types of a pattern's values before it is matched to any.
#include <string>

#include "lathe/passes/dag_pattern.h"

namespace lathe {

/// Why the recorded replacement of a pattern never has the dtype of what it replaces, or an empty
/// string: "the replacement is bool, the op is f64, f32, bf16 or f16". A replacement that is a
/// function, and one that may have the dtype, are checked at each match.
std::string whyNeverOfItsType(const DagPattern& pattern);

}  // namespace lathe
