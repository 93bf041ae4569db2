// SPDX-License-Identifier: Apache-2.0
// The dtype of a model's weights: the checkpoint's, whatever the model computes in.
#include <optional>
#include <set>
#include <sstream>

#include "examples/seeds/presets.h"
#include "lathe/frontend/families/llama.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

// Every weight, of norms and embeddings too, has the dtype that the options name.
void expectWeights(const std::string& text, const std::string& model) {
  std::istringstream lines(text);
  int weights = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!has(line, "lathe.weight ")) continue;
    ++weights;
    EXPECT_TRUE(has(line, "xf16>")) << model << ": " << line;
  }
  EXPECT_GT(weights, 4) << model;
}

TEST(NnWeights, OfALanguageModelHaveTheCheckpointsDType) {
  const nn::ModelStyle styles[] = {nn::ModelStyle::llama(), seeds::cs336::style(),
                                   seeds::cs190c::style(), seeds::modern::style()};
  for (bool learnt : {false, true})
    for (bool useFused : {false, true})
      for (size_t i = 0; i < std::size(styles); ++i) {
        nn::TransformerLMOptions o = small(styles[i]);
        o.weightDType = DType::F16;
        o.useFused = useFused;
        if (learnt) o.positions = nn::TransformerLMOptions::Positions::Learnt;
        Graph g;
        Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 128);
        g.output("y",
                 nn::TransformerLM(g, "", o).forward(g.input("ids", DType::I64, {batch, seq})));
        expectWeights(g.text(), "style " + std::to_string(i));
      }
}

TEST(NnWeights, OfLlamaHaveTheCheckpointsDType) {
  LlamaConfig config;
  config.vocabSize = 100, config.hiddenSize = 64, config.intermediateSize = 172;
  config.layers = 2, config.heads = 4, config.kvHeads = 2, config.headDim = 16;
  config.maxPositions = 128;
  for (bool extras : {false, true}) {
    config.attentionBias = config.mlpBias = extras;
    expectWeights(buildLlama(config, {.weightDType = DType::F16}).text(), "llama");
  }
}

TEST(NnWeights, OfAGptHaveTheCheckpointsDType) {
  for (bool tied : {false, true}) {
    Graph g;
    Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 128);
    const nn::TransformerLMOptions o{.vocabSize = 100,
                                     .dModel = 64,
                                     .layers = 2,
                                     .heads = 4,
                                     .maxPositions = 128,
                                     .positions = nn::TransformerLMOptions::Positions::Learnt,
                                     .tiedHead = tied,
                                     .weightDType = DType::F16,
                                     .style = nn::ModelStyle::gpt()};
    g.output("y", nn::TransformerLM(g, "", o).forward(g.input("ids", DType::I64, {batch, seq})));
    expectWeights(g.text(), "gpt");
  }
}

TEST(NnWeights, OfAnEncoderDecoderHaveTheCheckpointsDType) {
  using Positions = nn::EncoderDecoderOptions::Positions;
  for (Positions positions : {Positions::Sine, Positions::Learnt})
    for (int64_t distance : {0, 3}) {
      nn::EncoderDecoderOptions o;
      o.sourceVocab = 90, o.targetVocab = 70, o.layers = 2, o.positions = positions;
      o.layer.attention.dModel = 64, o.layer.attention.heads = 4, o.layer.dHidden = 96;
      o.layer.attention.relativeDistance = distance;
      o.weightDType = DType::F16;
      Graph g;
      Dim batch = g.dim("batch", 1, 8), s = g.dim("s", 1, 64), t = g.dim("t", 1, 64);
      const nn::EncoderDecoder model(g, "", o);
      const Tensor source = g.input("source", DType::I64, {batch, s});
      const Tensor target = g.input("target", DType::I64, {batch, t});
      g.output("y", model.forward(source, target, nn::paddingMask(source, 0),
                                  nn::targetMask(target, 0)));
      expectWeights(g.text(), "encoder-decoder");
    }
}

TEST(NnWeights, OfADiTHaveTheCheckpointsDType) {
  using Positions = nn::DiTOptions::Positions;
  for (Positions positions : {Positions::Stored, Positions::Sine2d}) {
    Graph g;
    Dim batch = g.dim("batch", 1, 4);
    const nn::DiTOptions o{.image = {6, 8},
                           .channels = 3,
                           .dModel = 16,
                           .layers = 2,
                           .heads = 2,
                           .positions = positions,
                           .weightDType = DType::F16};
    const nn::DiT model(g, "", o);
    g.output("y",
             model(g.input("image", DType::F32, {batch, 3, 6, 8}),
                   g.input("steps", DType::F32, {batch}), g.input("labels", DType::I64, {batch})));
    expectWeights(g.text(), "DiT");
  }
}

// The projections "q_proj", ... of the layer "a" that add a bias.
std::set<std::string> biasesIn(const std::string& text) {
  std::set<std::string> names;
  const std::string start = "lathe.weight \"a.", end = ".bias\"";
  for (size_t at = text.find(start); at != text.npos; at = text.find(start, at + 1)) {
    const std::string name =
        text.substr(at + start.size(), text.find(' ', at + start.size()) - (at + start.size()));
    if (name.ends_with(end)) names.insert(name.substr(0, name.size() - end.size()));
  }
  return names;
}
std::set<std::string> projections(bool q, bool k, bool v, bool o) {
  std::set<std::string> names;
  if (q) names.insert("q_proj");
  if (k) names.insert("k_proj");
  if (v) names.insert("v_proj");
  if (o) names.insert("o");
  return names;
}

// A bias of the keys' own says nothing of the other projections, nor they of it.
TEST(NnWeights, ABiasOfKeysIsToldApart) {
  for (bool others : {false, true})
    for (std::optional<bool> keys :
         {std::optional<bool>(), std::optional(false), std::optional(true)})
      for (bool output : {false, true}) {
        const auto wanted = projections(others, keys.value_or(others), others, output);
        Recording self, heads;
        nn::SelfAttentionOptions s{.dModel = 64, .heads = 4, .qkvBias = others};
        s.outputBias = output, s.keyBias = keys, s.names.o = "o";
        EXPECT_EQ(biasesIn(self.text(nn::CausalSelfAttention(self.g, "a", s)(self.x))), wanted);
        nn::MultiHeadAttentionOptions m{.dModel = 64, .heads = 4};
        m.bias = output, m.qkvBias = others, m.keyBias = keys, m.names.o = "o";
        EXPECT_EQ(biasesIn(heads.text(nn::MultiHeadAttention(heads.g, "a", m)(heads.x))), wanted);
      }
  for (bool others : {false, true})
    for (bool keys : {false, true}) {
      Recording cross;
      nn::CrossAttentionOptions c{.dModel = 64, .heads = 4, .bias = others, .keyBias = keys};
      c.names.o = "o";
      const nn::CrossAttention layer(cross.g, "a", c);
      EXPECT_EQ(biasesIn(cross.text(layer(cross.x, layer.keysOf(cross.x)))),
                projections(others, keys, others, others));
    }
}

}  // namespace
}  // namespace lathe
