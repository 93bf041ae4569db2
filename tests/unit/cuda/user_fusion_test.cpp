// SPDX-License-Identifier: Apache-2.0
// A builder pattern of a user's own becomes one CUDA kernel, for every dtype and awkward size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/passes/dag_pattern.h"
#include "tests/closeness.h"
#include "tests/observed_errors.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

// x * softmax(scale * x) as a careless user records it, and without overflow.
PatternLibrary selfGate(mlir::MLIRContext* context) {
  PatternLibrary library;
  addPattern(library, context, "self_gate", [](DagPattern& p) {
    Tensor x = p.any();
    Tensor scale = p.constantWhere("a positive scale", [](double s) { return s > 0; });
    Tensor risky = exp(x * scale);
    p.root(x * (risky / reduceSum(risky, {-1}, true)));
    Tensor safe = exp((x - reduceMax(x, {-1}, true)) * scale);
    p.replaceWith(x * (safe / reduceSum(safe, {-1}, true)));
  });
  return library;
}

struct Parameter {
  DType dtype;
  int64_t columns;
};
class UserFusion : public testing::TestWithParam<Parameter> {};

TEST_P(UserFusion, BecomesOneKernel) {
  const auto [dtype, columns] = GetParam();
  Graph g;
  const Tensor x = g.input("x", dtype, {g.dim("rows", 1, 8), columns});
  const Tensor e = exp(x * 0.5);
  g.output("y", x * (e / reduceSum(e, {-1}, true)));
  CompileRecord record;
  record.wantCode = true;
  auto program = std::make_shared<Program>(
      compile(g, {.backend = "cuda", .pipeline = {.patterns = selfGate}, .record = &record}));
  ASSERT_EQ(record.code.size(), 1u);
  EXPECT_THAT(record.code[0].text, testing::HasSubstr("extern \"C\" __global__"));
  EXPECT_EQ(std::ranges::count(record.rewrites, "self_gate", &CompileRecord::Rewrite::what), 1);

  HostProgram host(program, "check");
  for (int64_t rows : {1, 3}) {
    Array values(dtype, {rows, columns});
    // In f32 the second row overflows unless its largest is subtracted.
    const double large = dtype == DType::F32 ? 300 : 2;
    for (int64_t i = 0; i < values.size(); ++i)
      values.set(i, std::sin(double(i)) * (i / columns == 1 ? large : 2));
    const Array got = host.session().run("forward", {{"x", values}}).at("y");
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0, largest = -INFINITY;
      auto at = [&](int64_t c) { return values.at(row * columns + c); };
      for (int64_t c = 0; c < columns; ++c) largest = std::max(largest, at(c));
      for (int64_t c = 0; c < columns; ++c) sum += std::exp(0.5 * (at(c) - largest));
      for (int64_t c = 0; c < columns; ++c) {
        const double want = at(c) * std::exp(0.5 * (at(c) - largest)) / sum;
        const double bound = (dtype == DType::F32 ? 6e-7 : 0.0125) * std::abs(want) + 1e-30;
        test::ObservedErrors::note("cuda user fusion " + std::string(nameOf(dtype)),
                                   errorOf(got.at(row * columns + c), want), bound);
        ASSERT_TRUE(isNear(got.at(row * columns + c), want, bound))
            << "row " << row << " column " << c << ": got " << got.at(row * columns + c)
            << ", want " << want;
      }
    }
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t columns : {1, 31, 33, 257}) all.push_back({dtype, columns});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Sizes, UserFusion, testing::ValuesIn(parameters()), [](const auto& info) {
  return std::string(nameOf(info.param.dtype)) + "_" + std::to_string(info.param.columns);
});

}  // namespace
}  // namespace lathe::cuda
