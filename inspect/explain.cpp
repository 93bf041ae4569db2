// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/explain.h"

#include "lathe/backends/call_attributes.h"
#include "lathe/backends/program_builder.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/cost.h"

using namespace mlir;

namespace lathe {
namespace {

// Ops become calls under their own names, so that slots and plans are those of any program.
void toCalls(ModuleOp module, const SymbolValues& values) {
  SmallVector<Operation*> ops;
  for (auto f : module.getOps<func::FuncOp>())
    for (Operation& op : f.getBody().front().without_terminator())
      if (!isa<WeightOp, ConstantOp, ReshapeOp, KernelOp>(op)) ops.push_back(&op);
  for (Operation* op : ops) {
    OpBuilder b(op);
    SmallVector<NamedAttribute> config;
    if (isa<UpdateOp, PagedUpdateOp, RopeAppendOp>(op))
      config.push_back(b.getNamedAttr(kReuse, b.getI64IntegerAttr(0)));
    auto call = KernelOp::create(b, op->getLoc(), op->getResultTypes(), op->getOperands(),
                                 b.getStringAttr(op->getName().stripDialect()), FlatSymbolRefAttr(),
                                 b.getDictionaryAttr(config), DenseI64ArrayAttr());
    noteCost(call, costOf(op, values));
    op->replaceAllUsesWith(call->getResults());
    op->erase();
  }
}

}  // namespace

Program explain(const Graph& graph, std::string_view stage, const SymbolValues& values,
                const CompileOptions& options) {
  const Stage until = parseStage(stage);
  if (until < Stage::Fused || until > Stage::Lowered)
    throw Error(ErrorCode::InvalidArgument,
                "expected the stage fused, laid-out or lowered, got " + std::string(stage));
  Program program;
  const Program empty = runStages(graph, until, options, [&](Stage reached, ModuleOp module) {
    if (reached != until) return;
    OwningOpRef<ModuleOp> copy = module.clone();
    toCalls(*copy, values);
    program = buildProgram(*copy);
  });
  program.ranks = empty.ranks;
  checkSymbolValues(program, values);
  program.backend = options.backend;
  program.metadata["stage"] = stage;
  return program;
}

}  // namespace lathe
