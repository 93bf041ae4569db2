// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a value lies on the ranks of a mesh.
#include "lathe/ir/factors.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lathe {

/// Whole on every rank, or cut into `parts` equal pieces along an axis. With fewer parts than ranks
/// neighbours hold the same piece, as query heads share a key head. An axis of several `groups`,
/// such as the hidden values of all experts one expert behind the other, is cut within each group:
/// a piece has its part of all of them.
struct Cut {
  int64_t axis = -1, parts = 1, groups = 1;
  /// Where the parts need not be equal: the sizes of the axis and of each part of it, which a
  /// number or a lathe.dim_part names. The last parts end in padding, which may hold anything and
  /// nobody reads: it is no addend of a sum.
  mlir::StringAttr whole, part;

  bool isWhole() const { return axis < 0; }
  bool isPadded() const { return bool(part); }
  bool operator==(const Cut&) const = default;
  /// The piece of rank `rank` of `ranks`.
  int64_t pieceOf(int64_t rank, int64_t ranks) const {
    return WeightPiece{{}, axis, parts}.partOf(rank, ranks);
  }
};

/// The type of one piece. An axis that is not padded has a static size that the parts divide.
inline mlir::RankedTensorType pieceType(mlir::RankedTensorType type, const Cut& cut) {
  if (cut.isWhole()) return type;
  auto dims = dimsOf(type);
  dims[size_t(cut.axis)] =
      cut.isPadded() ? cut.part
                     : dimAttr(type.getContext(), DimExpr(type.getDimSize(cut.axis) / cut.parts));
  return tensorOf(dims, type.getElementType());
}

/// In how many parts an axis of this type, or each of its groups, is cut when its loop runs on
/// `parts` ranks, or 0 where it cannot be. An axis of fewer elements is cut into single ones, each
/// for several ranks.
inline int64_t partsOf(mlir::RankedTensorType type, int64_t axis, int64_t parts,
                       int64_t groups = 1) {
  if (type.isDynamicDim(axis) || type.getDimSize(axis) % groups) return 0;
  const int64_t size = type.getDimSize(axis) / groups;
  if (size > 0 && size % parts == 0) return parts;
  return groups == 1 && size > 1 && parts % size == 0 ? size : 0;
}

/// The axis of an operand or result that has this factor; -1 for none.
inline int64_t axisOf(const Factors::Axes& axes, int factor) {
  auto it = llvm::find(axes, factor);
  return it == axes.end() ? -1 : it - axes.begin();
}

/// The state that an argument of an entry point is, or a result of it gives back; empty for others.
inline llvm::StringRef stateOf(mlir::DictionaryAttr attributes) {
  auto state = attributes ? attributes.getAs<mlir::FlatSymbolRefAttr>("lathe.state")
                          : mlir::FlatSymbolRefAttr();
  return state ? state.getValue() : llvm::StringRef();
}

}  // namespace lathe

template <>
struct llvm::DenseMapInfo<lathe::Cut> {
  static lathe::Cut getEmptyKey() { return {.axis = -2}; }
  static lathe::Cut getTombstoneKey() { return {.axis = -3}; }
  static unsigned getHashValue(const lathe::Cut& cut) {
    return unsigned(llvm::hash_combine(cut.axis, cut.parts, cut.groups, cut.whole, cut.part));
  }
  static bool isEqual(const lathe::Cut& a, const lathe::Cut& b) { return a == b; }
};
