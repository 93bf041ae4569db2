// SPDX-License-Identifier: Apache-2.0
// Every spelling that the nn modules record is found by the fusions.
#include <map>

#include "examples/seeds/presets.h"
#include "frontend/graph_impl.h"
#include "gtest/gtest.h"
#include "lathe/frontend/nn/nn.h"
#include "lathe/ir/types.h"
#include "lathe/passes/passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace lathe {
namespace {

// Ops by name in all entry points of a graph after the fusions.
std::map<std::string, int> fusedOps(const Graph& graph) {
  ModuleOp module = graph.impl().finished();
  PassManager manager(module.getContext());
  for (auto* make : {+[] { return createCanonicalizePass(); }, +[] { return createCsePass(); },
                     +[] { return createFusePass(); }, +[] { return createCanonicalizePass(); },
                     +[] { return createCsePass(); }, +[] { return createCheckLocationsPass(); }})
    manager.addPass(make());
  EXPECT_TRUE(succeeded(manager.run(module)));
  std::map<std::string, int> counts;
  module.walk([&](Operation* op) { ++counts[op->getName().getStringRef().drop_front(6).str()]; });
  return counts;
}

struct Case {
  const char* name;
  nn::TransformerLMOptions options;
  int norms, ropes;  // per layer; the model has one more norm
};

nn::TransformerLMOptions small(nn::ModelStyle style, DType dtype, int64_t kvHeads) {
  nn::TransformerLMOptions o{.vocabSize = 32,
                             .dModel = 16,
                             .dHidden = 24,
                             .layers = 2,
                             .heads = 4,
                             .kvHeads = kvHeads,
                             .maxPositions = 64};
  o.style = style;
  o.dtype = dtype;
  return o;
}

class FuseModels : public testing::TestWithParam<Case> {};

TEST_P(FuseModels, ForwardHasNoElementaryRemains) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "", GetParam().options);
  g.output("logits", model.forward(g.input("ids", DType::I64, {batch, seq})));
  auto ops = fusedOps(g);
  EXPECT_EQ(ops["attention"], 2);
  EXPECT_EQ(ops["rms_norm"], 2 * GetParam().norms + 1);
  EXPECT_EQ(ops["rope"], 2 * GetParam().ropes);
  EXPECT_EQ(ops["glu"], 2);
  EXPECT_EQ(ops["linear"], 2 * 7 + 1);
  EXPECT_EQ(ops["embedding"],
            GetParam().options.positions == nn::TransformerLMOptions::Positions::Learnt ? 2 : 1);
  for (const char* gone :
       {"matmul", "exp", "reduce_max", "reduce_mean", "reduce_sum", "sqrt", "rsqrt", "sigmoid",
        "select", "compare", "concat", "slice", "broadcast", "is_nan"})
    EXPECT_EQ(ops[gone], 0) << gone;
}

TEST_P(FuseModels, CachedStepHasNoElementaryRemains) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), cache = g.dim("cache", 1, 64), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "", GetParam().options);
  model.declareCache(batch, cache);
  for (auto [entry, length] : {std::pair("prefill", seq), std::pair("decode", Dim(1))}) {
    g.entry(entry);
    Tensor ids = g.input("ids", DType::I64, {batch, length});
    Tensor positions = g.input("positions", DType::I64, {batch});
    g.output("logits", model.step(ids, positions));
  }
  auto ops = fusedOps(g);
  EXPECT_EQ(ops["attention"], 4);
  EXPECT_EQ(ops["rms_norm"], 2 * (2 * GetParam().norms + 1));
  // The keys' rotation goes into the cache.
  EXPECT_EQ(ops["rope"], 2 * GetParam().ropes);
  EXPECT_EQ(ops["rope_append"], 2 * GetParam().ropes);
  EXPECT_EQ(ops["glu"], 4);
  EXPECT_EQ(ops["linear"], 2 * (2 * 7 + 1));
  for (const char* gone : {"matmul", "exp", "reduce_max", "reduce_mean", "reduce_sum", "select",
                           "compare", "concat", "broadcast", "is_nan"})
    EXPECT_EQ(ops[gone], 0) << gone;
}

nn::ModelStyle logits(nn::ModelStyle style) {
  style.probabilities = false;
  return style;
}

INSTANTIATE_TEST_SUITE_P(
    Styles, FuseModels,
    testing::Values(Case{"llama_f32", small(nn::ModelStyle::llama(), DType::F32, 2), 2, 2},
                    Case{"llama_bf16", small(nn::ModelStyle::llama(), DType::BF16, 2), 2, 2},
                    Case{"llama_mqa_bf16", small(nn::ModelStyle::llama(), DType::BF16, 1), 2, 2},
                    Case{"cs336_f32", small(logits(seeds::cs336::style()), DType::F32, 4), 2, 2},
                    Case{"cs336_bf16", small(logits(seeds::cs336::style()), DType::BF16, 4), 2, 2},
                    Case{"cs190c_f32", small(logits(seeds::cs190c::style()), DType::F32, 4), 2, 2},
                    Case{"cs190c_bf16", small(logits(seeds::cs190c::style()), DType::BF16, 4), 2,
                         2}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
