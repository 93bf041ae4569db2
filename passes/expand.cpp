// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/expand.h"

#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {

void expandDeclined(ModuleOp module, const std::function<std::string(Operation*)>& whyNot) {
  SmallVector<Operation*> work;
  module.walk([&](Operation* op) {
    if (op->getName().getDialectNamespace() == "lathe" && !isa<DimOp, DimPartOp, StateOp>(op))
      work.push_back(op);
  });
  while (!work.empty()) {
    Operation* op = work.pop_back_val();
    std::string reason = whyNot(op);
    if (reason.empty()) continue;
    auto fused = dyn_cast<DecomposableOp>(op);
    OpBuilder b(op);
    Operation* before = op->getPrevNode();
    FailureOr<SmallVector<Value>> values = failure();
    if (fused) values = fused.decompose(b);
    if (failed(values))
      throw Error(ErrorCode::Unsupported,
                  op->getName().getStringRef().str() + " cannot run here: " + reason);
    if (RewriteLog* log = rewriteLogOf(op->getContext())) log->noteDeclined(op, reason);
    Block* block = op->getBlock();
    for (Operation* made = before ? before->getNextNode() : &block->front(); made != op;
         made = made->getNextNode())
      work.push_back(made);
    op->replaceAllUsesWith(*values);
    op->erase();
  }
}

}  // namespace lathe
