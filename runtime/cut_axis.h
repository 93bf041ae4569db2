// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the parts of a tensor that is cut along an axis lie in the memory of the whole.
#include <span>
#include <utility>

#include "lathe/runtime/array.h"

namespace lathe {

/// A part is `runs` runs of `run` elements, each as many runs behind the one before as there are
/// parts.
struct CutAxis {
  Shape piece;  ///< the shape of a part
  int64_t runs = 1, run = 0;

  CutAxis() = default;
  CutAxis(Shape ofPiece, int64_t axis) : piece(std::move(ofPiece)) {
    const auto middle = piece.begin() + axis;
    runs = elementCount(std::span(piece.begin(), middle));
    run = elementCount(std::span(middle, piece.end()));
  }
  /// Of a whole whose axis the parts divide.
  CutAxis(Shape whole, int64_t axis, int64_t parts)
      : CutAxis(divided(std::move(whole), axis, parts), axis) {}

 private:
  static Shape divided(Shape whole, int64_t axis, int64_t parts) {
    whole[size_t(axis)] /= parts;
    return whole;
  }
};

}  // namespace lathe
