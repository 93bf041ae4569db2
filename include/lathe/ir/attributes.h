// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the handle API's attribute values to MLIR attributes.
#include "lathe/ir/tensor.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace lathe {

/// Throws Error (InvalidArgument) for a keyword that its enumeration does not have.
mlir::Attribute toAttribute(mlir::MLIRContext* context, const AttrValue& value);
mlir::DenseElementsAttr toElements(mlir::MLIRContext* context, const Array& array);

}  // namespace lathe
