// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be said about an op of a pattern before anything is matched.
#include <optional>
#include <string>

#include "mlir/IR/OperationSupport.h"

namespace lathe {

/// An op as a pattern file spells it. Attributes whose value is known only when matched are null.
struct SpelledOp {
  mlir::OperationName name;
  unsigned operands = 0;
  llvm::ArrayRef<mlir::NamedAttribute> attributes;
  llvm::ArrayRef<llvm::StringRef> unknown;
};

/// How many operand segments the op has; nothing if its operands are one list.
std::optional<unsigned> operandSegments(mlir::OperationName name);
/// Why the op can never match: an attribute it does not have or not of this kind, a wrong number of
/// operands. Empty if nothing is wrong.
std::string whyNeverMatched(const SpelledOp& op);
/// Why the op can never be built: the same, a missing required attribute, types that cannot be
/// inferred.
std::string whyNeverBuilt(const SpelledOp& op);

}  // namespace lathe
