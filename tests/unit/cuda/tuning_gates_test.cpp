// SPDX-License-Identifier: Apache-2.0
// The model knows registers: what it chooses for the linear layers and the attention of the models
// in bench/configs compiles without spills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/lowering/attention/attention_kernels.h"
#include "backends/cuda/lowering/nvrtc/kernel_cache.h"
#include "backends/cuda/lowering/matmul/gemm_choices.h"
#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "lathe/frontend/compile.h"
#include "lathe/ir/ops.h"
#include "tests/cuda_mocks/kernel_texts.h"

namespace lathe::cuda {
namespace {

struct Layer {
  int64_t n, k;
};
// Projections, gate and up, down, head of llama-0.5b.json, llama-1b.json and llama-8b.json.
constexpr Layer kLayers[] = {{1152, 896},   {896, 896},     {9728, 896},   {896, 4864},
                             {151936, 896}, {3072, 2048},   {2048, 2048},  {16384, 2048},
                             {2048, 8192},  {128256, 2048}, {6144, 4096},  {4096, 4096},
                             {28672, 4096}, {4096, 14336},  {128256, 4096}};
constexpr int64_t kRows[] = {1, 4, 8, 16, 64, 512, 4096};

MatmulKernel layer(const Layer& of, int64_t rows) {
  MatmulKernel p;
  p.name = "layer";
  p.m = rows <= 16 ? DimExpr(rows) : DimExpr::symbol("rows");
  p.n = of.n;
  p.k = of.k;
  p.hooks = linearHooks(p, 3, Activation::none, -1, 2);
  return p;
}

// A kernel for every way that is chosen for some of them.
std::map<std::string, KernelText> chosenForLayers() {
  std::map<std::string, KernelText> kernels;
  for (const Layer& of : kLayers)
    for (int64_t rows : kRows) {
      const MatmulKernel p = layer(of, rows);
      const MatmulChoice choice = matmulCandidates(p, {rows, of.n, of.k, 1}).at(0);
      const std::string what =
          (rows <= 16 ? std::to_string(rows) : "many") + " rows, " + textOf(choice);
      if (kernels.count(what)) continue;
      kernels[what] = printMatmul(p, choice, rows, "layer_" + std::to_string(kernels.size())).text;
    }
  return kernels;
}

std::map<std::string, KernelText> chosenForAttention() {
  std::map<std::string, KernelText> kernels;
  for (int64_t depth : {64, 128}) {
    AttentionKernel a;
    a.name = "attention_" + std::to_string(depth);
    a.queryHeads = 32;
    a.keyHeads = 8;
    a.depth = a.valueDepth = depth;
    a.queries = DimExpr::symbol("queries");
    a.keys = DimExpr::symbol("keys");
    a.causal = Causal::positions;
    a.q = a.y = AttentionView::dense(32, a.queries, depth);
    a.k = a.v = AttentionView::dense(8, a.keys, depth);
    a.maskStrides = {0, 0, 0, 0};
    for (const KernelText& k : attentionKernels(a).kernels) kernels[k.name] = k;
  }
  return kernels;
}

void expectNoSpills(const std::map<std::string, KernelText>& kernels) {
  std::vector<KernelText> texts;
  for (const auto& [what, text] : kernels) texts.push_back(text);
  const std::vector<CompiledKernel> compiled = compileKernels(texts);
  size_t i = 0;
  for (const auto& [what, text] : kernels)
    EXPECT_THAT(gateViolations(what, compiled[i++].report, {}), ::testing::IsEmpty());
}

TEST(TuningGates, NoLayerSpills) {
  SKIP_WITHOUT_NVRTC();
  expectNoSpills(chosenForLayers());
}

TEST(TuningGates, NoAttentionSpills) {
  SKIP_WITHOUT_NVRTC();
  expectNoSpills(chosenForAttention());
}

// 26 sums of 64 bits for each of four rows: every way to print it spills, so the last one is told.
TEST(TuningGates, AKernelThatSpillsWithNothingLeftToTryIsTold) {
  SKIP_WITHOUT_NVRTC();
  Graph g;
  const Tensor q = g.input("q", DType::F64, {1, 1, 3, 8}),
               k = g.input("k", DType::F64, {1, 1, 40, 8}),
               v = g.input("v", DType::F64, {1, 1, 40, 832});
  g.output("y", fused::attention(q, k, v, {.scale = 0.25}));
  const Program program = compile(g, {.backend = "cuda", .backendOptions = {.target = "sm_90a"}});
  ASSERT_TRUE(program.metadata.contains("cuda.spills"));
  EXPECT_THAT(
      program.metadata.at("cuda.spills"),
      ::testing::MatchesRegex("attention_0_simt: 255 registers, [0-9]+ bytes stored to local "
                              "memory, [0-9]+ loaded\n"));
}

// 128 sums of a thread for each of two weight tiles are more than 255 registers.
TEST(TuningGates, TilesThatSpillAreNoCandidates) {
  for (const Layer& of : kLayers)
    for (int64_t rows : kRows) {
      MatmulKernel p = layer(of, rows);
      p.hooks.pairs = true;
      for (const MatmulChoice& c : matmulCandidates(p, {rows, of.n, of.k, 1})) {
        if (c.method != MatmulMethod::Gemm) continue;
        EXPECT_FALSE(c.tileM == 128 && c.tileN == 128 && c.warpsM * c.warpsN == 4) << textOf(c);
      }
    }
}

TEST(TuningGates, BlocksPerProcessorFollowTheRegisters) {
  const MatmulKernel p = layer({4096, 4096}, 8);
  MatmulChoice c;
  c.method = MatmulMethod::GemvDot;
  c.warpsN = 8;
  c.columns = 4;
  c.steps = 2;
  // 64 registers of loads, 32 sums and what adds them up.
  EXPECT_EQ(gemvPlan(p, {8, 4096, 4096, 1}, c).resident, 1);
  c.columns = 2;
  c.steps = 1;
  EXPECT_EQ(gemvPlan(p, {8, 4096, 4096, 1}, c).resident, 2);
}

}  // namespace
}  // namespace lathe::cuda
