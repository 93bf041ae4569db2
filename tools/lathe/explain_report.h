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
  int64_t stages = 1;        ///< of a pipeline, so many ranks each
  std::optional<Link> link;  ///< between several
  bool everyOp = false;      ///< one row per call instead of one per place in a layer

  /// The values, and the sizes of parts that they give.
  SymbolValues sizes() const;
  /// True if every size of the entry point has a value, so that costs are numbers.
  bool isKnown(const EntryPoint& entry) const;
  /// "cache (1 to 4096)": the symbols of the entry point that have no value.
  std::string missing(const EntryPoint& entry) const;
};

/// An entry point on so many ranks, or on those of a stage.
struct RankPrediction {
  int64_t ranks = 1;
  double seconds = 0, linkSeconds = 0;  ///< of it in collectives and messages
  double memory = 0;                    ///< peak of one rank, in bytes
  double interval = 0;                  ///< between the ends of runs, of which each stage has one
};
/// Sizes and machine are known.
RankPrediction predictOnRanks(const ExplainReport& report, const EntryPoint& entry);
/// One run goes through the stages of a pipeline one after the other.
RankPrediction predictOnStages(const std::vector<RankPrediction>& stages);

/// By entry point.
struct RankPredictions {
  std::map<std::string, std::vector<RankPrediction>> scaling;  ///< for rising numbers of ranks
  std::map<std::string, std::vector<RankPrediction>> stages;   ///< of a pipeline of several
};

void printExplanation(const ExplainReport& report, const RankPredictions& predictions);
void printExplanationJson(const ExplainReport& report, const RankPredictions& predictions);

}  // namespace lathe::cli
