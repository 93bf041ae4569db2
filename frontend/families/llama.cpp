// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/llama.h"

#include <algorithm>

#include "lathe/frontend/nn/transformer.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

nn::RopeScalingOptions scalingOf(const RopeScaling& scaling) {
  using Type = nn::RopeScalingOptions::Type;
  nn::RopeScalingOptions o{.factor = scaling.factor,
                           .lowFreqFactor = scaling.lowFreqFactor,
                           .highFreqFactor = scaling.highFreqFactor,
                           .originalMaxPositions = scaling.originalMaxPositions};
  switch (scaling.type) {
    case RopeScaling::Type::Default:
      o.type = Type::Default;
      break;
    case RopeScaling::Type::Linear:
      o.type = Type::Linear;
      break;
    case RopeScaling::Type::Llama3:
      o.type = Type::Llama3;
      break;
  }
  return o;
}

int64_t bounded(int64_t value, int64_t limit, const char* name, std::source_location at) {
  if (value == 0) return limit;
  if (value >= 1 && value <= limit) return value;
  throw Error(ErrorCode::InvalidArgument,
              std::string("buildLlama: expected ") + name + " from 1 to the model's " +
                  std::to_string(limit) + " positions, got " + std::to_string(value),
              at);
}

// Ops have the lines of this function: a folder has no source of its own.
Graph record(const LlamaConfig& config, const LlamaGraphOptions& options, int64_t maxSeq,
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
                                 .ropeScaling = scalingOf(config.ropeScaling),
                                 .normEps = config.rmsNormEps,
                                 .tiedHead = config.tieWordEmbeddings,
                                 .qkvBias = config.attentionBias,
                                 .outputBias = config.attentionBias,
                                 .mlpBias = config.mlpBias,
                                 .dtype = options.dtype,
                                 .weightDType = options.weightDType,
                                 .style = nn::ModelStyle::llama()});
  model.declareCache(batch, cache);

  g.entry("forward");
  g.output("logits", model.forward(g.input("input_ids", DType::I64, {batch, seq})));

  auto cached = [&](std::string_view name, const Dim& tokens) {
    g.entry(name);
    Tensor ids = g.input("input_ids", DType::I64, {batch, tokens});
    Tensor positions = g.input("positions", DType::I64, {batch});
    g.output("logits", model.step(ids, positions));
  };
  cached("prefill", seq);
  cached("decode", 1);
  return g;
}

}  // namespace

Graph buildLlama(const LlamaConfig& config, const LlamaGraphOptions& options,
                 std::source_location at) {
  nn::expectPositive(config.maxPositions, "buildLlama, maxPositions", at);
  nn::expectPositive(options.maxBatch, "buildLlama, maxBatch", at);
  const int64_t maxSeq = bounded(options.maxSeq, config.maxPositions, "maxSeq", at);
  const int64_t capacity = bounded(options.cacheCapacity, config.maxPositions, "cacheCapacity", at);
  if (config.hiddenAct != "silu")
    throw Error(ErrorCode::Unsupported,
                "buildLlama: expected hidden_act silu, got " + config.hiddenAct, at);

  try {
    return record(config, options, maxSeq, capacity);
  } catch (const Error& e) {
    // A mistake in the config is the caller's.
    const std::string place = e.file() + ":" + std::to_string(e.line()) + ": ";
    const std::string_view message = e.what();
    throw Error(e.code(),
                std::string(message.substr(message.starts_with(place) ? place.size() : 0)), at);
  }
}

}  // namespace lathe
