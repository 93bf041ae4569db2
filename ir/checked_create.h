// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "mlir/IR/Builders.h"

namespace lathe {

/// Creates an op if its constraints hold; null otherwise, with the diagnostics in `why`. The result
/// types are inferred. `Op::create` ends the process where inference fails, so whatever builds ops
/// from parts that it has not checked itself goes through here.
mlir::Operation* createChecked(mlir::OpBuilder& builder, mlir::OperationState& state,
                               std::string& why);

}  // namespace lathe
