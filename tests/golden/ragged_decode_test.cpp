// SPDX-License-Identifier: Apache-2.0
// Rows of a batch that stand at different positions: each gets the logits that its own text has in
// the full pass, of transformers for a checkpoint and of the interpreter in float64 for our models.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/model_config.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

constexpr int64_t kSeq = 17;  ///< tokens of the text of each row

/// A model with the entry points of buildLlama, two texts and their logits at every position.
struct Model {
  Graph graph;
  Array ids, truth;  ///< [2, kSeq], [2, kSeq, vocabulary]
  std::function<void(Session&)> bind;
};

Model checkpoint(const std::string& folder) {
  const std::string path = LATHE_TEST_DATA "/golden/" + folder;
  const SafetensorsFile expected = SafetensorsFile::open(path + "/expected.safetensors");
  auto weights = std::make_shared<Checkpoint>(Checkpoint::open(path));
  return {
      buildLlama(loadLlamaConfig(path),
                 {.weightDType = *weights->entry("model.norm.weight")->dtype}),
      expected.array("input_ids"), expected.array("logits.f64"), [weights](Session& session) {
        session.bindWeights([&](const std::string& name) { return weights->find(name).value(); });
      }};
}

Model random(nn::TransformerLMOptions options) {
  options.vocabSize = 31;
  options.dModel = 24;
  options.dHidden = 40;
  options.layers = 2;
  options.heads = 3;
  options.maxPositions = 32;
  Graph g;
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, 32);
  const nn::TransformerLM model(g, "", options);
  g.output("logits", model.forward(g.input("input_ids", DType::I64, {batch, seq})));
  model.declareCache(batch, g.dim("cache", 1, 32));
  for (const auto& [entry, tokens] : {std::pair<const char*, Dim>{"prefill", seq}, {"decode", 1}}) {
    g.entry(entry);
    const Tensor ids = g.input("input_ids", DType::I64, {batch, tokens});
    g.output("logits", model.step(ids, g.input("positions", DType::I64, {batch})));
  }
  Array ids(DType::I64, {2, kSeq});
  for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double((7 * i * i + 11 * i + 3) % 31));
  auto bind = [](Session& session) { session.bindRandomWeights(3); };
  Session exact(compile(
      g, {.backend = "reference", .backendOptions = {.float64 = true}, .stopAfterRewrite = 0}));
  bind(exact);
  const Array truth = exact.run("forward", {{"input_ids", ids}}).at("logits");
  return {std::move(g), ids, truth, bind};
}

using Positions = nn::TransformerLMOptions::Positions;
Model modelNamed(const std::string& name) {
  if (name == "rotary") return random({.style = nn::ModelStyle::llama()});
  if (name == "learnt") return random({.positions = Positions::Learnt});
  if (name == "gpt")
    return random(
        {.positions = Positions::Learnt, .tiedHead = true, .style = nn::ModelStyle::gpt()});
  return checkpoint(name);
}

struct Parameter {
  std::string model, backend;
};
class RaggedDecode : public ::testing::TestWithParam<Parameter> {};

// `tokens` of each row's text from where the row stands.
struct Step {
  int64_t tokens;
  std::vector<int64_t> at;
};

TEST_P(RaggedDecode, EveryRowGetsWhatItsOwnTextHas) {
  const Model model = modelNamed(GetParam().model);
  Session session(compile(model.graph, {.backend = GetParam().backend}), {.device = "host"});
  model.bind(session);
  session.setSymbol("cache", 24);
  // The first row leads by 4, then falls behind: at the end it is 5 tokens shorter.
  std::vector<Step> steps{{3, {0, 0}}};
  for (int64_t i = 3; i < 8; ++i) steps.push_back({1, {i, std::max<int64_t>(i - 4, 0)}});
  steps.push_back({3, {8, 4}});
  for (int64_t i = 7; i < kSeq; ++i) steps.push_back({1, {std::min<int64_t>(i + 4, 11), i}});
  const int64_t vocabulary = model.truth.shape()[2];
  ASSERT_TRUE(isFinite(model.truth));
  const double allowed = 2e-5 * largestValue(model.truth);
  for (const Step& step : steps) {
    Array ids(DType::I64, {2, step.tokens});
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < step.tokens; ++i)
        ids.set(b * step.tokens + i, model.ids.at(b * kSeq + step.at[size_t(b)] + i));
    const Array logits =
        session
            .run(step.tokens == 1 ? "decode" : "prefill",
                 {{"input_ids", ids}, {"positions", Array::fromInts(step.at, {2})}})
            .at("logits");
    for (int64_t b = 0; b < 2; ++b) {
      const int64_t last = step.at[size_t(b)] + step.tokens - 1;
      EXPECT_LE(largestError(elements(logits, b * vocabulary, vocabulary),
                             elements(model.truth, (b * kSeq + last) * vocabulary, vocabulary)),
                allowed)
          << "row " << b << " at position " << last << ", the other at "
          << step.at[size_t(1 - b)] + step.tokens - 1;
    }
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const char* model : {"rotary", "learnt", "gpt", "llama_tiny_llama3", "llama_tiny_linear"})
    for (const char* backend : {"reference", "cpu", "cuda"}) all.push_back({model, backend});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Models, RaggedDecode, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.model + "_on_" + info.param.backend;
                         });

}  // namespace
}  // namespace lathe
