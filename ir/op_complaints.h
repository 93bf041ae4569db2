// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/ValueRange.h"

namespace lathe {

/// What MLIR says of an op that it does not make, in words of somebody who has never seen MLIR:
/// "'lathe.exp' op operand #0 must be ranked tensor of 64-bit float or ... values, but got
/// 'tensor<2xi64>'" becomes "lathe.exp: expected floats as operand 0, got i64[2]; cast it first".
/// The dialect's own words stay as they are.
std::string inPlainWords(mlir::StringRef op, const std::string& complaint,
                         mlir::ValueRange operands);

/// Why the op has no attribute of that name, with those that it has: "'lathe.exp' has no attribute
/// 'axis'; it has none". Empty for its own and those of other dialects, which have a dot.
std::string whyNoAttribute(mlir::OperationName name, mlir::StringRef attribute);

}  // namespace lathe
