// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <array>

#include "ir/types.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "runtime/error.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr std::array<std::string_view, 6> kStages{"recorded", "canonical", "fused",
                                                  "laid-out", "lowered",   "program"};

// Collects what MLIR has to say, and throws it after MLIR has returned.
template <class Fn>
void guarded(ModuleOp module, const char* what, Fn fn) {
  std::string text;
  LogicalResult result = success();
  {
    ScopedDiagnosticHandler collect(module.getContext(), [&](Diagnostic& d) {
      if (d.getSeverity() != DiagnosticSeverity::Error) return failure();
      llvm::raw_string_ostream(text) << (text.empty() ? "" : "\n") << d.getLocation() << ": " << d;
      return success();
    });
    result = fn();
  }
  if (failed(result)) throw Error(ErrorCode::InvalidArgument, std::string(what) + ": " + text);
}

template <class... Passes>
void runPasses(ModuleOp module, const char* what, Passes... passes) {
  guarded(module, what, [&] {
    PassManager manager(module.getContext());
    (manager.addPass(std::move(passes)), ...);
    return manager.run(module);
  });
}

void check(ModuleOp module, const char* what) {
  guarded(module, what, [&] { return verify(module); });
}

}  // namespace

std::string_view nameOf(Stage stage) { return kStages[size_t(stage)]; }

Stage parseStage(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < kStages.size(); ++i) {
    if (kStages[i] == name) return Stage(i);
    known += (i ? ", " : "") + std::string(kStages[i]);
  }
  throw Error(ErrorCode::InvalidArgument, "stage '" + std::string(name) + "' is none of " + known);
}

void runPipeline(ModuleOp module, Stage until, const BackendSteps& backend,
                 const StageObserver& observe) {
  auto reached = [&](Stage stage) {
    if (observe) observe(stage, module);
    return stage == until;
  };
  if (reached(Stage::Recorded)) return;

  // CSE after canonicalization: equal spellings first, then equal values.
  runPasses(module, "canonicalize", createCanonicalizePass(), createCsePass());
  if (reached(Stage::Canonical)) return;

  // One pass holds all fusions: the greedy driver finds the small ones first, and attention is
  // matched on fused softmax.
  runPasses(module, "fuse", createFusePass(), createCanonicalizePass(), createCsePass());
  if (reached(Stage::Fused)) return;

  // Layouts before hoisting: packing is weight-only arithmetic and moves into `load` with the rest.
  backend.layOut(module);
  check(module, "laid-out");
  if (reached(Stage::LaidOut)) return;

  backend.lower(module);
  check(module, "lowered");
  runPasses(module, "locations", createCheckLocationsPass());
  if (reached(Stage::Lowered)) return;

  backend.build(module);
  reached(Stage::Program);
}

}  // namespace lathe
