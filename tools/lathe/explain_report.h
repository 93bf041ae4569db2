// SPDX-License-Identifier: Apache-2.0
#pragma once
// The result of `lathe explain` as tables or JSON.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/cost.h"
#include "lathe/runtime/machine.h"
#include "lathe/runtime/program.h"

namespace lathe::cli {

struct ExplainReport {
  std::string model;
  std::shared_ptr<const Program> program;
  std::string stage;
  SymbolValues values;                  ///< empty: costs are printed as polynomials
  std::optional<MachineRoofs> machine;  ///< with values: what predicts the times
  std::vector<const EntryPoint*> entries;
  bool everyOp = false;  ///< one row per call instead of one per place in a layer

  /// True if every size of the entry point has a value, so that costs are numbers.
  bool isKnown(const EntryPoint& entry) const;
  /// "cache (1 to 4096)": the symbols of the entry point that have no value.
  std::string missing(const EntryPoint& entry) const;
};

void printExplanation(const ExplainReport& report);
void printExplanationJson(const ExplainReport& report);

}  // namespace lathe::cli
