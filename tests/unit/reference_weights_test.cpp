// SPDX-License-Identifier: Apache-2.0
// The interpreter reads large weights where they lie, through whatever turned or cut them: the
// results are those of the same values as an op made them, which lie in order.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph_impl.h"
#include "lathe/backends/interpreter.h"
#include "lathe/lathe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

constexpr int64_t kRows = 90, kColumns = 60;

using View = std::pair<std::string, std::function<Tensor(const Tensor&)>>;
const std::vector<View> kViews{
    {"turned", [](const Tensor& w) { return transpose(w, {1, 0}); }},
    {"rows", [](const Tensor& w) { return sliceAxis(w, 0, 7, 71); }},
    {"columns", [](const Tensor& w) { return sliceAxis(w, 1, 3, 50); }},
    {"strided", [](const Tensor& w) { return slice(w, {1, 2}, {44, 29}, {2, 2}); }},
    {"cut and turned",
     [](const Tensor& w) { return transpose(slice(w, {5, 1}, {40, 29}, {2, 2}), {1, 0}); }},
    {"turned and cut",
     [](const Tensor& w) { return slice(transpose(w, {1, 0}), {4, 3}, {50, 40}, {1, 2}); }},
    // The last one: a reader that asks for doubles makes them for all that read the same value.
    {"whole", [](const Tensor& w) { return w; }},
};
using Reader = std::pair<std::string, std::function<Tensor(const Tensor&, const Tensor& ids)>>;
const std::vector<Reader> kReaders{
    {"gather rows", [](const Tensor& w, const Tensor& ids) { return gather(w, ids, 0); }},
    {"gather columns", [](const Tensor& w, const Tensor& ids) { return gather(w, ids, 1); }},
    {"embedding", [](const Tensor& w, const Tensor& ids) { return fused::embedding(ids, w); }},
    {"product", [](const Tensor& w, const Tensor&) { return matmul(transpose(w, {1, 0}), w); }},
    {"sum", [](const Tensor& w, const Tensor&) { return reduceSum(w, {0}); }},
    {"reshape",
     [](const Tensor& w, const Tensor&) {
       return reshape(w, {*w.dim(0).asConstant() * *w.dim(1).asConstant()});
     }},
    {"concat", [](const Tensor& w, const Tensor&) { return concat({w, w * 2.0}, 0); }},
};

TEST(ReferenceWeights, AreReadAsTheValuesThatTheyAre) {
  Graph g;
  const Tensor ids = g.input("ids", DType::I64, {2, 3});
  const Tensor stored = g.weight("w", DType::F32, {kRows, kColumns}),
               given = g.input("w", DType::F32, {kRows, kColumns}) * 1.0;
  for (const auto& [view, look] : kViews)
    for (const auto& [reader, read] : kReaders) {
      g.output("stored " + view + ", " + reader, read(look(stored), ids));
      g.output("given " + view + ", " + reader, read(look(given), ids));
    }
  Array w(DType::F32, {kRows, kColumns}), places(DType::I64, {2, 3});
  for (int64_t i = 0; i < w.size(); ++i) w.set(i, double(i * 7919 % 10007) / 1000 - 5);
  for (int64_t i = 0; i < places.size(); ++i) places.set(i, double(i * 5 % 28));
  // As it was recorded: a compiled program has its weights turned when they are bound.
  auto module = g.impl().finished();
  auto forward = module.lookupSymbol<mlir::func::FuncOp>("forward");
  for (Precision precision : {Precision::OwnDtype, Precision::Float64}) {
    const std::vector<Array> got =
        interpret(forward, {places, w}, [&](const std::string&) { return w; }, precision);
    ASSERT_EQ(got.size(), 2 * kViews.size() * kReaders.size());
    size_t next = 0;
    for (const auto& [view, look] : kViews)
      for (const auto& [reader, read] : kReaders) {
        const std::string name = view + ", " + reader;
        const Array &stored = got[next++], &given = got[next++];
        EXPECT_EQ(largestError(stored, given), 0) << name;
        EXPECT_GT(largestValue(given), 0) << name;
      }
  }
}

}  // namespace
}  // namespace lathe
