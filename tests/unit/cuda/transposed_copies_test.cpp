// SPDX-License-Identifier: Apache-2.0
// A transpose of the last axis goes through tiles, a product by what weights alone make streams it.
#include <gtest/gtest.h>

#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

int64_t kernelsWith(const Program& program, const std::string& text) {
  int64_t count = 0;
  for (const KernelCode& k : kernelCodeOf(program)) count += k.source.find(text) != k.source.npos;
  return count;
}

TEST(TransposedCopies, MoveEveryElement) {
  for (DType dtype : {DType::BF16, DType::F32, DType::I64, DType::Bool}) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 100);
    Tensor x = g.input("x", dtype, {2, rows, 40}), t = g.input("t", dtype, {rows, 3, 8});
    g.output("turned", transpose(x, {0, 2, 1}));
    g.output("cut", transpose(sliceAxis(x, 2, 5, 33), {2, 0, 1}));
    g.output("narrow", transpose(t, {2, 1, 0}));  // tiles of 8 x 32 would idle
    auto program = std::make_shared<Program>(compile(g, {.backend = "cuda"}));
    EXPECT_EQ(kernelsWith(*program, "copyTransposed("), 2);
    Session reference(compile(g, {.backend = "reference"}));
    for (int64_t n : {1, 31, 33, 100}) {
      HostProgram cuda(program, "check,random");
      Arrays inputs{{"x", Array(dtype, {2, n, 40})}, {"t", Array(dtype, {n, 3, 8})}};
      for (auto& [name, a] : inputs)
        for (int64_t i = 0; i < a.size(); ++i)
          a.set(i, dtype == DType::Bool ? double(i * 7 % 3 == 0) : double(i * 5 % 251));
      const Arrays got = cuda.session().run("forward", inputs),
                   want = reference.run("forward", inputs);
      for (const auto& [name, value] : want) {
        ASSERT_EQ(got.at(name).shape(), value.shape()) << name;
        for (int64_t i = 0; i < value.size(); ++i)
          ASSERT_EQ(got.at(name).at(i), value.at(i)) << name << " " << i << " of " << n << " rows";
      }
    }
  }
}

TEST(ProductsByWeights, StreamWhatWeightsAloneMake) {
  for (bool isTurned : {true, false}) {
    Graph g;
    const Dim rows = g.dim("rows", 1, 64);
    Tensor x = g.input("x", DType::F32, {rows, 48});
    Tensor w = isTurned ? g.weight("w", DType::F32, {40, 48}) : g.weight("w", DType::F32, {48, 40});
    Tensor scaled =
        w * 0.25 + g.weight("more", DType::F32, isTurned ? Shape{40, 48} : Shape{48, 40});
    g.output("y", matmul(x, isTurned ? transpose(scaled, {1, 0}) : scaled));
    auto program = std::make_shared<Program>(compile(g, {.backend = "cuda"}));
    EXPECT_GE(kernelsWith(*program, "kConstantWeights = true"), 1);
    Session reference(compile(g, {.backend = "reference"}));
    reference.bindRandomWeights(7);
    HostProgram cuda(program, "check,random");
    cuda.session().bindRandomWeights(7);
    for (int64_t n : {1, 17}) {
      Array a(DType::F32, {n, 48});
      for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i % 13) / 7 - 0.9);
      const Array got = cuda.session().run("forward", {{"x", a}}).at("y"),
                  want = reference.run("forward", {{"x", a}}).at("y");
      for (int64_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got.at(i), want.at(i), 1e-5) << n << " rows, element " << i;
    }
  }
}

}  // namespace
}  // namespace lathe::cuda
