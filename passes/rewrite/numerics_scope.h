// SPDX-License-Identifier: Apache-2.0
#pragma once
// The numerics mode that holds for the rewrites of a context, and how a rewrite asks for leave.
#include <memory>

#include "lathe/passes/numerics.h"
#include "passes/rewrite/content_hash.h"

namespace mlir {
class FrozenRewritePatternSet;
class MLIRContext;
}  // namespace mlir

namespace lathe {

class LatheDialect;

/// What holds for the rewrites of a context; LatheDialect::numerics points to it.
struct NumericsPolicy {
  NumericsMode mode = NumericsMode::Relaxed;
  bool audit = false;  ///< compare every fusion with what it replaces, for the rewrite log
  /// Runs both sides of every match (value_check.h); without it values are not compared.
  Evaluator evaluate = {};
  /// Of exactness.cpp: made when the first fusion is compared.
  std::shared_ptr<const mlir::FrozenRewritePatternSet> elementaryForm = {};
  HashedTexts hashedTexts{};  ///< of the matches that were compared
};

/// Sets the policy of a context for its own lifetime. Without any, the mode is `relaxed`.
class NumericsScope {
 public:
  NumericsScope(mlir::MLIRContext* context, NumericsPolicy policy);
  ~NumericsScope();
  NumericsScope(const NumericsScope&) = delete;
  NumericsScope& operator=(const NumericsScope&) = delete;

 private:
  LatheDialect* dialect_;
  NumericsPolicy policy_, *outer_;
};

NumericsMode numericsModeOf(mlir::MLIRContext* context);
/// True if the mode lets the rewrite that is being applied weaken the contract; its entry in the
/// rewrite log names it then. To be asked last, when nothing else stops the rewrite.
bool weaken(mlir::MLIRContext* context, Contract contract);

}  // namespace lathe
