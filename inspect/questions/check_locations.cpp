// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/check_locations.h"

#include "lathe/runtime/error.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/rewrite/locations.h"

using namespace mlir;

namespace lathe {

static constexpr size_t kMostLost = 10;

LocationTable checkLocations(const Graph& graph, const CompileOptions& options) {
  LocationTable table;
  auto count = [&](Stage stage, const std::string& step, ModuleOp module) {
    LocationRow row{std::string(nameOf(stage)), step};
    module.walk([&](Operation* op) {
      if (op == module.getOperation()) return;
      ++row.ops;
      if (hasRecordedOrigin(op->getLoc())) {
        ++row.known;
      } else if (row.lost.size() < kMostLost) {
        std::string text;
        llvm::raw_string_ostream(text) << op->getName() << " at " << op->getLoc();
        row.lost.push_back(std::move(text));
      }
    });
    table.complete &= row.known == row.ops;
    table.rows.push_back(std::move(row));
  };
  Program program;
  try {
    program = runStages(
        graph, Stage::Program, options,
        [&](Stage stage, ModuleOp module) {
          if (stage == Stage::Recorded) count(stage, "recorded", module);
        },
        [&](const StepDone& step, ModuleOp module) { count(step.stage, step.name, module); });
  } catch (const Error& e) {
    // The pipeline's own check ends it where an op has lost its line.
    if (table.complete) throw;
    table.error = e.what();
    return table;
  }
  LocationRow row{"program", options.backend};
  auto calls = [&](const EntryPoint& entry) {
    for (const Call& call : entry.calls) {
      ++row.ops;
      if (!call.origin.empty())
        ++row.known;
      else if (row.lost.size() < kMostLost)
        row.lost.push_back("call " + call.kind + " of " + entry.name);
    }
  };
  for (const EntryPoint& entry : program.entries) calls(entry);
  if (program.load) calls(*program.load);
  table.complete &= row.known == row.ops;
  table.rows.push_back(std::move(row));
  return table;
}

}  // namespace lathe
