// SPDX-License-Identifier: Apache-2.0
#pragma once
// An ordinary MLIR pass: every f32 weight is rounded to bf16 and widened again, to see what a
// smaller checkpoint would do to a model's results. The arithmetic is weight-only, so it moves into
// the load function.
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"

struct RoundWeights : mlir::PassWrapper<RoundWeights, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RoundWeights)
  llvm::StringRef getArgument() const final { return "example-round-weights"; }
  llvm::StringRef getDescription() const final { return "f32 weights lose what bf16 cannot hold"; }

  void runOnOperation() final {
    llvm::SmallVector<mlir::Operation*> weights;
    getOperation()->walk([&](mlir::Operation* op) {
      if (op->getName().getStringRef() != "lathe.weight") return;
      auto type = mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType());
      if (type.getElementType().isF32()) weights.push_back(op);
    });
    for (mlir::Operation* weight : weights) {
      mlir::OpBuilder builder(weight->getContext());
      builder.setInsertionPointAfter(weight);
      mlir::Operation* narrow = cast(builder, weight, builder.getBF16Type());
      mlir::Operation* wide = cast(builder, narrow, builder.getF32Type());
      weight->getResult(0).replaceAllUsesExcept(wide->getResult(0), narrow);
    }
  }

  // Made by name: a pass needs no header of the dialect's.
  static mlir::Operation* cast(mlir::OpBuilder& builder, mlir::Operation* from, mlir::Type to) {
    auto type = mlir::cast<mlir::RankedTensorType>(from->getResult(0).getType());
    mlir::OperationState state(from->getLoc(), "lathe.cast");
    state.addOperands(from->getResult(0));
    state.addTypes(type.clone(to));
    state.addAttribute("dtype", mlir::TypeAttr::get(to));
    return builder.create(state);
  }
};
