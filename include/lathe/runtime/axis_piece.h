// SPDX-License-Identifier: Apache-2.0
#pragma once
// A piece of a tensor along one of its axes: what a rank reads of a checkpoint's.
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

}  // namespace lathe
