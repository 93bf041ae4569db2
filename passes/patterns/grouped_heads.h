// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys and values whose heads are repeated for the query heads that share them.
#include "lathe/passes/match.h"

namespace lathe {

/// Takes the repetition off k and v, [batch, heads, length, depth], if both have it: every head n
/// times in a row (k0 k0 k1 k1), never the whole list again (k0 k1 k0 k1), which pairs other heads.
///
///     [b, g, t, d] ── reshape [b, g, 1, t, d] ── broadcast|concat [b, g, n, t, d] ── reshape
///     [b, g n, t, d], or the same in front of a transposition
///
/// False after Match::decline.
bool groupHeads(Match& m, mlir::Value& k, mlir::Value& v);

/// What a reshape gave the axis of 1 that a product stretches over the heads of a group: [b, g, t,
/// d] of [b, g, 1, t, d]. Any other value itself.
mlir::Value withoutGroupAxis(Match& m, mlir::Value v);
/// Heads in groups, q [b, g, r, s, d] with k and v [b, g, 1, t, d] or without that axis, become
/// q [b, g r, s, d] with k and v [b, g, t, d]. The mask (or null) is aligned to the scores
/// [b, g, r, s, t] and becomes one of [b, g r, s, t]. False after Match::decline.
bool joinGroups(Match& m, mlir::Value& q, mlir::Value& k, mlir::Value& v, mlir::Value& mask);

}  // namespace lathe
