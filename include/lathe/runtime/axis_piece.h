// SPDX-License-Identifier: Apache-2.0
#pragma once
// A piece of a tensor along one of its axes: what a rank reads of a checkpoint's.
#include <algorithm>
#include <cstdint>

namespace lathe {

/// The axis is cut into `groups` equal groups, and of each are taken `size` elements from `begin`
/// on. One group: columns 256 to 511, the queries of a matrix that holds keys and values, too.
/// Several: a part of every expert's rows, the experts one behind the other.
struct AxisPiece {
  int64_t axis = 0;
  int64_t begin = 0, size = 0;
  int64_t groups = 1;
};

/// Elements of each of `parts` parts of an axis of `size`: ceil(size / parts). Where that is more
/// than there is the last parts have fewer of the axis, or none, and padding behind them.
inline int64_t sizeOfPart(int64_t size, int64_t parts) { return size / parts + (size % parts > 0); }
/// Of part `part`: elements of the axis, without the padding.
inline int64_t keptOfPart(int64_t size, int64_t parts, int64_t part) {
  const int64_t each = sizeOfPart(size, parts);
  return std::clamp<int64_t>(size - part * each, 0, each);
}

}  // namespace lathe
