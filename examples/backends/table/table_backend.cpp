// SPDX-License-Identifier: Apache-2.0
// The compile side: every op that the table has becomes one kernel call, every fused op its
// decomposition, and what is left is refused with the reason.
#include "lathe/backends/backend.h"
#include "lathe/backends/program_builder.h"
#include "lathe/backends/to_kernels.h"
#include "lathe/ir/dialect.h"
#include "lathe/ir/types.h"
#include "lathe/passes/expand.h"
#include "lathe/passes/hoist_weights.h"
#include "table.h"

using namespace lathe;

namespace table {
namespace {

// What the device reads of the op besides its operands.
CallAttributes configOf(mlir::Operation* op) {
  mlir::Builder b(op->getContext());
  CallAttributes config;
  if (auto compare = llvm::dyn_cast<CompareOp>(op))
    config.push_back(b.getNamedAttr("predicate", b.getStringAttr(nameOf(compare.getPredicate()))));
  for (const char* name : {"axes", "permutation"})
    if (mlir::Attribute axes = op->getAttr(name)) config.push_back(b.getNamedAttr(name, axes));
  return config;
}

std::string whyNotHeld(mlir::Value v) {
  const DType dtype = *dtypeOf(tensorType(v).getElementType());
  return isHeld(dtype) ? ""
                       : "the table computes on floats and bool, got " + std::string(nameOf(dtype));
}

class TableBackend final : public Backend {
 public:
  std::string_view name() const override { return "table"; }

  std::string whyNot(mlir::Operation* op) const override {
    if (llvm::isa<WeightOp, ConstantOp, ReshapeOp, TransposeOp, BroadcastOp>(op)) return "";
    const std::string kind = op->getName().stripDialect().str();
    if (!findFunction(kind) && !findFold(kind) && !llvm::isa<CompareOp, MatmulOp>(op))
      return "the table has no function '" + kind + "'";
    for (mlir::Value v : op->getOperands())
      if (std::string why = whyNotHeld(v); !why.empty()) return why;
    return whyNotHeld(op->getResult(0));
  }

  std::vector<Step> layOut(const BackendRequest&) const override {
    return {{"expand",
             [this](mlir::ModuleOp m) {
               expandDeclined(m, [this](mlir::Operation* op) { return whyNot(op); });
             },
             true},
            {"hoist-weights", hoistWeights}};
  }

  std::vector<Step> lower(const BackendRequest&) const override {
    return {{"to-kernels", [](mlir::ModuleOp m) { toKernels(m, configOf); }, true}};
  }

  Program build(mlir::ModuleOp module, const BackendRequest&) const override {
    Program program = buildProgram(module);
    program.backend = "table";
    return program;
  }
};

}  // namespace

std::unique_ptr<Backend> makeBackend() { return std::make_unique<TableBackend>(); }

}  // namespace table
