// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lathe dialect: attributes, interfaces and the ops of every family.
#include "lathe/ir/facts.h"
#include "lathe/ir/factors.h"
#include "lathe/ir/sizes.h"
#include "lathe/runtime/enums.h"
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

namespace lathe {
class RewriteLog;
class ScalarBuilder;
struct NumericsPolicy;
/// What collectives read and write: the other ranks.
struct MeshResource : mlir::SideEffects::Resource::Base<MeshResource> {
  llvm::StringRef getName() final { return "Mesh"; }
};
}  // namespace lathe

#include "lathe/ir/dialect.h.inc"
#include "lathe/ir/interfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "lathe/ir/attrs.h.inc"

#define GET_OP_CLASSES
#include "lathe/ir/elementwise.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/reduce.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/shape.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/contraction.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/index.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/state.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/quantized.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/fused.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/collective.h.inc"
#define GET_OP_CLASSES
#include "lathe/ir/kernel.h.inc"
