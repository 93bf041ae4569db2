// SPDX-License-Identifier: Apache-2.0
#include "frontend/families/encoder_decoder_lm.h"

#include "lathe/frontend/families/greedy.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

constexpr const char* kSourceMask = "source_mask";

std::string stateName(const char* kind, int64_t layer) {
  return std::string(kind) + "." + std::to_string(layer);
}

// The decoder over ids; `positions` is defined where there is a cache of so many keys.
Tensor runDecoder(const EncoderDecoderLm& model, const Tensor& ids, const Tensor& where,
                  const Tensor& positions, const Dim& keys,
                  const std::vector<nn::SourceKeys>& source, const Tensor& mask) {
  Tensor x = model.embed(ids, where);
  nn::LayerContext context{
      .angles = {}, .cache = {}, .positions = positions, .bias = model.bias(x, positions, keys)};
  const Tensor visible = visibleKeys(mask);
  for (size_t i = 0; i < source.size(); ++i) {
    if (positions.defined())
      context.cache = {stateName("k_cache", int64_t(i)), stateName("v_cache", int64_t(i))};
    x = model.layer(int64_t(i), x, context, source[i], visible);
  }
  return x;
}

class EntryPoints {
 public:
  EntryPoints(Graph& graph, const EncoderDecoderLm& model, const EncoderDecoderSizes& sizes,
              const FamilyOptions& options)
      : g_(graph), model_(model), sizes_(sizes) {
    nn::expectPositive(options.maxBatch, "maxBatch");
    if (options.cacheBlock != 0)
      throw Error(ErrorCode::Unsupported,
                  "cacheBlock: caches in blocks are of decoders, this is an encoder-decoder; leave "
                  "it at 0");
    batch_ = g_.dim("batch", 1, options.maxBatch);
    source_ =
        sizes.hasSourceOfOneLength ? Dim(sizes.maxSource) : g_.dim("source", 1, sizes.maxSource);
    seq_ = g_.dim("seq", 1, sequenceLimit(options.maxSeq, sizes.maxPositions, "maxSeq"));
    cache_ = g_.dim("cache", 1,
                    sequenceLimit(options.cacheCapacity, sizes.maxPositions, "cacheCapacity"));
    for (int64_t i = 0; i < sizes.layers; ++i) {
      for (const char* kind : {"k_cache", "v_cache"})
        g_.state(stateName(kind, i), options.dtype, {batch_, sizes.heads, cache_, sizes.headDim});
      for (const char* kind : {"source_k", "source_v"})
        g_.state(stateName(kind, i), options.dtype, {batch_, sizes.heads, source_, sizes.headDim});
    }
    if (!sizes.hasSourceOfOneLength) g_.state(kSourceMask, DType::I64, {batch_, source_});
  }

  void forward() {
    g_.entry("forward");
    const Encoded encoded = model_.encode(batch_, source_);
    Tensor ids = g_.input("decoder_input_ids", DType::I64, {batch_, seq_});
    std::vector<nn::SourceKeys> source;
    for (int64_t i = 0; i < sizes_.layers; ++i)
      source.push_back(model_.sourceKeys(i, encoded.hidden));
    Tensor x = runDecoder(model_, ids, iota(ids, {seq_}, 0), {}, seq_, source, encoded.mask);
    g_.output("logits", model_.logits(x));
  }

  void encode() {
    g_.entry("encode");
    const Encoded encoded = model_.encode(batch_, source_);
    for (int64_t i = 0; i < sizes_.layers; ++i) {
      const nn::SourceKeys keys = model_.sourceKeys(i, encoded.hidden);
      replace(stateName("source_k", i), keys.k);
      replace(stateName("source_v", i), keys.v);
    }
    if (encoded.mask.defined()) replace(kSourceMask, encoded.mask);
    g_.output("encoder_hidden_states", encoded.hidden);
  }

  void cached(std::string_view name, const Dim& tokens, bool all) {
    g_.entry(name);
    Tensor ids = g_.input("input_ids", DType::I64, {batch_, tokens});
    Tensor positions = g_.input("positions", DType::I64, {batch_});
    g_.output("logits", logits(ids, positions, tokens, all));
  }

  void greedy() {
    recordGreedy(g_, batch_, [&](const Tensor& ids, const Tensor& positions) {
      return logits(ids, positions, 1, false);
    });
  }

  const Dim& seq() const { return seq_; }

 private:
  Tensor logits(const Tensor& ids, const Tensor& positions, const Dim& tokens, bool all) {
    std::vector<nn::SourceKeys> source;
    for (int64_t i = 0; i < sizes_.layers; ++i)
      source.push_back(
          {g_.readState(stateName("source_k", i)), g_.readState(stateName("source_v", i))});
    const Tensor mask = sizes_.hasSourceOfOneLength ? Tensor() : g_.readState(kSourceMask);
    Tensor x = runDecoder(model_, ids, nn::tokenPositions(positions, tokens), positions, cache_,
                          source, mask);
    if (!all) x = reshape(sliceAxis(x, 1, tokens - Dim(1), 1), {batch_, sizes_.hiddenSize});
    return model_.logits(x);
  }

  // An entry point has the states that it reads; of this one nothing is left.
  void replace(const std::string& state, const Tensor& value) {
    (void)g_.readState(state);
    g_.writeState(state, value);
  }

  Graph& g_;
  const EncoderDecoderLm& model_;
  const EncoderDecoderSizes& sizes_;
  Dim batch_ = 1, source_ = 1, seq_ = 1, cache_ = 1;
};

}  // namespace

void recordEncoderDecoder(Graph& graph, const EncoderDecoderLm& model,
                          const EncoderDecoderSizes& sizes, const FamilyOptions& options) {
  EntryPoints entries(graph, model, sizes, options);
  entries.forward();
  entries.encode();
  entries.cached("prefill", entries.seq(), false);
  entries.cached("decode", 1, false);
  if (options.verify) entries.cached("verify", entries.seq(), true);
  if (options.greedy) entries.greedy();
}

TextSource textSource(Graph& graph, const Dim& batch, const Dim& source) {
  Tensor ids = graph.input("input_ids", DType::I64, {batch, source});
  return {ids, graph.input("attention_mask", DType::I64, {batch, source})};
}

Tensor visibleKeys(const Tensor& mask) {
  if (!mask.defined()) return {};
  return reshape(mask, {mask.dim(0), 1, 1, mask.dim(1)}) != 0;
}

}  // namespace lathe
