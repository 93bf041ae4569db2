// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a graph to a program, or to the text of any stage in between.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/backends/backend.h"
#include "lathe/frontend/graph.h"
#include "lathe/passes/pipeline.h"
#include "lathe/runtime/cost.h"
#include "lathe/runtime/program.h"

namespace lathe {

struct CompileRecord;
class RewriteObserver;  // passes/rewrite/rewrite_log.h

struct CompileOptions {
  std::string backend = "cpu";  ///< see backendNames()
  BackendOptions backendOptions = {};
  PipelineOptions pipeline = {};
  std::string saveIrDir = {};  ///< if set: N-STAGE.mlir files of every stage go there
  /// Shared libraries with backends to load first (lathe/runtime/backend_plugin.h): programs!
  std::vector<std::string> backendPlugins = {};

  uint64_t stopAfterRewrite = ~uint64_t(0);  ///< apply so many rewrites and no more
  uint64_t skipAttempt = ~uint64_t(0);       ///< leave out the rewrite that this attempt would make
  CompileRecord* record = nullptr;           ///< if set: what happened is written there
  RewriteObserver* observer = nullptr;       ///< if set: looks on while rewrites are applied
};

/// What happened while a graph was compiled.
struct CompileRecord {
  struct Rewrite {
    uint64_t number;   ///< from 1; what stopAfterRewrite takes
    uint64_t attempt;  ///< from 0; what skipAttempt takes
    std::string step;  ///< "fuse"
    std::string what;  ///< the pattern's name, or the step's for one that is refused as a whole
    std::string at;    ///< "model.cc:40:3"
    std::vector<std::string> weakened;  ///< names of contracts (lathe/passes/numerics.h)
    std::string path = {};              ///< module path of that line: "blocks.3.mlp"
  };
  /// An op that no fusion took although one came near.
  struct Miss {
    std::string op, at;       ///< "lathe.mul", "model.cc:40:3"
    std::string pattern;      ///< the nearest
    int matched = 0, of = 0;  ///< how many of its ops matched
    std::string constraint;   ///< kind of the first that failed: "attribute", "constant", ...
    std::string reason;       ///< in words, with the source line
    std::string path = {};    ///< module path of the op
    /// Who refused: "pattern", "backend" for a fused op (`pattern`) that it expanded again, or
    /// "mesh" for an op that every rank computes whole.
    std::string by = "pattern";
    bool meant = false;  ///< the op does what the fused one would, whatever the patterns say
  };
  struct Snapshot {
    std::string stage, step;
    std::string text;  ///< the module with locations
  };
  /// A generated kernel as text.
  struct Code {
    std::string kernel, tier;  ///< "region_3", "avx512"
    std::string language;      ///< "vector" (MLIR before LLVM), "llvm", "asm"
    std::string text;
  };
  /// A value of Graph::observe: how it was kept and what that adds to a graph without it.
  struct Observed {
    std::string entry, name;  ///< "forward", "observed.probs": the output's name
    std::string how;          ///< "output", or "recompute" beside a fusion that hides it
    Cost cost;                ///< may be negative where a fusion that was refused did not pay
  };
  bool wantSnapshots = false, wantMisses = false;  ///< set by the caller; both cost time
  bool wantFarMisses = false;  ///< misses of ops, too, that no pattern came near
  bool wantCode = false;       ///< so does this
  std::vector<Rewrite> rewrites;
  std::vector<Miss> misses;
  std::vector<Observed> observed;
  std::vector<Snapshot> snapshots;  ///< the recorded module, then one after each step
  std::vector<Code> code;           ///< of every kernel, in each language, from backends that tell
};

/// Throws Error: InvalidArgument for an unfinished graph, Unsupported with the op, its line and the
/// reason for what the backend cannot run.
Program compile(const Graph& graph, const CompileOptions& options = {});

/// The module's text at a stage: recorded, canonical, fused, sharded, laid-out, lowered or program.
/// It parses back with Graph::parse.
std::string irAt(const Graph& graph, std::string_view stage, const CompileOptions& options = {},
                 bool withLocations = false);

/// compile() for those who look at modules: `observe` and `observeStep` see what the pipeline's
/// observers see; what they throw passes through. Stops at `until`; the program is empty unless
/// that is Stage::Program.
Program runStages(const Graph& graph, Stage until, const CompileOptions& options,
                  const StageObserver& observe, const StepObserver& observeStep = {});

}  // namespace lathe
