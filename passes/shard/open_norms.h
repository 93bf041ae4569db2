// SPDX-License-Identifier: Apache-2.0
#pragma once
// Norms over an axis that the ranks cut.
#include "mlir/IR/Operation.h"
#include "passes/shard/op_cuts.h"

namespace lathe {

/// How the operands of a norm of one layer, such as queries, are cut with its result along the axis
/// that it runs over. A rank then has a share of the squares that its mean is of, and one sum of a
/// number for each row follows. Nothing for other ops and cuts.
std::optional<OpCuts> cutsOfNorm(mlir::Operation* op, const Cut& cut);

/// The norm as elementary ops, of which the mean is a sum over the axis, divided: what the factors
/// of ops and sums tell of. Where nothing is cut in the end the fusions find the norm again.
void openNorm(mlir::Operation* norm);

}  // namespace lathe
