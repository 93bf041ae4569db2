// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/llama.h"

#include "frontend/families/builders.h"
#include "lathe/frontend/families/causal_lm.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

class Llama : public DecoderLm {
 public:
  Llama(Graph& graph, const DecoderConfig& sizes, const LlamaConfig& config,
        const FamilyOptions& options)
      : DecoderLm(graph, sizes, options), config_(config) {}

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions attending = attentionOptions();
    attending.qkvBias = attending.outputBias = config_.attentionBias;
    nn::SwiGLUOptions gated = mlpOptions();
    gated.bias = config_.mlpBias;
    const nn::SwiGLU mlp(graph_, path + ".mlp", config_.hiddenSize, config_.intermediateSize,
                         gated);
    Tensor y =
        x + attention(path + ".self_attn", attending)(norm(path + ".input_layernorm")(x), context);
    return y + mlp(norm(path + ".post_attention_layernorm")(y));
  }

 private:
  const LlamaConfig config_;
};

DecoderConfig sizesOf(const LlamaConfig& config, const FamilyOptions& options) {
  DecoderConfig sizes{.vocabSize = config.vocabSize,
                      .hiddenSize = config.hiddenSize,
                      .intermediateSize = config.intermediateSize,
                      .layers = config.layers,
                      .heads = config.heads,
                      .kvHeads = config.kvHeads ? config.kvHeads : config.heads,
                      .headDim = config.headDim,
                      .maxPositions = config.maxPositions,
                      .normEps = config.rmsNormEps,
                      .tiedHead = config.tieWordEmbeddings,
                      .activation = config.activation};
  if (sizes.headDim == 0 && sizes.heads > 0) sizes.headDim = sizes.hiddenSize / sizes.heads;
  sizes.rope.headDim = sizes.headDim;
  sizes.rope.theta = config.ropeTheta;
  sizes.rope.scaling = config.ropeScaling;
  // The table of angles needs no rows that no call can reach.
  sizes.rope.maxPositions = reachedPositions(longestSequence(sizes), options);
  return sizes;
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
  try {
    const DecoderConfig sizes = sizesOf(config, options);
    Graph graph("llama");
    recordCausalLm(graph, Llama(graph, sizes, config, options), sizes, options);
    return graph;
  } catch (const Error& e) {
    // A mistake in the config is the caller's.
    throw Error(e.code(), builders::messageOf(e), at);
  }
}

}  // namespace lathe
