// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which keys a query of attention sees, and where queries, keys and values lie: dense, or in blocks
// by a table.
#include <algorithm>

#include "backends/cpu/device/attention.h"

namespace lathe::cpu {

struct KeyRange {
  int64_t lo, hi;
};

/// A unit is a key head of a sequence; its rows are the queries of the heads that share it,
/// query-major.
class AttentionPlaces {
 public:
  explicit AttentionPlaces(const AttentionArgs& args)
      : a_(args), group_(args.qHeads / args.kvHeads) {}

  int64_t offset(int64_t batch) const {
    return a_.positions ? a_.positions[batch] : a_.causalOffset;
  }
  KeyRange visible(int64_t batch, int64_t query) const {
    KeyRange range{0, a_.kLen};
    if (a_.causal) range.hi = std::clamp<int64_t>(query + offset(batch) + 1, 0, a_.kLen);
    if (a_.window > 0)
      range.lo = std::clamp<int64_t>(query + offset(batch) - a_.window + 1, 0, a_.kLen);
    return range;
  }
  // The union over the queries of rows [row0, row1).
  KeyRange visibleToRows(int64_t batch, int64_t row0, int64_t row1) const {
    return {visible(batch, row0 / group_).lo, visible(batch, (row1 - 1) / group_).hi};
  }

  const char* element(const void* base, int64_t index) const {
    return static_cast<const char*>(base) + index * int64_t(sizeOf(a_.dtype));
  }
  int64_t place(int64_t unit, int64_t j, const AttentionStrides& strides) const {
    int64_t batch = unit / a_.kvHeads;
    if (a_.blockKeys > 0) {
      batch = a_.table[batch * a_.tableEntries + j / a_.blockKeys];
      j %= a_.blockKeys;
    }
    return batch * strides.batch + unit % a_.kvHeads * strides.head + j * strides.token;
  }
  const char* key(int64_t unit, int64_t j) const {
    return element(a_.k, place(unit, j, a_.kStrides));
  }
  const char* value(int64_t unit, int64_t j) const {
    return element(a_.v, place(unit, j, a_.vStrides));
  }
  // Of `most` keys from j on, those that lie one token behind the other.
  int64_t together(int64_t j, int64_t most) const {
    return a_.blockKeys > 0 ? std::min(most, a_.blockKeys - j % a_.blockKeys) : most;
  }
  int64_t head(int64_t unit, int64_t row) const {
    return unit % a_.kvHeads * group_ + row % group_;
  }
  const char* query(int64_t unit, int64_t row) const {
    return element(a_.q, unit / a_.kvHeads * a_.qStrides.batch +
                             head(unit, row) * a_.qStrides.head + row / group_ * a_.qStrides.token);
  }

 protected:
  const AttentionArgs& a_;
  const int64_t group_;
};

}  // namespace lathe::cpu
