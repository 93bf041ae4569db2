// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/causal_lm.h"

#include "lathe/frontend/families/greedy.h"

namespace lathe {
namespace {

std::string cacheName(const char* kind, int64_t layer) {
  return std::string(kind) + "_cache." + std::to_string(layer);
}

// All layers over x; `positions` is defined where there is a cache.
Tensor runLayers(const CausalLm& model, const DecoderConfig& sizes, Tensor x, const Tensor& where,
                 const Tensor& positions, const Dim& keys) {
  const std::vector<nn::RopeAngles> angles = model.angles(where);
  const Tensor bias = model.bias(keys);
  for (int64_t i = 0; i < sizes.layers; ++i) {
    nn::LayerContext context{
        .angles = angles.empty() ? nn::RopeAngles{} : angles.at(model.anglesOf(i)),
        .cache = {},
        .positions = positions,
        .bias = bias};
    if (positions.defined()) context.cache = {cacheName("k", i), cacheName("v", i)};
    // Without a line: ops of the layer have those of the family's file.
    const Scope scope(x.recorder(), model.layerPath(i), std::source_location());
    x = model.layer(i, x, context);
  }
  return x;
}

}  // namespace

void recordCausalLm(Graph& g, const CausalLm& model, const DecoderConfig& sizes,
                    const FamilyOptions& options) {
  nn::expectPositive(options.maxBatch, "maxBatch");
  nn::expectPositive(sizes.layers, "layers", std::source_location::current(), nn::kMostLayers);
  const int64_t longest = longestSequence(sizes);
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  const Dim seq = g.dim("seq", 1, sequenceLimit(options.maxSeq, longest, "maxSeq"));
  const Dim cache =
      g.dim("cache", 1, sequenceLimit(options.cacheCapacity, longest, "cacheCapacity"));
  for (int64_t i = 0; i < sizes.layers; ++i)
    for (const char* kind : {"k", "v"})
      g.state(cacheName(kind, i), options.dtype, {batch, sizes.kvHeads, cache, sizes.headDim});

  // What is recorded between the modules belongs to the whole.
  const Scope whole(g.recorder(), "model", std::source_location());
  g.entry("forward");
  Tensor ids = g.input("input_ids", DType::I64, {batch, seq});
  Tensor where = iota(ids, {seq}, 0);
  g.output("logits",
           model.logits(runLayers(model, sizes, model.embed(ids, where), where, {}, seq)));

  auto logits = [&](const Tensor& ids, const Tensor& positions, const Dim& tokens, bool all) {
    Tensor where = nn::tokenPositions(positions, tokens);
    Tensor x = runLayers(model, sizes, model.embed(ids, where), where, positions, cache);
    if (!all) x = reshape(sliceAxis(x, 1, tokens - Dim(1), 1), {batch, sizes.hiddenSize});
    return model.logits(x);
  };
  auto cached = [&](std::string_view name, const Dim& tokens, bool all) {
    g.entry(name);
    Tensor ids = g.input("input_ids", DType::I64, {batch, tokens});
    Tensor positions = g.input("positions", DType::I64, {batch});
    g.output("logits", logits(ids, positions, tokens, all));
  };
  cached("prefill", seq, false);
  cached("decode", 1, false);
  if (options.verify) cached("verify", seq, true);
  if (options.greedy)
    recordGreedy(g, batch, [&](const Tensor& ids, const Tensor& positions) {
      return logits(ids, positions, 1, false);
    });
}

DecoderLm::DecoderLm(Graph& graph, const DecoderConfig& config, const FamilyOptions& options)
    : graph_(graph), config_(config), options_(options) {
  norm_.eps = config.normEps;
  norm_.weightDType = options.weightDType;
}

nn::Embedding DecoderLm::table(const std::string& path, int64_t rows) const {
  return nn::Embedding(graph_, path, rows, config_.hiddenSize,
                       {.dtype = options_.dtype, .weightDType = options_.weightDType});
}

Tensor DecoderLm::embed(const Tensor& ids, const Tensor& /*where*/) const {
  return table("model.embed_tokens", config_.vocabSize)(ids);
}

std::vector<nn::RopeAngles> DecoderLm::angles(const Tensor& where) const {
  return {nn::RoPE(graph_, "rope", config_.rope).angles(where)};
}

Tensor DecoderLm::logits(const Tensor& x) const { return head(norm("model.norm")(x)); }

Tensor DecoderLm::head(const Tensor& x, const std::string& embeddings, bool bias) const {
  if (!config_.tiedHead)
    return nn::castTo(linear("lm_head", config_.hiddenSize, config_.vocabSize, bias)(x),
                      DType::F32);
  Tensor y = table(embeddings, config_.vocabSize).unembed(x);
  if (bias)
    y = y + nn::castTo(graph_.weight("lm_head.bias", options_.weightDType, {config_.vocabSize}),
                       options_.dtype);
  return nn::castTo(y, DType::F32);
}

nn::SelfAttentionOptions DecoderLm::attentionOptions() const {
  nn::SelfAttentionOptions o{.dModel = config_.hiddenSize,
                             .heads = config_.heads,
                             .kvHeads = config_.kvHeads,
                             .headDim = config_.headDim,
                             .norm = norm_,
                             .rope = config_.rope};
  o.linear.weightDType = options_.weightDType;
  return o;
}

nn::SwiGLUOptions DecoderLm::mlpOptions() const {
  nn::SwiGLUOptions o{.activation = config_.activation};
  o.linear.weightDType = options_.weightDType;
  return o;
}

nn::CausalSelfAttention DecoderLm::attention(const std::string& path,
                                             const nn::SelfAttentionOptions& options) const {
  return nn::CausalSelfAttention(graph_, path, options);
}

nn::RMSNorm DecoderLm::norm(const std::string& path) const {
  return nn::RMSNorm(graph_, path, config_.hiddenSize, norm_);
}

nn::LayerNorm DecoderLm::layerNorm(const std::string& path) const {
  return nn::LayerNorm(graph_, path, config_.hiddenSize,
                       {.eps = config_.normEps, .weightDType = options_.weightDType});
}

nn::FeedForward DecoderLm::feedForward(const std::string& path, const std::string& in,
                                       const std::string& out, bool bias) const {
  return nn::FeedForward(graph_, path, config_.hiddenSize, config_.intermediateSize,
                         {.in = in,
                          .out = out,
                          .activation = config_.activation,
                          .bias = bias,
                          .linear = {.weightDType = options_.weightDType}});
}

nn::SwiGLU DecoderLm::mlp(const std::string& path) const {
  return nn::SwiGLU(graph_, path, config_.hiddenSize, config_.intermediateSize, mlpOptions());
}

nn::Linear DecoderLm::linear(const std::string& path, int64_t in, int64_t out, bool bias) const {
  return nn::Linear(graph_, path, in, out, {.bias = bias, .weightDType = options_.weightDType});
}

}  // namespace lathe
