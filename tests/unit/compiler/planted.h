// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mistakes on purpose, for tests of what finds them: wrong fusions, and backends that are wrong.
#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "lathe/passes/dag_pattern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace lathe::test {

/// tanh(x) -> erf(x), which is near and wrong.
inline void addWrongTanh(PatternLibrary& library, mlir::MLIRContext* context) {
  addPattern(library, context, "wrong-tanh", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(tanh(x));
    p.replaceWith(erf(x));
    p.approximate();
  });
}
/// exp(x) -> sigmoid(x)
inline void addWrongExp(PatternLibrary& library, mlir::MLIRContext* context) {
  addPattern(library, context, "wrong-exp", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(exp(x));
    p.replaceWith(sigmoid(x));
    p.approximate();
  });
}
inline PatternsFor planted(std::vector<void (*)(PatternLibrary&, mlir::MLIRContext*)> add) {
  return [add](mlir::MLIRContext* context) {
    PatternLibrary library;
    for (auto* a : add) a(library, context);
    return library;
  };
}

template <class From, class To>
void replaceAll(mlir::ModuleOp module) {
  module.walk([](From op) {
    mlir::OpBuilder b(op);
    op.replaceAllUsesWith(To::create(b, op.getLoc(), op->getOperand(0)).getResult());
    op.erase();
  });
}

/// The reference backend with a step behind its own, or with a compiler, that does something else.
class OddBackend final : public Backend {
 public:
  using Change = void (*)(mlir::ModuleOp);
  OddBackend(std::string name, Change step, Change compiler)
      : name_(std::move(name)), step_(step), compiler_(compiler) {}
  std::string_view name() const override { return name_; }
  BackendFeatures features() const override { return {.weights = true}; }
  std::string whyNot(mlir::Operation*) const override { return ""; }
  std::vector<Step> layOut(const BackendRequest& request) const override {
    std::vector<Step> steps = findBackend("reference").layOut(request);
    steps.push_back({"odd-step",
                     [this](mlir::ModuleOp m) {
                       if (step_) step_(m);
                     },
                     true});
    return steps;
  }
  std::vector<Step> lower(const BackendRequest&) const override { return {}; }
  Program build(mlir::ModuleOp module, const BackendRequest& request) const override {
    if (compiler_) compiler_(module);
    return findBackend("reference").build(module, request);
  }

 private:
  std::string name_;
  Change step_, compiler_;
};

}  // namespace lathe::test
