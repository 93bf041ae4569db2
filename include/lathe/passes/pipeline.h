// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one pipeline: which passes run between the stages of a graph, and in which order.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/passes/numerics.h"

namespace mlir {
class MLIRContext;
class ModuleOp;
}  // namespace mlir

namespace lathe {

class DagPattern;
/// The user's fusions, made for a context (passes.h).
using PatternsFor =
    std::function<std::vector<std::shared_ptr<const DagPattern>>(mlir::MLIRContext*)>;

enum class Stage { Recorded, Canonical, Fused, Sharded, LaidOut, Lowered, Program };
/// "recorded", "canonical", "fused", "sharded", "laid-out", "lowered", "program"
std::string_view nameOf(Stage stage);
/// Throws Error (InvalidArgument) naming the stages.
Stage parseStage(std::string_view name);

/// One step between two stages: what rewrite numbers, the numerics ledger and the report speak of.
struct Step {
  std::string name;  ///< "hoist-weights"
  std::function<void(mlir::ModuleOp)> run;
  /// Nothing runs without it: it has no number and is never refused.
  bool required = false;
};
/// What a backend does to a module, stage by stage.
struct BackendSteps {
  std::vector<Step> layOut, lower;
  std::function<void(mlir::ModuleOp)> build;
};

using StageObserver = std::function<void(Stage, mlir::ModuleOp)>;
/// A step that has run.
struct StepDone {
  Stage stage;       ///< the one that it belongs to
  std::string name;  ///< "fuse"
  size_t number;     ///< from 1
  size_t of;         ///< how many there are on the way to the last stage that is asked for
};
/// Sees the module after every step.
using StepObserver = std::function<void(const StepDone&, mlir::ModuleOp)>;

/// Processes, threads or machines that run one model together, each on its pieces of the weights.
struct Mesh {
  /// The name of the ranks that share a layer in the IR. Without one it is the graph's
  /// (Graph::mesh), else "tp": tensor parallelism.
  std::string axis = "";
  /// 0: as many as the graph says, else one.
  int64_t ranks = 0;
  /// All ranks in one graph on one device: what the pieces compute, without anybody to talk to.
  bool simulate = false;
  /// What follows a sum row by row, such as residual and norm, is computed of a rank's share of the
  /// rows (Korthikanti et al., 2022, arXiv:2205.05198), where there may be as many as ranks: of
  /// prompts and images, not of steps that make one token of each text.
  bool splitRows = false;
  /// The layers lie in so many stages of a pipeline, of `ranks` / `stages` ranks each: what crosses
  /// a border is one message. 0: one stage, in which all ranks share every layer.
  int64_t stages = 0;
  /// The stage whose graph is shown at `sharded` and behind it; compile() makes all of them.
  int64_t stage = 0;

  /// The ranks that share each layer.
  int64_t ranksOfStage() const { return stages > 1 ? ranks / stages : ranks; }
};

/// What a user changes about the pipeline.
struct PipelineOptions {
  /// What rewrites may do to rounding and special values (docs/numerics.md).
  NumericsMode mode = NumericsMode::Relaxed;
  PatternsFor patterns = {};                   ///< fusions of the user's, as builder patterns
  std::vector<std::string> patternFiles = {};  ///< PDL (.mlir) or PDLL (.pdll) files
  std::vector<std::string> plugins = {};       ///< shared libraries with MLIR passes: programs!
  std::string passes = {};                     ///< textual pass pipeline that runs after fusion
  /// The program is for every rank of it; a mesh of one rank is none. It goes before the graph's.
  Mesh mesh = {};
};

/// Who looks on while the pipeline runs.
struct PipelineObservers {
  bool audit = false;       ///< also find out what a fusion weakens that does not say so itself
  Evaluator evaluate = {};  ///< runs both sides of every match; without it they are not compared
  StageObserver stage = {};
  StepObserver step = {};
};

/// Takes a recorded module to `until`, calling `observers.stage` at every stage reached, the
/// recorded one included. Throws Error for what a pass or the backend refuses, with the
/// diagnostics.
void runPipeline(mlir::ModuleOp module, Stage until, const BackendSteps& backend,
                 const PipelineOptions& options = {}, const PipelineObservers& observers = {});

}  // namespace lathe
