// SPDX-License-Identifier: Apache-2.0
#include "ir/axis_groups.h"

#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {

SmallVector<AxisGroup, 4> axisGroups(RankedTensorType from, RankedTensorType to) {
  SmallVector<AxisGroup, 4> groups;
  const auto a = dimsOf(from), b = dimsOf(to);
  for (size_t i = 0, j = 0;;) {
    while (i < a.size() && isOne(a[i])) ++i;
    while (j < b.size() && isOne(b[j])) ++j;
    if (i == a.size() || j == b.size()) return groups;
    const size_t first = i, other = j;
    DimExpr left = exprOf(a[i++]), right = exprOf(b[j++]);
    while (!(left == right)) {
      if (i < a.size() && right.dividedBy(left))
        left = left * exprOf(a[i++]);
      else if (j < b.size() && left.dividedBy(right))
        right = right * exprOf(b[j++]);
      else
        return groups;
    }
    groups.push_back({first, i, other, j});
  }
}

}  // namespace lathe
