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
#include "tools/lathe/rank_links.h"

namespace lathe::cli {

struct ExplainReport {
  std::string model;
  std::shared_ptr<const Program> program;
  std::string stage;
  SymbolValues values;                  ///< empty: costs are printed as polynomials
  std::optional<MachineRoofs> machine;  ///< with values: what predicts the times
  std::vector<const EntryPoint*> entries;
  int64_t ranks = 1;         ///< how many run the program together
  std::optional<Link> link;  ///< between several
  bool everyOp = false;      ///< one row per call instead of one per place in a layer

  /// True if every size of the entry point has a value, so that costs are numbers.
  bool isKnown(const EntryPoint& entry) const;
  /// "cache (1 to 4096)": the symbols of the entry point that have no value.
  std::string missing(const EntryPoint& entry) const;
};

/// An entry point on so many ranks.
struct RankPrediction {
  int64_t ranks = 1;
  double seconds = 0, linkSeconds = 0;  ///< of it in collectives
  double memory = 0;                    ///< peak of one rank, in bytes
};
/// Sizes and machine are known.
RankPrediction predictOnRanks(const ExplainReport& report, const EntryPoint& entry);
/// By entry point, for rising numbers of ranks.
using RankScaling = std::map<std::string, std::vector<RankPrediction>>;

void printExplanation(const ExplainReport& report, const RankScaling& scaling);
void printExplanationJson(const ExplainReport& report, const RankScaling& scaling);

}  // namespace lathe::cli
