// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a graph promises about rounding and special values, and which of those promises a rewrite
// may weaken. One table: contract x mode.
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/array.h"

namespace mlir {
class Operation;
}

namespace lathe {

/// Runs a function (func.func) of lathe ops in float64; `weights` gives a checkpoint tensor by
/// name. Throws Error where an op cannot run. It is handed down to the passes, which know no
/// backend: what a rewrite replaces is held to it.
using Evaluator =
    std::function<std::vector<Array>(mlir::Operation* function, const std::vector<Array>& arguments,
                                     const std::function<Array(const std::string& name)>& weights,
                                     const std::map<std::string, int64_t, std::less<>>& symbols)>;

/// How far rewrites may go. `strict`: a fused op only renames what the graph spells, so that the
/// interpreter gives the same bits. `relaxed` (the default) lists what it weakened. `fast` also
/// moves arithmetic into weights and re-associates products.
enum class NumericsMode { Strict, Relaxed, Fast };
std::string_view nameOf(NumericsMode mode);
/// Throws Error (InvalidArgument) naming the modes.
NumericsMode parseNumericsMode(std::string_view name);

/// A promise that rewrites may weaken.
enum class Contract {
  IntermediateRounding,  ///< a value between two ops is rounded to its dtype
  ScalePlacement,        ///< a factor is applied where the graph applies it
  Spelling,              ///< one formula of several that are equal in exact arithmetic
  Reciprocal,            ///< a quotient by a constant is no product with its inverse
  IncomingNan,           ///< a NaN or infinity that comes in is treated as the graph says
  SignedZero,            ///< a zero has the sign that the graph gives it
  MaskFill,              ///< a finite fill of masked scores is a number like any other
  Approximation,         ///< a value is the one that the graph defines, not one near it
  GainPlacement,         ///< a norm's gain is applied before the next product rounds
  ProductOrder,          ///< matrix products associate as written
  WeightPrecision,       ///< a weight has the values that it is bound to
  ActivationPrecision,   ///< a layer multiplies the activations that it is given
  SumSplit,              ///< a sum is computed in one piece and rounded once
  WireRounding,          ///< what ranks send each other is not rounded for it
};

/// A row of the table: the contract's name in reports, what it means, and from which mode on it may
/// be weakened.
struct ContractRow {
  Contract contract;
  std::string_view name, meaning;
  NumericsMode weakenedFrom;
};
const std::vector<ContractRow>& contractTable();
const ContractRow& rowOf(Contract contract);
/// True if rewrites may weaken the contract in this mode.
bool mayWeaken(Contract contract, NumericsMode mode);
/// Why a rewrite is refused: "strict mode keeps the contract 'spelling': one of several ..."
std::string refusalOf(Contract contract, NumericsMode mode);

}  // namespace lathe
