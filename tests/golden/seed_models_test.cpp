// SPDX-License-Identifier: Apache-2.0
// Every model of docs/seeds.md: recorded from elementary ops, and the same numbers on cpu, cuda and
// reference, through a cache and without one.
#include "tests/golden/seed_models.h"

#include "frontend/graph_impl.h"
#include "lathe/ir/types.h"
#include "tests/golden/seed_golden.h"
#include "tests/observed_errors.h"

namespace lathe::seeds {
namespace {

struct Parameter {
  SeedModel model;
  DType dtype;
};

std::vector<Array> outputs(const SeedModel& model, DType dtype, const std::string& backend) {
  Session session(compile(model.build(dtype), {.backend = backend}), {.device = "host"});
  session.bindRandomWeights(1);
  for (const auto& [name, value] : model.symbols) session.setSymbol(name, value);
  std::vector<Array> results;
  for (const SeedCall& call : model.calls(dtype))
    results.push_back(session.run(call.entry, call.inputs).at("out"));
  return results;
}
SeedModel modelNamed(const std::string& name) {
  for (const SeedModel& model : seedModels())
    if (model.name == name) return model;
  throw std::out_of_range(name);
}

class SeedModels : public ::testing::TestWithParam<Parameter> {};

TEST_P(SeedModels, AreRecordedFromElementaryOps) {
  const Graph graph = GetParam().model.build(GetParam().dtype);
  graph.impl().finished().walk([](mlir::Operation* op) {
    EXPECT_FALSE(mlir::isa<DecomposableOp>(op)) << op->getName().getStringRef().str();
  });
}

TEST_P(SeedModels, TextParsesBack) {
  const std::string text = GetParam().model.build(GetParam().dtype).text();
  EXPECT_EQ(Graph::parse(text).text(), text);
}

void expectEqualsReference(const Parameter& parameter, const std::string& backend) {
  const auto& [model, dtype] = parameter;
  const auto got = outputs(model, dtype, backend), reference = outputs(model, dtype, "reference");
  ASSERT_EQ(got.size(), model.calls(dtype).size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double largest = largestValue(reference[i]);
    ASSERT_GT(largest, 0);
    ASSERT_TRUE(isFinite(reference[i]));
    const double error = largestError(got[i], reference[i]);
    const double bound = (dtype == DType::F32 ? 1e-6 : 0.02) * largest;
    test::ObservedErrors::note(backend + " " + model.name + " " + std::string(nameOf(dtype)), error,
                               bound);
    EXPECT_LE(error, bound);
  }
}
TEST_P(SeedModels, CpuEqualsReference) { expectEqualsReference(GetParam(), "cpu"); }
// Kernels of the CUDA backend, run on this CPU.
TEST_P(SeedModels, CudaEqualsReference) { expectEqualsReference(GetParam(), "cuda"); }

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const SeedModel& model : seedModels())
    for (DType dtype : model.dtypes) all.push_back({model, dtype});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Seeds, SeedModels, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.model.name + "_" +
                                  std::string(nameOf(info.param.dtype));
                         });

// The cached model's last call continues the prompt of its first by one token.
TEST(SeedModelsTogether, ACachedStepEqualsTheWholeText) {
  const SeedModel whole = modelNamed("gpt"), cached = modelNamed("gpt_cached");
  const std::vector<SeedCall> calls = cached.calls(DType::F32);
  const Array prompt = calls[0].inputs.at("ids"), token = calls[1].inputs.at("ids");
  const int64_t batch = prompt.shape()[0], length = prompt.shape()[1];
  Array text(DType::I64, {batch, length + 1});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i <= length; ++i)
      text.set(b * (length + 1) + i, i < length ? prompt.at(b * length + i) : token.at(b));
  Session session(compile(whole.build(DType::F32)));
  session.bindRandomWeights(1);
  const Array all = session.run("forward", {{"ids", text}}).at("out");
  const Array last = outputs(cached, DType::F32, "cpu").at(1);
  const int64_t vocabulary = last.shape()[1];
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < vocabulary; ++i)
      EXPECT_NEAR(last.at(b * vocabulary + i), all.at((b * (length + 1) + length) * vocabulary + i),
                  1e-5);
}

TEST(SeedModelsTogether, TiledAttentionEqualsAttention) {
  const SeedModel tiled = modelNamed("tiled_attention");
  const Arrays inputs = tiled.calls(DType::F32).at(0).inputs;
  Graph g;
  std::map<std::string, Tensor> in;
  for (const auto& [name, value] : inputs)
    in[name] = g.input(name, value.dtype(), Dims(value.shape().begin(), value.shape().end()));
  g.output("out", nn::attention(in["q"], in["k"], in["v"]));
  Session session(compile(g));
  const Array expected = session.run("forward", inputs).at("out");
  ASSERT_TRUE(isFinite(expected));
  EXPECT_LE(largestError(outputs(tiled, DType::F32, "cpu").at(0), expected), 1e-6);
}

}  // namespace
}  // namespace lathe::seeds
