// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/causal_lm.h"

#include "lathe/frontend/families/greedy.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

std::string cacheName(const char* kind, int64_t layer) {
  return std::string(kind) + "_cache." + std::to_string(layer);
}

// Where the tokens of a call are: the positions of the first of each text, and with a cache in
// blocks the table. Undefined without a cache.
struct Places {
  Tensor positions, table;
};

// Rotations of tokens at `where` [batch, tokens] as if each came in a call of its own: those that
// follow the length know of no later token then.
std::vector<nn::RopeAngles> anglesOfSteps(const CausalLm& model, const Tensor& where) {
  std::vector<nn::RopeAngles> angles = model.angles(unsqueeze(where, -1));
  for (nn::RopeAngles& a : angles) a = {squeeze(a.cos, 2), squeeze(a.sin, 2)};
  return angles;
}

// All layers over x, whose tokens are at `where`; with `steps`, as if they came one by one.
Tensor runLayers(const CausalLm& model, const DecoderConfig& sizes, Tensor x, const Tensor& where,
                 const Places& places, const Dim& keys, bool steps = false) {
  const std::vector<nn::RopeAngles> angles =
      steps && sizes.rope.scaling.isDynamic() ? anglesOfSteps(model, where) : model.angles(where);
  const Tensor bias = model.bias(keys);
  for (int64_t i = 0; i < sizes.layers; ++i) {
    nn::LayerContext context{
        .angles = angles.empty() ? nn::RopeAngles{} : angles.at(model.anglesOf(i)),
        .cache = {},
        .positions = places.positions,
        .table = places.table,
        .bias = bias};
    if (places.positions.defined()) context.cache = {cacheName("k", i), cacheName("v", i)};
    // Without a line: ops of the layer have those of the family's file.
    const Scope scope(x.recorder(), model.layerPath(i), std::source_location());
    x = model.layer(i, x, context);
  }
  return x;
}

// The states of all layers.
class Cache {
 public:
  Cache(Graph& g, const DecoderConfig& sizes, const FamilyOptions& options, const Dim& batch)
      : g_(g), batch_(batch), block_(options.cacheBlock) {
    const int64_t longest = longestSequence(sizes);
    const int64_t capacity = sequenceLimit(options.cacheCapacity, longest, "cacheCapacity");
    Dims state;
    if (block_ == 0) {
      tokens_ = g.dim("cache", 1, capacity);
      state = {batch, sizes.kvHeads, tokens_, sizes.headDim};
    } else {
      if (block_ < 1 || block_ > longest)
        throw Error(ErrorCode::InvalidArgument,
                    "expected cacheBlock from 1 to the model's " + std::to_string(longest) +
                        " positions, got " + std::to_string(block_) + "; 0: a row for each text");
      if (options.greedy)
        throw Error(ErrorCode::InvalidArgument,
                    "expected `greedy` or `cacheBlock`, got both; a step that goes on by itself "
                    "has a row of a cache for each text");
      const int64_t most = (capacity + block_ - 1) / block_;
      entries_ = g.dim("entries", 1, most);
      tokens_ = entries_ * Dim(block_);
      state = {g.dim("blocks", 1, most * options.maxBatch), sizes.kvHeads, block_, sizes.headDim};
    }
    for (int64_t i = 0; i < sizes.layers; ++i)
      for (const char* kind : {"k", "v"}) g.state(cacheName(kind, i), options.dtype, state);
  }

  /// Tokens of a text.
  const Dim& tokens() const { return tokens_; }
  /// The inputs of an entry point besides the ids.
  Places inputs() const {
    Places places{.positions = g_.input("positions", DType::I64, {batch_}), .table = {}};
    if (block_ > 0) places.table = g_.input("block_table", DType::I64, {batch_, entries_});
    return places;
  }

 private:
  Graph& g_;
  Dim batch_, tokens_ = 1, entries_ = 1;
  int64_t block_;
};

}  // namespace

void recordCausalLm(Graph& g, const CausalLm& model, const DecoderConfig& sizes,
                    const FamilyOptions& options) {
  nn::expectPositive(options.maxBatch, "maxBatch");
  nn::expectPositive(sizes.layers, "layers", std::source_location::current(), nn::kMostModules);
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  const Dim seq = g.dim("seq", 1, sequenceLimit(options.maxSeq, longestSequence(sizes), "maxSeq"));
  const Cache cache(g, sizes, options, batch);

  // What is recorded between the modules belongs to the whole.
  const Scope whole(g.recorder(), "model", std::source_location());
  g.entry("forward");
  Tensor ids = g.input("input_ids", DType::I64, {batch, seq});
  Tensor where = iota(ids, {seq}, 0);
  g.output("logits",
           model.logits(runLayers(model, sizes, model.embed(ids, where), where, {}, seq)));

  auto logits = [&](const Tensor& ids, const Places& places, const Dim& tokens, bool all) {
    Tensor where = nn::tokenPositions(places.positions, tokens);
    Tensor x = runLayers(model, sizes, model.embed(ids, where), where, places, cache.tokens(),
                         /*steps=*/all);
    if (!all) x = reshape(sliceAxis(x, 1, tokens - Dim(1), 1), {batch, sizes.hiddenSize});
    return model.logits(x);
  };
  auto cached = [&](std::string_view name, const Dim& tokens, bool all) {
    g.entry(name);
    Tensor ids = g.input("input_ids", DType::I64, {batch, tokens});
    const Places places = cache.inputs();
    g.output("logits", logits(ids, places, tokens, all));
  };
  cached("prefill", seq, false);
  cached("decode", 1, false);
  if (options.verify) cached("verify", seq, true);
  if (options.greedy)
    recordGreedy(g, batch, [&](const Tensor& ids, const Tensor& positions) {
      return logits(ids, {.positions = positions, .table = {}}, 1, false);
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
