// SPDX-License-Identifier: Apache-2.0
#include "examples/seeds/presets.h"
#include "tests/golden/seed_models.h"

#include <cmath>
#include <utility>

#include "lathe/frontend/nn/nn.h"

namespace lathe::seeds {
namespace {

constexpr int64_t kVocabulary = 61, kPositions = 32;

// Ids that visit the vocabulary without a period that a wrong axis could hide in.
Array ids(const Shape& shape, int64_t limit = kVocabulary) {
  Array values(DType::I64, shape);
  for (int64_t i = 0; i < values.size(); ++i)
    values.set(i, double((7 * i * i + 11 * i + 3) % limit));
  return values;
}
// Numbers within -1..1, without a period either.
Array floats(DType dtype, const Shape& shape) {
  Array values(dtype, shape);
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, std::sin(double(i * i % 251 + 3 * i)));
  return values;
}
// As `ids`, with zeros past each row's length.
Array paddedIds(const std::vector<int64_t>& lengths, int64_t seq) {
  Array values = ids({int64_t(lengths.size()), seq}, kVocabulary - 1);
  for (int64_t i = 0; i < values.size(); ++i)
    values.set(i, i % seq < lengths[size_t(i / seq)] ? values.at(i) + 1 : 0);
  return values;
}
Array integers(const std::vector<int64_t>& values) {
  return Array::fromInts(values, {int64_t(values.size())});
}

Graph languageModel(DType dtype, nn::TransformerLMOptions options) {
  Graph g("language_model");
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, kPositions);
  options.vocabSize = kVocabulary;
  options.maxPositions = kPositions;
  options.dtype = dtype;
  const nn::TransformerLM model(g, "", options);
  g.output("out", model.forward(g.input("ids", DType::I64, {batch, seq})));
  return g;
}
SeedModel languageModel(const std::string& name, const nn::TransformerLMOptions& options) {
  return {
      .name = name,
      .build = [=](DType dtype) { return languageModel(dtype, options); },
      .calls = [](DType) { return std::vector<SeedCall>{{"forward", {{"ids", ids({2, 7})}}}}; }};
}

nn::TransformerLMOptions sizes(nn::ModelStyle style, int64_t dModel, int64_t heads,
                               int64_t dHidden) {
  return {
      .dModel = dModel, .dHidden = dHidden, .layers = 2, .heads = heads, .style = std::move(style)};
}
nn::TransformerLMOptions withPositions(nn::TransformerLMOptions options,
                                       nn::TransformerLMOptions::Positions positions) {
  options.positions = positions;
  return options;
}

// Two entry points that share a cache: a prompt fills it and one token extends it.
Graph cached(const nn::TransformerLM& model, Graph& g) {
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, kPositions);
  model.declareCache(batch, g.dim("cache", 1, kPositions));
  for (const auto& [entry, tokens] : {std::pair{"prefill", seq}, {"decode", Dim(1)}}) {
    g.entry(entry);
    Tensor ids = g.input("ids", DType::I64, {batch, tokens});
    g.output("out", model.step(ids, g.input("positions", DType::I64, {batch})));
  }
  return std::move(g);
}
SeedModel cachedModel(const std::string& name, const std::function<Graph(DType)>& build) {
  return {.name = name,
          .build = build,
          .calls =
              [](DType) {
                return std::vector<SeedCall>{
                    {"prefill", {{"ids", ids({2, 5})}, {"positions", integers({0, 0})}}},
                    {"decode", {{"ids", ids({2, 1})}, {"positions", integers({5, 5})}}}};
              },
          .symbols = {{"cache", 11}}};
}

// Grouped heads and a tied head.
Graph cachedLlama(DType dtype) {
  Graph g("llama");
  nn::TransformerLMOptions options = sizes(nn::ModelStyle::llama(), 48, 4, 100);
  options.vocabSize = kVocabulary;
  options.maxPositions = kPositions;
  options.kvHeads = 2;
  options.tiedHead = true;
  options.dtype = dtype;
  return cached(nn::TransformerLM(g, "", options), g);
}

nn::TransformerLMOptions gptOptions(DType dtype) {
  return {.vocabSize = kVocabulary,
          .dModel = 24,
          .dHidden = 50,
          .layers = 2,
          .heads = 3,
          .maxPositions = kPositions,
          .positions = nn::TransformerLMOptions::Positions::Learnt,
          .tiedHead = true,
          .dtype = dtype,
          .style = nn::ModelStyle::gpt()};
}
Graph gpt(DType dtype) {
  Graph g("gpt");
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, kPositions);
  g.output("out", nn::TransformerLM(g, "", gptOptions(dtype))
                      .forward(g.input("ids", DType::I64, {batch, seq})));
  return g;
}
Graph cachedGpt(DType dtype) {
  Graph g("gpt");
  return cached(nn::TransformerLM(g, "", gptOptions(dtype)), g);
}

nn::PostNormOptions postNorm() {
  nn::PostNormOptions o = seeds::rice::layer();
  o.dHidden = 50;
  o.attention.dModel = 24;
  o.attention.heads = 3;
  return o;
}
SeedModel encoderDecoder(const std::string& name, nn::EncoderDecoderOptions::Positions positions) {
  auto build = [=](DType dtype) {
    Graph g("encoder_decoder");
    const Dim batch = g.dim("batch", 1, 4);
    const Dim s = g.dim("source", 1, kPositions), t = g.dim("target", 1, kPositions);
    const nn::EncoderDecoder model(g, "",
                                   {.sourceVocab = kVocabulary,
                                    .targetVocab = kVocabulary,
                                    .layers = 2,
                                    .maxPositions = kPositions,
                                    .positions = positions,
                                    .layer = postNorm(),
                                    .dtype = dtype});
    Tensor source = g.input("source", DType::I64, {batch, s});
    Tensor target = g.input("target", DType::I64, {batch, t});
    g.output("out",
             model.forward(source, target, nn::paddingMask(source, 0), nn::targetMask(target, 0)));
    return g;
  };
  auto calls = [](DType) {
    return std::vector<SeedCall>{
        {"forward", {{"source", paddedIds({7, 4}, 7)}, {"target", paddedIds({3, 5}, 5)}}}};
  };
  return {.name = name, .build = build, .calls = calls};
}

// Encoder layers whose scores get T5's bias.
Graph relativeBiasEncoder(DType dtype) {
  Graph g("relative_bias_encoder");
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, kPositions);
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor x = nn::Embedding(g, "embedding", kVocabulary, 24, {.dtype = dtype})(ids);
  const nn::RelativePositionBias bias(g, "bias", {.heads = 3, .buckets = 8, .maxDistance = 10});
  const Tensor mask = bias(ids, seq, seq, dtype);
  for (const char* name : {"layers.0", "layers.1"})
    x = nn::EncoderLayer(g, name, postNorm())(x, mask);
  g.output("out", x);
  return g;
}

// Encoder layers whose keys get Shaw's vectors.
Graph relativeKeysEncoder(DType dtype) {
  Graph g("relative_keys_encoder");
  const Dim batch = g.dim("batch", 1, 4), seq = g.dim("seq", 1, kPositions);
  Tensor ids = g.input("ids", DType::I64, {batch, seq});
  Tensor x = nn::Embedding(g, "embedding", kVocabulary, 24, {.dtype = dtype})(ids);
  nn::PostNormOptions layer = postNorm();
  layer.attention.relativeDistance = 3;
  for (const char* name : {"layers.0", "layers.1"}) x = nn::EncoderLayer(g, name, layer)(x);
  g.output("out", x);
  return g;
}

Graph tiledAttention(DType dtype) {
  Graph g("tiled_attention");
  const Dim batch = g.dim("batch", 1, 4), queries = g.dim("queries", 1, kPositions);
  g.output("out", nn::tiledAttention(g.input("q", dtype, {batch, 3, queries, 8}),
                                     g.input("k", dtype, {batch, 3, 13, 8}),
                                     g.input("v", dtype, {batch, 3, 13, 12}), 5));
  return g;
}

SeedModel dit(const std::string& name, nn::DiTOptions::Positions positions) {
  auto build = [=](DType dtype) {
    Graph g("dit");
    const Dim batch = g.dim("batch", 1, 4);
    const nn::DiT model(g, "",
                        {.image = {6, 14},
                         .channels = 3,
                         .dModel = 24,
                         .layers = 2,
                         .heads = 3,
                         .dHidden = 50,
                         .labels = 11,
                         .positions = positions,
                         .timestep = {.frequencies = 16},
                         .dtype = dtype});
    g.output("out", model(g.input("image", dtype, {batch, 3, 6, 14}),
                          g.input("timesteps", DType::F32, {batch}),
                          g.input("labels", DType::I64, {batch})));
    return g;
  };
  auto calls = [](DType dtype) {
    const float steps[] = {3, 777};
    return std::vector<SeedCall>{{"forward",
                                  {{"image", floats(dtype, {2, 3, 6, 14})},
                                   {"timesteps", Array::fromFloats(steps, {2})},
                                   {"labels", integers({10, 4})}}}};
  };
  return {.name = name, .build = build, .calls = calls};
}

// Of a graph whose one input is `ids`.
SeedModel ofIds(const std::string& name, Graph (*build)(DType)) {
  return {.name = name, .build = build, .calls = [](DType) {
            return std::vector<SeedCall>{{"forward", {{"ids", ids({2, 7})}}}};
          }};
}

}  // namespace

std::vector<SeedModel> seedModels() {
  using Positions = nn::TransformerLMOptions::Positions;
  using nn::ModelStyle;
  return {
      languageModel("cs336_lm", sizes(seeds::cs336::style(), 24, 3, 50)),
      languageModel("cs336_learnt_positions",
                    withPositions(sizes(seeds::cs336::style(), 24, 3, 50), Positions::Learnt)),
      languageModel("cs190c_lm", sizes(seeds::cs190c::style(), 40, 2, 64)),
      languageModel("cs190c_no_positions",
                    withPositions(sizes(seeds::cs190c::style(), 40, 2, 64), Positions::None)),
      languageModel("llama", sizes(ModelStyle::llama(), 48, 4, 100)),
      cachedModel("llama_cached", cachedLlama),
      languageModel("modern_lm",
                    withPositions(sizes(seeds::modern::style(), 24, 3, 24), Positions::Learnt)),
      ofIds("gpt", gpt),
      cachedModel("gpt_cached", cachedGpt),
      encoderDecoder("encoder_decoder", nn::EncoderDecoderOptions::Positions::Sine),
      encoderDecoder("encoder_decoder_learnt_positions",
                     nn::EncoderDecoderOptions::Positions::Learnt),
      ofIds("relative_bias_encoder", relativeBiasEncoder),
      ofIds("relative_keys_encoder", relativeKeysEncoder),
      {.name = "tiled_attention",
       .build = tiledAttention,
       .calls =
           [](DType dtype) {
             return std::vector<SeedCall>{{"forward",
                                           {{"q", floats(dtype, {2, 3, 7, 8})},
                                            {"k", floats(dtype, {2, 3, 13, 8})},
                                            {"v", floats(dtype, {2, 3, 13, 12})}}}};
           }},
      dit("dit", nn::DiTOptions::Positions::Stored),
      dit("dit_computed_positions", nn::DiTOptions::Positions::Sine2d),
  };
}

}  // namespace lathe::seeds
