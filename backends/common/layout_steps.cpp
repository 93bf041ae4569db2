// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/layout_steps.h"

#include "lathe/passes/expand.h"
#include "lathe/passes/hoist_weights.h"
#include "passes/layout/fold_norm_gain.h"
#include "passes/layout/merge_linears.h"
#include "passes/layout/quantize_weights.h"

namespace lathe {

std::vector<Step> quantizationSteps(const BackendRequest& request) {
  if (!request.weights.any()) return {};
  return {{"quantize-weights",
           [formats = request.weights](mlir::ModuleOp m) { quantizeWeights(m, formats); }}};
}

std::vector<Step> layoutSteps(const BackendRequest& request,
                              std::function<bool(mlir::Value)> merges, Step weightLayout,
                              std::function<std::string(mlir::Operation*)> whyNot) {
  std::vector<Step> steps;
  // Before anything else looks at weights: what is in few bits already stays so.
  steps.push_back({"fuse-dequantize", fuseDequantize});
  // Gains first: a merged layer has several weights that would each take the gain.
  if (request.mode == NumericsMode::Fast) steps.push_back({"fold-norm-gain", foldNormGain});
  steps.push_back({"merge-linears",
                   [merges = std::move(merges)](mlir::ModuleOp m) { mergeLinears(m, merges); }});
  // Behind the merges: a merged layer has the scales of the rows that it is made of.
  for (Step& step : quantizationSteps(request)) steps.push_back(std::move(step));
  steps.push_back(std::move(weightLayout));
  steps.push_back({"expand",
                   [whyNot = std::move(whyNot)](mlir::ModuleOp m) { expandDeclined(m, whyNot); },
                   true});
  steps.push_back({"hoist-weights", hoistWeights});
  return steps;
}

}  // namespace lathe
