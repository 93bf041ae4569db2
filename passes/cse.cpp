// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/greedy.h"
#include "lathe/passes/passes.h"

using namespace mlir;

namespace lathe {
namespace {

class CsePass : public PassWrapper<CsePass, OperationPass<>> {
 public:
  LATHE_PASS(CsePass, "lathe-cse", "equal ops become one that carries all origins")
  void runOnOperation() final { mergeCommonSubexpressions(getOperation()); }
};

}  // namespace

std::unique_ptr<Pass> createCsePass() { return std::make_unique<CsePass>(); }

}  // namespace lathe
