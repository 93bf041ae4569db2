// SPDX-License-Identifier: Apache-2.0
// The largest index that every reader of an input allows: what a trial run may draw for it.
#include "inspect/questions/index_limits.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lathe/lathe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/conformance/rewriting.h"

namespace lathe::conformance {
namespace {

using namespace mlir;

struct Reader {
  std::string name;
  int64_t largest;
  std::function<Tensor(Graph&, const Tensor&)> read;  // of indices [2]
};

Tensor tableOf(Graph& g, const Dims& shape, const std::string& name = "table") {
  return g.input(name, DType::F32, shape);
}

std::vector<Reader> readers() {
  auto rows = [](Graph& g, const Tensor& i) { return gather(tableOf(g, {10, 20}), i, 0); };
  auto written = [](int64_t cache, int64_t value, int64_t axis) {
    return [=](Graph& g, const Tensor& i) {
      Dims whole{2, 5, 6}, part{2, 5, 6};
      whole[size_t(axis)] = cache;
      part[size_t(axis)] = value;
      return update(tableOf(g, whole), tableOf(g, part, "value"), i, axis);
    };
  };
  return {
      {"rows", 9, rows},
      {"columns", 19, [](Graph& g, const Tensor& i) { return gather(tableOf(g, {10, 20}), i, 1); }},
      {"a named axis", 11,
       [](Graph& g, const Tensor& i) { return gather(tableOf(g, {g.dim("m", 1, 40), 20}), i, 0); }},
      {"an embedding", 9,
       [](Graph& g, const Tensor& i) { return fused::embedding(i, tableOf(g, {10, 20})); }},
      {"an update", 13, written(16, 3, 1)},
      {"an update of the last axis", 6, written(8, 2, 2)},
      {"an update of everything", 0, written(4, 4, 1)},
      {"a rotated block of a cache", 13,
       [](Graph& g, const Tensor& i) {
         return fused::ropeAppend(tableOf(g, {2, 4, 16, 8}), tableOf(g, {2, 4, 3, 8}, "x"), {},
                                  tableOf(g, {3, 4}, "cos"), tableOf(g, {3, 4}, "sin"), i, 2);
       }},
      {"a choice of weights", 5,
       [](Graph& g, const Tensor& i) {
         return fused::groupedLinear(g.input("x", DType::F32, {2, 8}), tableOf(g, {6, 4, 8}), i);
       }},
      {"blocks of a cache", 6,
       [](Graph& g, const Tensor& i) {
         return pagedUpdate(tableOf(g, {7, 2, 4, 8}), tableOf(g, {1, 2, 3, 8}, "value"),
                            reshape(i, {1, 2}), g.input("at", DType::I64, {1}), 2);
       }},
      {"places in blocks", 9,
       [](Graph& g, const Tensor& i) {
         return pagedUpdate(tableOf(g, {7, 2, 4, 8}), tableOf(g, {2, 2, 3, 8}, "value"),
                            g.input("blocks", DType::I64, {2, 3}), i, 2);
       }},
      {"blocks that are read", 6,
       [](Graph& g, const Tensor& i) {
         return fused::pagedAttention(tableOf(g, {1, 2, 3, 8}, "q"), tableOf(g, {7, 2, 4, 8}),
                                      tableOf(g, {7, 2, 4, 8}, "v"), reshape(i, {1, 2}),
                                      g.input("at", DType::I64, {1}));
       }},
      {"the stricter of two", 3,
       [](Graph& g, const Tensor& i) {
         return gather(tableOf(g, {10, 2}), i, 0) + gather(tableOf(g, {4, 2}, "other"), i, 0);
       }},
      {"the stricter of two, first", 3,
       [](Graph& g, const Tensor& i) {
         return gather(tableOf(g, {4, 2}), i, 0) + gather(tableOf(g, {10, 2}, "other"), i, 0);
       }},
      {"behind layout and casts", 9,
       [=](Graph& g, const Tensor& i) {
         return rows(g, reshape(transpose(cast(reshape(i, {2, 1}), DType::I32), {1, 0}), {2}));
       }},
      {"beside a number", 6, [=](Graph& g, const Tensor& i) { return rows(g, i + 3); }},
      {"beside a number, right", 6, [=](Graph& g, const Tensor& i) { return rows(g, 3 + i); }},
      {"beside a ramp", 8, [=](Graph& g, const Tensor& i) { return rows(g, i + iota(i, {2}, 0)); }},
      {"beside a ramp of the other axis", 7,
       [=](Graph& g, const Tensor& i) { return rows(g, reshape(i, {2, 1}) + iota(i, {1, 3}, 1)); }},
      {"beside a stretched ramp", 7,
       [=](Graph& g, const Tensor& i) {
         return rows(g, reshape(i, {2, 1}) + broadcast(iota(i, {1, 3}, 1), {2, 3}));
       }},
      {"beside an unknown number", 0,
       [=](Graph& g, const Tensor& i) { return rows(g, i + g.input("j", DType::I64, {2})); }},
      {"beyond the table", 0, [=](Graph& g, const Tensor& i) { return rows(g, i + 30); }},
      {"multiplied", 0, [=](Graph& g, const Tensor& i) { return rows(g, i * 2); }},
      {"subtracted", 0, [=](Graph& g, const Tensor& i) { return rows(g, i - 1); }},
      {"chosen", 0,
       [=](Graph& g, const Tensor& i) {
         return rows(g, select(g.input("c", DType::Bool, {2}), i, i * 0));
       }},
      {"only a condition", 7,
       [=](Graph& g, const Tensor& i) {
         return rows(g, select(compare(i, scalarLike(i, 3), Compare::lt), iota(i, {2}, 0),
                               iota(i, {2}, 0) * 0));
       }},
      {"only a number", 7, [](Graph&, const Tensor& i) { return i + 1; }},
      {"only what is written", 7,
       [](Graph& g, const Tensor& i) {
         return update(g.input("ids", DType::I64, {2, 16}), reshape(i, {2, 1}),
                       g.input("at", DType::I64, {2}), 1);
       }},
      {"only what is overwritten", 7,
       [](Graph& g, const Tensor& i) {
         return update(reshape(i, {1, 2}), g.input("one", DType::I64, {1, 1}),
                       g.input("at", DType::I64, {1}), 1);
       }},
      {"only what is read", 7,
       [](Graph& g, const Tensor& i) { return gather(i, g.input("j", DType::I64, {3}), 0); }},
  };
}

TEST(IndexLimits, AreThoseOfEveryReader) {
  for (const Reader& reader : readers()) {
    Graph g("indices");
    g.entry("forward");
    const Tensor i = g.input("i", DType::I64, {2});
    g.output("y", reader.read(g, i));
    Module module = moduleOf(g);
    auto function = module->lookupSymbol<func::FuncOp>("forward");
    EXPECT_EQ(largestIndex(function.getArgument(0), {{"m", 12}}), reader.largest) << reader.name;
  }
}

}  // namespace
}  // namespace lathe::conformance
