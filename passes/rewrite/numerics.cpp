// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/numerics.h"

#include <array>

#include "lathe/runtime/error.h"

namespace lathe {

static constexpr std::array<std::string_view, 3> kModes{"strict", "relaxed", "fast"};

std::string_view nameOf(NumericsMode mode) { return kModes[size_t(mode)]; }

NumericsMode parseNumericsMode(std::string_view name) {
  for (size_t i = 0; i < kModes.size(); ++i)
    if (kModes[i] == name) return NumericsMode(i);
  throw Error(ErrorCode::InvalidArgument,
              "numerics mode '" + std::string(name) + "' is none of strict, relaxed, fast");
}

const std::vector<ContractRow>& contractTable() {
  using enum Contract;
  using enum NumericsMode;
  static const std::vector<ContractRow> table{
      {IntermediateRounding, "intermediate-rounding",
       "a value between two ops is rounded to its dtype", Relaxed},
      {ScalePlacement, "scale-placement", "a factor is applied where the graph applies it",
       Relaxed},
      {Spelling, "spelling", "one of several formulas that are equal in exact arithmetic", Relaxed},
      {Reciprocal, "reciprocal", "a quotient by a constant is no product with its inverse",
       Relaxed},
      {IncomingNan, "incoming-nan", "a NaN or infinity that comes in is treated as the graph says",
       Relaxed},
      {SignedZero, "signed-zero", "a zero has the sign that the graph gives it", Relaxed},
      {MaskFill, "mask-fill", "a finite fill of masked scores is a number like any other", Relaxed},
      {Approximation, "approximation",
       "a value is the one that the graph defines, not one near it by a pattern's own word",
       Relaxed},
      {GainPlacement, "gain-placement", "a norm's gain is applied before the next product rounds",
       Fast},
      {ProductOrder, "product-order", "matrix products associate as written", Fast},
      {WeightPrecision, "weight-precision", "a weight has the values that it is bound to", Relaxed},
      {ActivationPrecision, "activation-precision",
       "a layer multiplies the activations that it is given", Relaxed},
      {SumSplit, "sum-split", "a sum is computed in one piece and rounded once", Relaxed},
      {WireRounding, "wire-rounding", "what ranks send each other is not rounded for it", Fast},
  };
  return table;
}

const ContractRow& rowOf(Contract contract) { return contractTable()[size_t(contract)]; }

bool mayWeaken(Contract contract, NumericsMode mode) {
  return mode >= rowOf(contract).weakenedFrom;
}

std::string refusalOf(Contract contract, NumericsMode mode) {
  const ContractRow& row = rowOf(contract);
  return std::string(nameOf(mode)) + " mode keeps the contract '" + std::string(row.name) +
         "': " + std::string(row.meaning);
}

}  // namespace lathe
