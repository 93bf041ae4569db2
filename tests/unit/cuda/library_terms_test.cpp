// SPDX-License-Identifier: Apache-2.0
// Which products are given to a library with which terms, and which batches are one product.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/recorded_ops.h"

namespace lathe::cuda {
namespace {

// Of the launches that a library may do, each once: its terms.
std::set<std::string> termsOf(bool bias, bool residual, bool unrounded, Activation activation) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 512);
  fused::LinearOptions options;
  const Tensor x = g.input("x", DType::BF16, {rows, 1024});
  const Tensor w = g.weight("w", DType::BF16, {2048, 1024});
  if (bias) options.bias = g.weight("bias", DType::BF16, {2048});
  if (residual) options.residual = g.input("residual", DType::BF16, {rows, 2048});
  options.unrounded = unrounded;
  options.activation = activation;
  g.output("y", fused::linear(x, w, options));
  const Program program = compile(g, {.backend = "cuda"});
  std::set<std::string> terms;
  for (const auto& [callee, variants] : kernelTableOf(program))
    for (const Variant& variant : variants)
      for (const Launch& launch : variant.launches) {
        if (!launch.matmul) continue;
        const PlainMatmul& m = *launch.matmul;
        EXPECT_EQ(m.dtype, DType::BF16);
        EXPECT_EQ(m.columns, DimExpr(2048));
        EXPECT_EQ(m.depth, DimExpr(1024));
        EXPECT_EQ(m.rows.text(), "rows");
        std::string text = "x" + std::to_string(m.x.index) + " w" + std::to_string(m.weight.index);
        if (m.bias) text += " + bias" + std::to_string(m.bias->index);
        if (m.residual) text += " + residual" + std::to_string(m.residual->index);
        text += " = " + std::to_string(m.result.index);
        if (m.resultDType) text += " in " + std::string(nameOf(*m.resultDType));
        terms.insert(text);
      }
  return terms;
}

using Terms = std::set<std::string>;

TEST(LibraryTerms, HaveTheDtypeOfTheResult) {
  const Activation none = Activation::none;
  EXPECT_EQ(termsOf(false, false, false, none), (Terms{"x0 w1 = 2"}));
  EXPECT_EQ(termsOf(true, false, false, none), (Terms{"x0 w1 + bias2 = 3"}));
  EXPECT_EQ(termsOf(false, true, false, none), (Terms{"x0 w1 + residual2 = 3"}));
  EXPECT_EQ(termsOf(true, true, false, none), (Terms{"x0 w1 + bias2 + residual3 = 4"}));
  EXPECT_EQ(termsOf(false, false, true, none), (Terms{"x0 w1 = 2 in f32"}));
  // What is added to f32 would have to be f32, too.
  EXPECT_EQ(termsOf(true, false, true, none), Terms());
  EXPECT_EQ(termsOf(false, false, false, Activation::silu), Terms());
}

// One b for a dense batch of a's: as many rows as all of them have together.
TEST(SharedBatches, AreMoreRows) {
  const DimExpr m = DimExpr::symbol("m");
  const DimExpr matrix = m * 64;
  struct Case {
    const char* name;
    std::vector<DimExpr> batch, aStrides, bStrides;
    int64_t times;  // rows of one product
  };
  const Case cases[] = {
      {"no batch", {}, {}, {}, 1},
      {"one axis", {4}, {matrix}, {0}, 4},
      {"two axes", {2, 3}, {matrix * 3, matrix}, {0, 0}, 6},
      {"an axis of one", {1, 3}, {0, matrix}, {0, 0}, 3},
      {"an inner axis of one", {3, 1}, {matrix, 0}, {0, 0}, 3},
      {"a of its own order", {2, 3}, {matrix, matrix * 2}, {0, 0}, 1},
      {"a with a gap", {2, 3}, {matrix * 6, matrix}, {0, 0}, 1},
      {"one a for an axis", {2, 3}, {0, matrix}, {0, 0}, 1},
      {"a b for each", {4}, {matrix}, {64 * 32}, 1},
      {"a b for each of one axis", {2, 3}, {matrix * 3, matrix}, {64 * 32, 0}, 1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    MatmulKernel p;
    p.name = "product";
    p.m = m;
    p.n = 32;
    p.k = 64;
    p.batch = c.batch;
    p.aStrides = c.aStrides;
    p.bStrides = c.bStrides;
    p.hooks = linearHooks(p, 2);
    const KernelSet set = kernelsOf(p);
    ASSERT_FALSE(set.variants.empty());
    for (const Variant& variant : set.variants) {
      ASSERT_EQ(variant.when.size(), 1u);
      EXPECT_EQ(variant.when[0].value.text(), (m * c.times).text());
    }
  }
}

}  // namespace
}  // namespace lathe::cuda
