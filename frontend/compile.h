// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a graph to a program, or to the text of any stage in between.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph.h"
#include "passes/pipeline.h"
#include "runtime/program.h"

namespace lathe {

struct CompileRecord;

struct CompileOptions {
  std::string backend = "cpu";  ///< see backendNames()
  bool allTiers = false;        ///< code for every ISA tier, for artifacts that travel
  bool float64 = false;         ///< reference backend only: f64 throughout, no rounding
  std::string saveIrDir = {};   ///< if set: N-STAGE.mlir files of every stage go there
  /// What rewrites may do to rounding and special values (docs/numerics.md).
  NumericsMode mode = NumericsMode::Relaxed;

  PatternsFor patterns = {};                   ///< fusions of the caller's, as builder patterns
  std::vector<std::string> patternFiles = {};  ///< PDL (.mlir) or PDLL (.pdll) files
  std::vector<std::string> plugins = {};       ///< shared libraries with MLIR passes: programs!
  std::string passes = {};                     ///< textual pass pipeline that runs after fusion

  uint64_t stopAfterRewrite = ~uint64_t(0);  ///< apply so many rewrites and no more
  uint64_t skipAttempt = ~uint64_t(0);       ///< leave out the rewrite that this attempt would make
  CompileRecord* record = nullptr;           ///< if set: what happened is written there
};

/// What happened while a graph was compiled.
struct CompileRecord {
  struct Rewrite {
    uint64_t number;   ///< from 1; what stopAfterRewrite takes
    uint64_t attempt;  ///< from 0; what skipAttempt takes
    std::string step;  ///< "fuse"
    std::string what;  ///< the pattern's name, or the step's for one that is refused as a whole
    std::string at;    ///< "model.cc:40:3"
    std::vector<std::string> weakened;  ///< names of contracts (passes/numerics.h)
  };
  /// An op that no fusion took although one came near.
  struct Miss {
    std::string op, at;       ///< "lathe.mul", "model.cc:40:3"
    std::string pattern;      ///< the nearest
    int matched = 0, of = 0;  ///< how many of its ops matched
    std::string constraint;   ///< kind of the first that failed: "attribute", "constant", ...
    std::string reason;       ///< in words, with the source line
  };
  struct Snapshot {
    std::string stage, step;
    std::string text;  ///< the module with locations
  };
  bool wantSnapshots = false, wantMisses = false;  ///< set by the caller; both cost time
  std::vector<Rewrite> rewrites;
  std::vector<Miss> misses;
  std::vector<Snapshot> snapshots;  ///< the recorded module, then one after each step
};

/// Throws Error: InvalidArgument for an unfinished graph, Unsupported with the op, its line and the
/// reason for what the backend cannot run.
Program compile(const Graph& graph, const CompileOptions& options = {});

/// The module's text at a stage: recorded, canonical, fused, laid-out, lowered or program. It
/// parses back with Graph::parse.
std::string irAt(const Graph& graph, std::string_view stage, const CompileOptions& options = {},
                 bool withLocations = false);

/// compile() for those who look at modules: `observe` and `observeStep` see what the pipeline's
/// observers see. Stops at `until`; the program is empty unless that is Stage::Program.
Program runStages(const Graph& graph, Stage until, const CompileOptions& options,
                  const StageObserver& observe, const StepObserver& observeStep = {});

}  // namespace lathe
