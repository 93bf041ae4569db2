// SPDX-License-Identifier: Apache-2.0
// Whole models: the pipeline in strict mode gives the interpreter's bits of the recorded graph.
#include <gtest/gtest.h>

#include "examples/seeds/presets.h"
#include "lathe/lathe.h"
#include "tests/conformance/rewriting.h"

namespace lathe::conformance {
namespace {

struct Model {
  const char* name;
  nn::ModelStyle style;
  DType dtype;
  int64_t kvHeads;
};

class StrictModels : public ::testing::TestWithParam<Model> {};

Array filled(DType dtype, const Shape& shape, uint64_t seed) {
  Array a(dtype, shape);
  for (int64_t i = 0; i < a.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    a.set(i, double((seed >> 33) % 2001) / 4000 - 0.25);
  }
  return a;
}

// All outputs of `forward`.
std::vector<Array> outputs(const Graph& g, const CompileOptions& options) {
  Program program = compile(g, options);
  Arrays weights;
  for (const TensorInfo& w : program.weights) {
    Shape shape;
    for (const Dim& d : w.shape) shape.push_back(*d.asConstant());
    weights[w.name] = filled(w.dtype, shape, weights.size());
  }
  Session session(std::move(program));
  session.bindWeights(weights);
  Array ids(DType::I64, {2, 5});
  for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double(i * 7 % 32));
  std::vector<Array> all;
  for (auto& [name, value] : session.run("forward", {{"ids", ids}})) all.push_back(value);
  return all;
}

TEST_P(StrictModels, GiveTheBitsOfTheRecordedGraph) {
  nn::TransformerLMOptions options{.vocabSize = 32,
                                   .dModel = 16,
                                   .dHidden = 24,
                                   .layers = 2,
                                   .heads = 4,
                                   .kvHeads = GetParam().kvHeads,
                                   .maxPositions = 64};
  options.style = GetParam().style;
  options.dtype = GetParam().dtype;
  Graph g;
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 64);
  nn::TransformerLM model(g, "", options);
  g.output("logits", model.forward(g.input("ids", DType::I64, {batch, seq})));

  CompileRecord record;
  const CompileOptions plain{.backend = "reference", .stopAfterRewrite = 0},
      strict{.backend = "reference", .pipeline = {.mode = NumericsMode::Strict}, .record = &record};
  EXPECT_EQ(firstOtherBits(outputs(g, plain), outputs(g, strict)), "");
  for (const CompileRecord::Rewrite& r : record.rewrites) EXPECT_TRUE(r.weakened.empty()) << r.what;
  // Something is fused, so that this is no test of nothing.
  EXPECT_NE(irAt(g, "fused", strict).find("lathe.rope"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, StrictModels,
    ::testing::Values(Model{"llama_f32", nn::ModelStyle::llama(), DType::F32, 2},
                      Model{"llama_bf16", nn::ModelStyle::llama(), DType::BF16, 2},
                      Model{"cs336_f32", seeds::cs336::style(), DType::F32, 4},
                      Model{"cs336_bf16", seeds::cs336::style(), DType::BF16, 4},
                      Model{"cs190c_f32", seeds::cs190c::style(), DType::F32, 4},
                      Model{"cs190c_bf16", seeds::cs190c::style(), DType::BF16, 4}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe::conformance
