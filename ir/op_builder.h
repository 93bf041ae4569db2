// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short spellings of elementary ops at one location: decompositions and rewrites read like
// formulas.
#include "lathe/ir/types.h"

namespace lathe {

class OpMaker {
 public:
  OpMaker(mlir::OpBuilder& builder, mlir::Location loc) : b(builder), loc(loc) {}

  template <class Op, class... Args>
  mlir::Value make(Args&&... args) {
    return Op::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }
  /// A scalar of an element type, rounded to it.
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  /// The value as its f32 bits hold it, also where the interpreter keeps floats unrounded; f64
  /// values as they are.
  mlir::Value inBits(mlir::Value x);
  mlir::Value compare(Compare p, mlir::Value x, mlir::Value y) { return make<CompareOp>(x, y, p); }
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation) {
    return make<TransposeOp>(x, permutation);
  }
  mlir::Value swapLastTwo(mlir::Value x);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<mlir::StringAttr> dims);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<mlir::StringAttr> dims);
  mlir::Value iota(llvm::ArrayRef<mlir::StringAttr> dims, int64_t axis, mlir::Type element);
  /// x[.., start : start + size * stride : stride] of the last axis.
  mlir::Value sliceLast(mlir::Value x, int64_t start, int64_t size, int64_t stride = 1);
  mlir::StringAttr dim(const DimExpr& e) { return dimAttr(b.getContext(), e); }

  mlir::OpBuilder& b;
  mlir::Location loc;
};

}  // namespace lathe
