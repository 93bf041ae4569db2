// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/llama.h"

#include <algorithm>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/transformer.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

int64_t bounded(int64_t value, int64_t limit, const char* name, std::source_location at) {
  if (value == 0) return limit;
  if (value >= 1 && value <= limit) return value;
  throw Error(ErrorCode::InvalidArgument,
              std::string("buildLlama: expected ") + name + " from 1 to the model's " +
                  std::to_string(limit) + " positions, got " + std::to_string(value),
              at);
}

nn::ModelStyle styleOf(const LlamaConfig& config) {
  nn::ModelStyle style = nn::ModelStyle::llama();
  nn::SwiGLUOptions mlp = nn::SwiGLUOptions::llama();
  mlp.activation = config.activation;
  style.mlp = mlp;
  return style;
}

// Ops have the lines of this function: a folder has no source of its own.
Graph record(const LlamaConfig& config, const FamilyOptions& options, int64_t maxSeq,
             int64_t capacity) {
  Graph g("llama");
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  const Dim seq = g.dim("seq", 1, maxSeq);
  const Dim cache = g.dim("cache", 1, capacity);
  const nn::TransformerLM model(g, "",
                                {.vocabSize = config.vocabSize,
                                 .dModel = config.hiddenSize,
                                 .dHidden = config.intermediateSize,
                                 .layers = config.layers,
                                 .heads = config.heads,
                                 .kvHeads = config.kvHeads,
                                 .headDim = config.headDim,
                                 // The table of angles needs no rows that no call can reach.
                                 .maxPositions = std::max(maxSeq, capacity),
                                 .ropeTheta = config.ropeTheta,
                                 .ropeScaling = config.ropeScaling,
                                 .normEps = config.rmsNormEps,
                                 .tiedHead = config.tieWordEmbeddings,
                                 .qkvBias = config.attentionBias,
                                 .outputBias = config.attentionBias,
                                 .mlpBias = config.mlpBias,
                                 .dtype = options.dtype,
                                 .weightDType = options.weightDType,
                                 .style = styleOf(config)});
  model.declareCache(batch, cache);

  g.entry("forward");
  g.output("logits", model.forward(g.input("input_ids", DType::I64, {batch, seq})));

  auto cached = [&](std::string_view name, const Dim& tokens, bool all) {
    g.entry(name);
    Tensor ids = g.input("input_ids", DType::I64, {batch, tokens});
    Tensor positions = g.input("positions", DType::I64, {batch});
    g.output("logits", all ? model.stepAll(ids, positions) : model.step(ids, positions));
  };
  cached("prefill", seq, false);
  cached("decode", 1, false);
  if (options.verify) cached("verify", seq, true);
  return g;
}

LlamaConfig readLlama(ConfigReader& config, const FamilyOptions& options) {
  const DecoderConfig c = readDecoder(config, options);
  readWindows(config, c.layers, 0, [](int64_t) { return false; });  // refuses windows
  return {.vocabSize = c.vocabSize,
          .hiddenSize = c.hiddenSize,
          .intermediateSize = c.intermediateSize,
          .layers = c.layers,
          .heads = c.heads,
          .kvHeads = c.kvHeads,
          .headDim = c.headDim,
          .maxPositions = c.maxPositions,
          .rmsNormEps = c.normEps,
          .ropeTheta = c.rope.theta,
          .ropeScaling = c.rope.scaling,
          .tieWordEmbeddings = c.tiedHead,
          .attentionBias = config.flag("attention_bias", false),
          .mlpBias = config.flag("mlp_bias", false),
          .activation = c.activation};
}

LlamaConfig readWhole(const JsonValue& root) {
  const std::string& name = familyOf(root).architecture;
  if (name != "LlamaForCausalLM")
    throw root.error(
        "expected \"LlamaForCausalLM\", got \"" + name + "\"; buildFromConfig takes others",
        ErrorCode::Unsupported);
  ConfigReader config(root);
  LlamaConfig c = readLlama(config, {});
  config.finish(name);
  return c;
}

}  // namespace

LlamaConfig loadLlamaConfig(const std::string& path) { return readWhole(loadConfig(path)); }

LlamaConfig parseLlamaConfig(std::string_view json, const std::string& file) {
  return readWhole(JsonValue::parse(json, file));
}

Graph builders::llama(ConfigReader& config, const FamilyOptions& options) {
  return buildLlama(readLlama(config, options), options);
}

Graph buildLlama(const LlamaConfig& config, const FamilyOptions& options, std::source_location at) {
  nn::expectPositive(config.maxPositions, "buildLlama, maxPositions", at);
  nn::expectPositive(options.maxBatch, "buildLlama, maxBatch", at);
  DecoderConfig sizes;
  sizes.maxPositions = config.maxPositions;
  sizes.rope.scaling = config.ropeScaling;
  const int64_t longest = longestSequence(sizes);
  const int64_t maxSeq = bounded(options.maxSeq, longest, "maxSeq", at);
  const int64_t capacity = bounded(options.cacheCapacity, longest, "cacheCapacity", at);
  try {
    return record(config, options, maxSeq, capacity);
  } catch (const Error& e) {
    // A mistake in the config is the caller's.
    throw Error(e.code(), builders::messageOf(e), at);
  }
}

}  // namespace lathe
