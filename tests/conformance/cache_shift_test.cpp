// SPDX-License-Identifier: Apache-2.0
// A cache written from its own rows: what is read must be what was there before, although the cache
// is updated in its place.
#include <gtest/gtest.h>

#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/session.h"

namespace lathe::conformance {
namespace {

struct Shift {
  int64_t axis, from, to, count;
};

class CacheShift : public ::testing::TestWithParam<std::string> {};

TEST_P(CacheShift, MovesItsOldRows) {
  const Shape shape{1, 3, 300, 40};
  // Towards the end and the front, overlapping; rows that are dense, and such that are not.
  for (const Shift& s : {Shift{2, 0, 3, 290}, Shift{2, 7, 0, 290}, Shift{3, 0, 1, 35},
                         Shift{3, 4, 0, 33}, Shift{1, 0, 1, 2}, Shift{1, 1, 0, 2}}) {
    SCOPED_TRACE(std::to_string(s.axis) + ": " + std::to_string(s.from) + " to " +
                 std::to_string(s.to));
    for (bool transposed : {false, true}) {
      Graph g;
      g.state("cache", DType::F32, Dims(shape.begin(), shape.end()));
      const Tensor cache = g.readState("cache"), at = g.input("at", DType::I64, {1});
      Tensor rows = sliceAxis(cache, s.axis, s.from, s.count);
      // There and back: the view that is left is the cache's own.
      if (transposed) rows = swapAxes(swapAxes(rows, 1, 2), 1, 2);
      g.writeState("cache", update(cache, rows, at, s.axis));
      g.output("y", at);
      g.entry("fill");
      const Tensor all = g.input("all", DType::F32, Dims(shape.begin(), shape.end()));
      g.readState("cache");
      g.writeState("cache", all);
      g.output("z", all);
      Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
      Array before(DType::F32, shape);
      for (int64_t i = 0; i < before.size(); ++i) before.set(i, double(i));
      session.run("fill", {{"all", before}});
      session.run("forward", {{"at", Array::fromInts(std::vector<int64_t>{s.to}, {1})}});
      const Array after = session.state("cache");
      int64_t stride = 1;
      for (size_t axis = 3; int64_t(axis) > s.axis; --axis) stride *= shape[axis];
      int wrong = 0;
      for (int64_t i = 0; i < after.size() && wrong < 3; ++i) {
        const int64_t c = i / stride % shape[size_t(s.axis)];
        const bool moved = c >= s.to && c < s.to + s.count;
        const double want = double(moved ? i + (s.from - s.to) * stride : i);
        if (after.at(i) == want) continue;
        ++wrong;
        ADD_FAILURE() << "element " << i << " is " << after.at(i) << ", want " << want;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, CacheShift, ::testing::ValuesIn(backendNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
