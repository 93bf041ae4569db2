// SPDX-License-Identifier: Apache-2.0
// ViT: Dosovitskiy et al., "An Image is Worth 16x16 Words: Transformers for Image Recognition at
// Scale", 2021. Patches and a class token through layers with their norms in front.
#include <tuple>
#include <utility>

#include "frontend/families/builders.h"
#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/dit_parts.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/multi_head_attention.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

struct VitConfig {
  int64_t hiddenSize = 0, intermediateSize = 0, layers = 0, heads = 0;
  int64_t channels = 3, patch = 16, height = 224, width = 224, labels = 2, pooled = 0;
  double normEps = 1e-12;
  bool qkvBias = true;
  Activation activation = Activation::gelu;
};

// An image's or a patch's size: a number, or height and width.
std::pair<int64_t, int64_t> readSides(ConfigReader& config, std::string_view key,
                                      int64_t otherwise) {
  auto value = config.find(key);
  if (!value) return {otherwise, otherwise};
  if (!value->isArray()) {
    const int64_t side = value->asInt(1, kMaxPositions);
    return {side, side};
  }
  if (value->size() != 2) throw value->error("expected a size or two, got " + value->show());
  return {value->at(0).asInt(1, kMaxPositions), value->at(1).asInt(1, kMaxPositions)};
}

VitConfig readVit(ConfigReader& config, const FamilyOptions& options) {
  VitConfig c;
  c.hiddenSize = config.size("hidden_size", kMaxHidden);
  c.intermediateSize = config.size("intermediate_size", kMaxIntermediate);
  c.layers = readLayers(config, "num_hidden_layers", options);
  c.heads = config.size("num_attention_heads", kMaxHeads);
  c.channels = config.size("num_channels", kMaxHidden, 3);
  std::tie(c.height, c.width) = readSides(config, "image_size", 224);
  const auto [patchHeight, patchWidth] = readSides(config, "patch_size", 16);
  c.patch = patchHeight;
  if (patchWidth != c.patch)
    throw config.at("patch_size")
        .error("not supported: expected square patches, got " + std::to_string(patchHeight) +
                   " x " + std::to_string(patchWidth),
               ErrorCode::Unsupported);
  if (c.height % c.patch || c.width % c.patch)
    throw config.at("patch_size")
        .error("expected patches that divide the image of " + std::to_string(c.height) + " x " +
               std::to_string(c.width));
  c.labels = config.size("num_labels", kMaxVocabulary, 2);
  if (auto labels = config.find("id2label")) c.labels = int64_t(labels->size());
  c.normEps = config.epsilon("layer_norm_eps", 1e-12);
  c.qkvBias = config.flag("qkv_bias", true);
  c.activation = readActivation(config, "hidden_act", "gelu");
  c.pooled = config.size("pooler_output_size", kMaxHidden, c.hiddenSize);
  config.expect("pooler_act", "tanh");
  // Of masked image modeling.
  config.ignore({"encoder_stride"});
  return c;
}

// image f32 [batch, channels, height, width] -> [batch, 1 + patches, hidden]
Tensor encode(Graph& g, const std::string& root, const VitConfig& c, const FamilyOptions& options,
              const Tensor& image) {
  const Dim batch = image.dim(0);
  const int64_t patches = (c.height / c.patch) * (c.width / c.patch);
  const nn::LinearOptions linear{.weightDType = options.weightDType};
  const nn::LayerNormOptions norm{.eps = c.normEps, .weightDType = options.weightDType};
  auto table = [&](const char* name, int64_t rows) {
    return nn::castTo(
        g.weight(root + "embeddings." + name, options.weightDType, {1, rows, c.hiddenSize}),
        options.dtype);
  };
  Tensor x =
      nn::PatchEmbedding(g, root + "embeddings.patch_embeddings", c.channels, c.patch, c.hiddenSize,
                         {.projection = "projection", .weightDType = options.weightDType})(
          nn::castTo(image, options.dtype));
  x = concat({broadcast(table("cls_token", 1), {batch, 1, c.hiddenSize}), x}, 1);
  x = x + table("position_embeddings", patches + 1);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string path = root + "encoder.layer." + std::to_string(i);
    const nn::LayerNorm before(g, path + ".layernorm_before", c.hiddenSize, norm);
    const nn::LayerNorm after(g, path + ".layernorm_after", c.hiddenSize, norm);
    const nn::MultiHeadAttention attention(g, path + ".attention",
                                           {.dModel = c.hiddenSize,
                                            .heads = c.heads,
                                            .qkvBias = c.qkvBias,
                                            .linear = linear,
                                            .names = {.q = "attention.query",
                                                      .k = "attention.key",
                                                      .v = "attention.value",
                                                      .o = "output.dense"}});
    const nn::FeedForward mlp(g, path, c.hiddenSize, c.intermediateSize,
                              {.in = "intermediate.dense",
                               .out = "output.dense",
                               .activation = c.activation,
                               .linear = linear});
    x = x + attention(before(x));
    x = x + mlp(after(x));
  }
  return nn::LayerNorm(g, root + "layernorm", c.hiddenSize, norm)(x);
}

Tensor firstToken(const Tensor& x) { return squeeze(sliceAxis(x, 1, 0, 1), 1); }

}  // namespace

// forward: pixel_values f32 [batch, channels, height, width] -> last_hidden_state [batch, tokens,
// hidden] and pooler_output [batch, hidden].
Graph builders::vit(ConfigReader& config, const FamilyOptions& options) {
  const VitConfig c = readVit(config, options);
  Graph g("vit");
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  Tensor x = encode(g, "", c, options,
                    g.input("pixel_values", DType::F32, {batch, c.channels, c.height, c.width}));
  g.output("last_hidden_state", x);
  const nn::Linear pooler(g, "pooler.dense", c.hiddenSize, c.pooled,
                          {.weightDType = options.weightDType});
  g.output("pooler_output", tanh(pooler(firstToken(x))));
  return g;
}

// forward: pixel_values f32 [batch, channels, height, width] -> logits f32 [batch, labels].
Graph builders::vitClassifier(ConfigReader& config, const FamilyOptions& options) {
  const VitConfig c = readVit(config, options);
  Graph g("vit");
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  Tensor x = encode(g, "vit.", c, options,
                    g.input("pixel_values", DType::F32, {batch, c.channels, c.height, c.width}));
  const nn::Linear classifier(g, "classifier", c.hiddenSize, c.labels,
                              {.weightDType = options.weightDType});
  g.output("logits", nn::castTo(classifier(firstToken(x)), DType::F32));
  return g;
}

}  // namespace lathe
