// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lathe dialect: attributes, interfaces and the ops of every family.
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "ir/facts.h"
#include "ir/sizes.h"
#include "runtime/enums.h"

namespace lathe {
class RewriteLog;
class ScalarBuilder;
struct NumericsPolicy;
}  // namespace lathe

#include "ir/dialect.h.inc"
#include "ir/interfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/attrs.h.inc"

#define GET_OP_CLASSES
#include "ir/elementwise.h.inc"
#define GET_OP_CLASSES
#include "ir/reduce.h.inc"
#define GET_OP_CLASSES
#include "ir/shape.h.inc"
#define GET_OP_CLASSES
#include "ir/contraction.h.inc"
#define GET_OP_CLASSES
#include "ir/index.h.inc"
#define GET_OP_CLASSES
#include "ir/state.h.inc"
#define GET_OP_CLASSES
#include "ir/fused.h.inc"
#define GET_OP_CLASSES
#include "ir/kernel.h.inc"
