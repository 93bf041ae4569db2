// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/numerics_scope.h"

#include "lathe/ir/dialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "passes/rewrite/rewrite_log.h"

using namespace mlir;

namespace lathe {

NumericsScope::NumericsScope(MLIRContext* context, NumericsPolicy policy)
    : dialect_(context->getOrLoadDialect<LatheDialect>()),
      policy_(std::move(policy)),
      outer_(dialect_->numerics) {
  dialect_->numerics = &policy_;
}

NumericsScope::~NumericsScope() { dialect_->numerics = outer_; }

NumericsMode numericsModeOf(MLIRContext* context) {
  auto* dialect = context->getLoadedDialect<LatheDialect>();
  return dialect && dialect->numerics ? dialect->numerics->mode : NumericsMode::Relaxed;
}

bool weaken(MLIRContext* context, Contract contract) {
  if (!mayWeaken(contract, numericsModeOf(context))) return false;
  if (RewriteLog* log = rewriteLogOf(context)) log->weaken(contract);
  return true;
}

}  // namespace lathe
