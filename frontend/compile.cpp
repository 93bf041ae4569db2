// SPDX-License-Identifier: Apache-2.0
#include "frontend/compile.h"

#include <filesystem>

#include "backends/backend.h"
#include "frontend/entry_points.h"
#include "frontend/graph_impl.h"
#include "passes/pipeline.h"
#include "runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

std::string print(mlir::ModuleOp module, bool withLocations) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  if (withLocations) flags.enableDebugInfo();
  module.print(os, flags);
  return text;
}

Program runTo(const Graph& graph, Stage until, const CompileOptions& options,
              const StageObserver& observe) {
  const Backend& backend = findBackend(options.backend);
  BackendOptions forBackend{options.allTiers, options.float64};
  mlir::OwningOpRef<mlir::ModuleOp> module = graph.impl().finished().clone();
  checkEntryPoints(*module);
  Program program;
  BackendSteps steps{
      [&](mlir::ModuleOp m) { backend.layOut(m, forBackend); },
      [&](mlir::ModuleOp m) { backend.lower(m, forBackend); },
      [&](mlir::ModuleOp m) { program = backend.build(m, forBackend); },
  };
  runPipeline(*module, until, steps, [&](Stage stage, mlir::ModuleOp m) {
    if (!options.saveIrDir.empty()) {
      std::filesystem::create_directories(options.saveIrDir);
      std::string file = options.saveIrDir + "/" + std::to_string(int(stage)) + "-" +
                         std::string(nameOf(stage)) + ".mlir";
      writeFileAtomically(file, print(m, true));
    }
    if (observe) observe(stage, m);
  });
  return program;
}

}  // namespace

Program compile(const Graph& graph, const CompileOptions& options) {
  return runTo(graph, Stage::Program, options, {});
}

std::string irAt(const Graph& graph, std::string_view stage, const CompileOptions& options,
                 bool withLocations) {
  Stage until = parseStage(stage);
  std::string text;
  runTo(graph, until, options, [&](Stage reached, mlir::ModuleOp m) {
    if (reached == until) text = print(m, withLocations);
  });
  return text;
}

}  // namespace lathe
