// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/greedy.h"
#include "lathe/passes/passes.h"

using namespace mlir;

namespace lathe {
#define GEN_PASS_DEF_CSEPASS
#include "lathe/passes/passes.h.inc"
namespace {

struct CsePass : impl::CsePassBase<CsePass> {
  void runOnOperation() final { mergeCommonSubexpressions(getOperation()); }
};

}  // namespace
}  // namespace lathe
