// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chains of transposes, slices and reshapes as strides into the buffer at their end.
#include "lathe/ir/types.h"
#include "lathe/runtime/call_config.h"

namespace lathe {

/// Element (i, j, ..) of a tensor is element offset + i * strides[0] + j * strides[1] + .. of the
/// dense buffer `base`. All but the base counts elements.
struct StridedView {
  mlir::Value base;
  DimExpr offset = 0;
  llvm::SmallVector<DimExpr> sizes, strides;

  /// The tensor as its own dense buffer.
  static StridedView dense(mlir::Value v);
  void permute(llvm::ArrayRef<int64_t> permutation);
  /// The dims from `axis` on lie dense in the buffer.
  bool denseFrom(size_t axis) const;
  ViewTerms terms() const;
};

/// Looks through as many of those ops as have a form in strides; and through `inPlace`, an op whose
/// result has its elements where its operand has them.
StridedView viewOf(mlir::Value v, mlir::Operation* inPlace = nullptr);

}  // namespace lathe
