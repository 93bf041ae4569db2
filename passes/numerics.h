// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a graph promises about rounding and special values, and which of those promises a rewrite
// may weaken. One table: contract x mode.
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

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
  GainPlacement,         ///< a norm's gain is applied before the next product rounds
  ProductOrder,          ///< matrix products associate as written
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
