// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one pipeline: which passes run between the stages of a graph, and in which order.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlir {
class ModuleOp;
}

namespace lathe {

enum class Stage { Recorded, Canonical, Fused, LaidOut, Lowered, Program };
/// "recorded", "canonical", "fused", "laid-out", "lowered", "program"
std::string_view nameOf(Stage stage);
/// Throws Error (InvalidArgument) naming the stages.
Stage parseStage(std::string_view name);

/// What a backend does to a module, stage by stage.
struct BackendSteps {
  std::function<void(mlir::ModuleOp)> layOut, lower, build;
};
using StageObserver = std::function<void(Stage, mlir::ModuleOp)>;

/// Takes a recorded module to `until`, calling `observe` at every stage reached, the recorded one
/// included. Throws Error for what a pass or the backend refuses, with the diagnostics.
void runPipeline(mlir::ModuleOp module, Stage until, const BackendSteps& backend,
                 const StageObserver& observe = {});

}  // namespace lathe
