// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys and values whose heads are repeated for the query heads that share them.
#include "passes/match.h"

namespace lathe {

/// Takes the repetition off k and v, [batch, heads, length, depth], if both have it: every head n
/// times in a row (k0 k0 k1 k1), never the whole list again (k0 k1 k0 k1), which pairs other heads.
///
///     [b, g, t, d] ── reshape [b, g, 1, t, d] ── broadcast|concat [b, g, n, t, d] ── reshape
///     [b, g n, t, d], or the same in front of a transposition
///
/// False after Match::decline.
bool groupHeads(Match& m, mlir::Value& k, mlir::Value& v);

}  // namespace lathe
