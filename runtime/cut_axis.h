// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the parts of a tensor that is cut along an axis lie in the memory of the whole.
#include <span>
#include <utility>

#include "lathe/runtime/array.h"
#include "lathe/runtime/axis_piece.h"

namespace lathe {

/// Whether a tensor has such a piece.
inline bool hasPiece(const Shape& whole, const AxisPiece& p) {
  if (p.axis < 0 || p.axis >= int64_t(whole.size()) || p.groups < 1) return false;
  const int64_t length = whole[size_t(p.axis)];
  return length % p.groups == 0 && p.begin >= 0 && p.size >= 0 &&
         p.begin <= length / p.groups - p.size;
}

/// A part is `runs` runs of `run` elements, of which the first begins `first` elements behind the
/// tensor's begin, and each other one `stride` behind the one before.
struct CutAxis {
  Shape piece;  ///< the shape of a part
  int64_t runs = 1, run = 0, stride = 0, first = 0;

  CutAxis() = default;
  /// Of the part alone: where its runs lie is not known.
  CutAxis(Shape ofPiece, int64_t axis) : piece(std::move(ofPiece)) {
    const auto middle = piece.begin() + axis;
    runs = elementCount(std::span(piece.begin(), middle));
    run = elementCount(std::span(middle, piece.end()));
  }
  /// Of a whole that has such a piece.
  CutAxis(const Shape& whole, const AxisPiece& p) : piece(whole) {
    const auto middle = whole.begin() + p.axis;
    const int64_t inner = elementCount(std::span(middle + 1, whole.end()));
    piece[size_t(p.axis)] = p.size * p.groups;
    runs = elementCount(std::span(whole.begin(), middle)) * p.groups;
    run = p.size * inner;
    stride = *middle / p.groups * inner;
    first = p.begin * inner;
  }

  /// Whether the runs begin and end at whole bytes.
  bool isOfBytes(DType dtype) const {
    return !isPacked(dtype) || (run % 2 == 0 && first % 2 == 0 && (runs == 1 || stride % 2 == 0));
  }
};

}  // namespace lathe
