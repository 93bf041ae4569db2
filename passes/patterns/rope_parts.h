// SPDX-License-Identifier: Apache-2.0
#pragma once
// The values that a rotation is spelled with: parts of the last axis and doubled tables.
#include "lathe/ir/types.h"
#include "lathe/passes/match.h"

namespace lathe {

/// What a rotation of the parts a and b turns: the value whose last axis they are the two halves of
/// (`half`) or the even and the odd elements (`interleaved`), by a slice of each or by a slice of a
/// reshape to pairs. A slice of more than both parts is made again. Null, without a reason, if they
/// are something else.
mlir::Value joinedParts(Match& m, mlir::Value a, mlir::Value b, Pairing pairing);

/// The value whose last axis is `head` and then `rest`, both cut out of it. Null, without a reason,
/// if there is none.
mlir::Value headAndRest(Match& m, mlir::Value head, mlir::Value rest);

/// True if `whole` is exactly the elements of a and of b, which joinedParts took for its parts.
bool isSamePart(mlir::Value whole, mlir::Value a, mlir::Value b);

/// The angles of a table whose last axis holds each of them twice: the same half twice (`half`), a
/// concat of one value with itself, or neighbours (`interleaved`), a new last axis of two that a
/// reshape folds in; or what layouts, casts, rows picked and elementwise functions make of one.
/// Null, without a reason, if the two cannot be proved equal.
mlir::Value halfOfTable(Match& m, mlir::Value table, Pairing pairing);

}  // namespace lathe
