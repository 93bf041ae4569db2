// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two sides of a rewrite, cut out of their graph: what stood there and what takes its place.
#include <utility>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace lathe {

/// Two functions of one signature. A rewrite is right if they compute the same.
struct CutOut {
  mlir::OwningOpRef<mlir::ModuleOp> module;  ///< holds both
  mlir::func::FuncOp was, is;
};

/// Pairs of a matched value and what replaces it.
using Replacements = llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>>;

/// Cuts both sides of a rewrite at the same values: what the new ops read from outside, and what
/// the old ops read from outside of `matched`. Constants and index ramps belong to both sides.
/// `matched` are the ops that the rewrite removes or looks through, `created` those it makes. With
/// a `reach`, what the cut values are computed from belongs to both sides, so many ops deep: values
/// that depend on each other are then no arguments of their own.
CutOut cutOut(Replacements replaced, llvm::ArrayRef<mlir::Operation*> matched,
              llvm::ArrayRef<mlir::Operation*> created, int reach = 0);

}  // namespace lathe
