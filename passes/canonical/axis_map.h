// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a chain of reshapes and transposes does to axes, whatever it is spelled with.
#include <optional>

#include "lathe/ir/types.h"
#include "llvm/ADT/SmallVector.h"

namespace lathe {

/// Axes of a source cut into atoms, and the atoms that each axis of the result is made of, in
/// row-major order. [b, s, h*d] split into heads has the atoms b, s, h, d and the result
/// (b)(h)(s)(d). A literal 1 that a reshape adds is an empty axis.
class AxisMap {
 public:
  explicit AxisMap(mlir::RankedTensorType source);

  void transpose(llvm::ArrayRef<int64_t> permutation);
  /// False if the new dims do not cut the old ones at provable places: 6 x 4 as 4 x 6. The map is
  /// of no use then.
  bool reshape(llvm::ArrayRef<mlir::StringAttr> dims);

  /// The one spelling: at most a reshape, a transpose and a reshape. Axes are split and neighbours
  /// merged before the transpose; only what the transpose brings together is merged after it.
  struct Spelling {
    std::optional<llvm::SmallVector<mlir::StringAttr>> first;
    std::optional<llvm::SmallVector<int64_t>> permutation;
    std::optional<llvm::SmallVector<mlir::StringAttr>> last;
    size_t count() const { return size_t(bool(first)) + bool(permutation) + bool(last); }
    bool operator==(const Spelling& other) const = default;
  };
  Spelling spelling() const;

 private:
  struct Atom {
    DimExpr size;
    bool dropped = false;  ///< a literal 1 that the result does not have
  };
  mlir::StringAttr dimOfAtoms(llvm::ArrayRef<size_t> atoms) const;

  mlir::MLIRContext* context_;
  llvm::SmallVector<mlir::StringAttr> sourceDims_;
  std::vector<Atom> atoms_;
  llvm::SmallVector<size_t> source_;                        // atoms in the order of the source
  llvm::SmallVector<llvm::SmallVector<size_t, 2>> result_;  // atoms by axis
  bool known_ = true;
};

}  // namespace lathe
