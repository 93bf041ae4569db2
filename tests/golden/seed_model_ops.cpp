// SPDX-License-Identifier: Apache-2.0
// The ops of a seed model after the fusions, one line per kind: what the lit tests of
// tests/lit/seeds read.
//
//   seed_model_ops NAME [STAGE]
#include <cstdio>
#include <map>

#include "lathe/frontend/compile.h"
#include "mlir/IR/BuiltinOps.h"
#include "tests/golden/seed_models.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const lathe::Stage stage = lathe::parseStage(argc > 2 ? argv[2] : "fused");
  for (const lathe::seeds::SeedModel& model : lathe::seeds::seedModels()) {
    if (model.name != argv[1]) continue;
    std::map<std::string, int> counts;
    lathe::runStages(
        model.build(lathe::DType::F32), stage, {},
        [&](lathe::Stage reached, mlir::ModuleOp module) {
          if (reached != stage) return;
          module.walk([&](mlir::Operation* op) { ++counts[op->getName().stripDialect().str()]; });
        });
    for (const auto& [op, count] : counts) std::printf("%s %d\n", op.c_str(), count);
    return 0;
  }
  std::fprintf(stderr, "no seed model '%s'\n", argv[1]);
  return 2;
}
