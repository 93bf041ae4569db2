// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one cost model: FLOPs and bytes of every op of the dialect, from its types alone.
#include <optional>

#include "lathe/runtime/cost.h"

namespace mlir {
class ModuleOp;
class Operation;
}  // namespace mlir

namespace lathe {

/// What an op costs as one kernel: operands are read once, results written once, values in between
/// are no traffic. A gather reads the rows it touches and not the table, a slice its box, an update
/// is in place, a reshape is a view, and attention computes the visible part of the scores only
/// (positions count as a full cache). A fused op costs the arithmetic of its decomposition, a
/// region that of its body.
///
/// Polynomials of the symbols, except that those in `values` are numbers: what depends on which of
/// two sizes is the larger (windows, unequal lengths) is exact with numbers and else an upper bound
/// where that cannot be proved. Nothing for what does not say it (CostedOp, ir/interfaces.td): ops
/// of other dialects, and a kernel call whose backend did not note its cost.
std::optional<Cost> costOf(mlir::Operation* op, const SymbolValues& values = {});

/// Keeps the cost of what a kernel call was made from, as its attribute `lathe.cost`: a call no
/// longer says what it computes. Nothing happens without a cost.
void noteCost(mlir::Operation* kernel, const std::optional<Cost>& cost);

/// The sum over the ops of all entry points but `load`; ops without a cost count nothing.
Cost totalCost(mlir::ModuleOp module);

}  // namespace lathe
