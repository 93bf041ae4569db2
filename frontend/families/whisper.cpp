// SPDX-License-Identifier: Apache-2.0
// Whisper: Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022. Two
// convolutions over the log-mel spectrogram of half a minute, then an encoder and a decoder with
// their norms in front of every part; keys have no bias.
#include "frontend/families/builders.h"
#include "frontend/families/encoder_decoder_lm.h"
#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/multi_head_attention.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

struct WhisperSide {
  int64_t layers = 0, heads = 0, intermediateSize = 0;
};
struct WhisperConfig {
  int64_t vocabSize = 0, hiddenSize = 0, mels = 80, sourcePositions = 1500, targetPositions = 448;
  WhisperSide encoder, decoder;
  Activation activation = Activation::gelu;
  bool tiedHead = true;
};

class Whisper : public EncoderDecoderLm {
 public:
  Whisper(Graph& graph, const WhisperConfig& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {}

  // Input: input_features f32 [batch, mels, 2 * source].
  Encoded encode(const Dim& batch, const Dim& source) const override {
    Tensor x =
        nn::castTo(graph_.input("input_features", DType::F32, {batch, c_.mels, source * Dim(2)}),
                   options_.dtype);
    x = nn::gelu(convolve("model.encoder.conv1", x, c_.mels, 1));
    x = nn::gelu(convolve("model.encoder.conv2", x, c_.hiddenSize, 2));
    x = transpose(x, {0, 2, 1});
    const std::string places = "model.encoder.embed_positions";
    x = x + nn::castTo(graph_.weight(places + ".weight", options_.weightDType,
                                     {c_.sourcePositions, c_.hiddenSize}),
                       options_.dtype);
    for (int64_t i = 0; i < c_.encoder.layers; ++i) {
      const std::string path = "model.encoder.layers." + std::to_string(i);
      const nn::MultiHeadAttention attention(graph_, path + ".self_attn",
                                             {.dModel = c_.hiddenSize,
                                              .heads = c_.encoder.heads,
                                              .keyBias = false,
                                              .linear = linear()});
      x = x + attention(norm(path + ".self_attn_layer_norm")(x));
      x = x + mlp(path, c_.encoder)(norm(path + ".final_layer_norm")(x));
    }
    return {norm("model.encoder.layer_norm")(x), {}};
  }

  nn::SourceKeys sourceKeys(int64_t layer, const Tensor& encoded) const override {
    return cross(layer).keysOf(encoded);
  }

  Tensor embed(const Tensor& ids, const Tensor& where) const override {
    return table("model.decoder.embed_tokens", c_.vocabSize)(ids) +
           table("model.decoder.embed_positions", c_.targetPositions)(where);
  }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context,
               const nn::SourceKeys& source, const Tensor& visible) const override {
    const std::string path = layerPath(index);
    nn::SelfAttentionOptions o{.dModel = c_.hiddenSize, .heads = c_.decoder.heads};
    o.qkvBias = o.outputBias = true;
    o.keyBias = false;
    o.linear = linear();
    o.names.o = "out_proj";
    const nn::CausalSelfAttention own(graph_, path + ".self_attn", o);
    Tensor y = x + own(norm(path + ".self_attn_layer_norm")(x), context);
    y = y + cross(index)(norm(path + ".encoder_attn_layer_norm")(y), source, visible);
    return y + mlp(path, c_.decoder)(norm(path + ".final_layer_norm")(y));
  }

  Tensor logits(const Tensor& x) const override {
    const Tensor y = norm("model.decoder.layer_norm")(x);
    const nn::Linear head(graph_, "proj_out", c_.hiddenSize, c_.vocabSize,
                          {.bias = false, .weightDType = options_.weightDType});
    return nn::castTo(
        c_.tiedHead ? table("model.decoder.embed_tokens", c_.vocabSize).unembed(y) : head(y),
        DType::F32);
  }

 private:
  static std::string layerPath(int64_t index) {
    return "model.decoder.layers." + std::to_string(index);
  }
  nn::LinearOptions linear() const { return {.weightDType = options_.weightDType}; }
  nn::LayerNorm norm(const std::string& path) const {
    return nn::LayerNorm(graph_, path, c_.hiddenSize, {.weightDType = options_.weightDType});
  }
  nn::Embedding table(const std::string& path, int64_t rows) const {
    return nn::Embedding(graph_, path, rows, c_.hiddenSize,
                         {.dtype = options_.dtype, .weightDType = options_.weightDType});
  }
  nn::FeedForward mlp(const std::string& path, const WhisperSide& side) const {
    return nn::FeedForward(graph_, path, c_.hiddenSize, side.intermediateSize,
                           {.activation = c_.activation, .linear = linear()});
  }
  nn::CrossAttention cross(int64_t index) const {
    return nn::CrossAttention(
        graph_, layerPath(index) + ".encoder_attn",
        {.dModel = c_.hiddenSize, .heads = c_.decoder.heads, .keyBias = false, .linear = linear()});
  }
  // Over three frames: x [batch, channels, frames] -> [batch, hidden, frames / stride].
  Tensor convolve(const std::string& path, const Tensor& x, int64_t channels,
                  int64_t stride) const {
    auto stored = [&](const char* name, const Shape& shape) {
      return nn::castTo(graph_.weight(path + name, options_.weightDType, shape), options_.dtype);
    };
    const Tensor kernel = unsqueeze(stored(".weight", {c_.hiddenSize, channels, 3}), 2);
    const Tensor y = convolution(unsqueeze(x, 2), kernel, {1, stride}, {0, 0, 1, 1});
    return squeeze(y, 2) + reshape(stored(".bias", {c_.hiddenSize}), {c_.hiddenSize, 1});
  }

  Graph& graph_;
  const WhisperConfig c_;
  const FamilyOptions options_;
};

WhisperConfig readWhisper(ConfigReader& config, const FamilyOptions& options) {
  WhisperConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("d_model", kMaxHidden);
  c.mels = config.size("num_mel_bins", kMaxHidden, 80);
  c.sourcePositions = config.size("max_source_positions", kMaxPositions, 1500);
  c.targetPositions = config.size("max_target_positions", kMaxPositions, 448);
  auto side = [&](const std::string& name) {
    WhisperSide s{readLayers(config, name + "_layers", options),
                  config.size(name + "_attention_heads", kMaxHeads),
                  config.size(name + "_ffn_dim", kMaxIntermediate)};
    if (c.hiddenSize % s.heads)
      throw config.at(name + "_attention_heads")
          .error("expected heads that divide d_model " + std::to_string(c.hiddenSize) + ", got " +
                 std::to_string(s.heads));
    return s;
  };
  c.encoder = side("encoder");
  c.decoder = side("decoder");
  c.activation = readActivation(config, "activation_function", "gelu");
  c.tiedHead = config.flag("tie_word_embeddings", true);
  // Training, masks of its data, classifiers, timestamps; tokens that generation forces or leaves
  // out; the number of the encoder's layers once more. transformers does not scale either.
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "init_std", "apply_spec_augment",
                 "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
                 "mask_feature_length", "mask_feature_min_masks", "use_weighted_layer_sum",
                 "classifier_proj_size", "median_filter_width", "suppress_tokens",
                 "begin_suppress_tokens", "forced_decoder_ids", "num_hidden_layers",
                 "is_encoder_decoder", "scale_embedding"});
  return c;
}

}  // namespace

Graph builders::whisper(ConfigReader& config, const FamilyOptions& options) {
  const WhisperConfig c = readWhisper(config, options);
  Graph g("whisper");
  const Whisper model(g, c, options);
  recordEncoderDecoder(g, model,
                       {.layers = c.decoder.layers,
                        .heads = c.decoder.heads,
                        .headDim = c.hiddenSize / c.decoder.heads,
                        .hiddenSize = c.hiddenSize,
                        .maxPositions = c.targetPositions,
                        .maxSource = c.sourcePositions,
                        .hasSourceOfOneLength = true},
                       options);
  return g;
}

}  // namespace lathe
