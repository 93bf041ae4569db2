// SPDX-License-Identifier: Apache-2.0
// CLIP: Radford et al., "Learning Transferable Visual Models From Natural Language Supervision",
// 2021. A text and an image become vectors of one space: two stacks of layers with their norms in
// front, of which that of texts is causal and reads the token that ends the text.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/activations.h"
#include "lathe/frontend/nn/dit_parts.h"
#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/multi_head_attention.h"
#include "lathe/frontend/nn/norms.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

// The end token in the configs of the first checkpoints, whose texts end in their largest id.
constexpr int64_t kLargestEnds = 2;

struct TowerConfig {
  int64_t hiddenSize = 0, intermediateSize = 0, layers = 0, heads = 0;
  double normEps = 1e-5;
  bool hasQuickGelu = true;
  Activation activation = Activation::none;  ///< without it
};
struct TextConfig : TowerConfig {
  int64_t vocabSize = 0, maxPositions = 0, endId = 0;
};
struct VisionConfig : TowerConfig {
  int64_t channels = 3, imageSize = 224, patch = 32;
};

struct TowerDefaults {
  int64_t hiddenSize, intermediateSize, heads;
};

TowerConfig readTower(ConfigReader& config, const FamilyOptions& options, TowerDefaults defaults) {
  TowerConfig c;
  c.hiddenSize = config.size("hidden_size", kMaxHidden, defaults.hiddenSize);
  c.intermediateSize =
      config.size("intermediate_size", kMaxIntermediate, defaults.intermediateSize);
  c.layers =
      config.has("num_hidden_layers") ? readLayers(config, "num_hidden_layers", options) : 12;
  c.heads = config.size("num_attention_heads", kMaxHeads, defaults.heads);
  c.normEps = config.epsilon("layer_norm_eps", 1e-5);
  c.hasQuickGelu = config.text("hidden_act", "quick_gelu") == "quick_gelu";
  if (!c.hasQuickGelu) c.activation = readActivation(config, "hidden_act", "gelu");
  // Of the space that both towers end in, which counts where it is used; and of a head that a tower
  // does not have.
  config.ignore({"projection_dim", "tie_word_embeddings"});
  return c;
}

TextConfig readText(ConfigReader& config, const FamilyOptions& options) {
  TextConfig c{readTower(config, options, {512, 2048, 8})};
  c.vocabSize = config.size("vocab_size", kMaxVocabulary, 49408);
  c.maxPositions = config.size("max_position_embeddings", kMaxPositions, 77);
  c.endId = 49407;
  if (auto end = config.find("eos_token_id")) c.endId = end->asInt(0, kMaxVocabulary);
  return c;
}

VisionConfig readVision(ConfigReader& config, const FamilyOptions& options) {
  VisionConfig c{readTower(config, options, {768, 3072, 12})};
  c.channels = config.size("num_channels", kMaxHidden, 3);
  c.imageSize = config.size("image_size", kMaxPositions, 224);
  c.patch = config.size("patch_size", kMaxPositions, 32);
  if (c.imageSize % c.patch)
    throw config.json().error("expected patches that divide the image of " +
                              std::to_string(c.imageSize) + ", got " + std::to_string(c.patch));
  return c;
}

// What both stacks have.
class Tower {
 public:
  Tower(Graph& graph, std::string root, const TowerConfig& config, const FamilyOptions& options)
      : graph_(graph), root_(std::move(root)), tower_(config), options_(options) {}

  nn::LayerNorm norm(const std::string& name) const {
    return nn::LayerNorm(graph_, root_ + name, tower_.hiddenSize,
                         {.eps = tower_.normEps, .weightDType = options_.weightDType});
  }

 protected:
  Tensor layers(Tensor x, const nn::AttentionOptions& attention) const {
    for (int64_t i = 0; i < tower_.layers; ++i) {
      const std::string name = "encoder.layers." + std::to_string(i);
      const nn::MultiHeadAttention attend(graph_, root_ + name + ".self_attn",
                                          {.dModel = tower_.hiddenSize,
                                           .heads = tower_.heads,
                                           .linear = {.weightDType = options_.weightDType},
                                           .attention = attention});
      x = x + attend(norm(name + ".layer_norm1")(x));
      x = x + mlp(root_ + name + ".mlp", norm(name + ".layer_norm2")(x));
    }
    return x;
  }
  Tensor table(const std::string& name, const Shape& shape) const {
    return nn::castTo(graph_.weight(root_ + name, options_.weightDType, shape), options_.dtype);
  }

  Graph& graph_;
  const std::string root_;
  const TowerConfig tower_;
  const FamilyOptions options_;

 private:
  Tensor mlp(const std::string& path, const Tensor& x) const {
    const nn::LinearOptions linear{.weightDType = options_.weightDType};
    const nn::Linear in(graph_, path + ".fc1", tower_.hiddenSize, tower_.intermediateSize, linear);
    const nn::Linear out(graph_, path + ".fc2", tower_.intermediateSize, tower_.hiddenSize, linear);
    const Tensor hidden = in(x);
    return out(tower_.hasQuickGelu ? nn::quickGelu(hidden)
                                   : nn::activate(hidden, tower_.activation));
  }
};

struct Features {
  Tensor all, pooled;  ///< [batch, tokens, hidden] and [batch, hidden]
};

class TextTower : public Tower {
 public:
  TextTower(Graph& graph, std::string root, const TextConfig& config, const FamilyOptions& options)
      : Tower(graph, std::move(root), config, options), c_(config) {}

  /// Declares input_ids and attention_mask, i64 [batch, seq].
  Features operator()(const Dim& batch) const {
    const Dim seq = graph_.dim("seq", 1, sequenceLimit(options_.maxSeq, c_.maxPositions, "maxSeq"));
    const Tensor ids = graph_.input("input_ids", DType::I64, {batch, seq});
    const Tensor mask = graph_.input("attention_mask", DType::I64, {batch, seq});
    const nn::EmbeddingOptions stored{.dtype = options_.dtype, .weightDType = options_.weightDType};
    const nn::Embedding words(graph_, root_ + "embeddings.token_embedding", c_.vocabSize,
                              c_.hiddenSize, stored);
    const nn::Embedding places(graph_, root_ + "embeddings.position_embedding", c_.maxPositions,
                               c_.hiddenSize, stored);
    Tensor x = words(ids) + places(iota(ids, {seq}, 0));
    x = layers(x, {.mask = reshape(mask, {batch, 1, 1, seq}) != 0, .causal = true});
    x = norm("final_layer_norm")(x);
    const Tensor end =
        argmax(c_.endId == kLargestEnds ? ids : cast(ids == double(c_.endId), DType::I64), 1);
    const Tensor isEnd = iota(ids, {1, seq}, 1) == reshape(end, {batch, 1});
    return {x, reduceSum(select(reshape(isEnd, {batch, seq, 1}), x, scalarLike(x, 0)), {1})};
  }

 private:
  const TextConfig c_;
};

class VisionTower : public Tower {
 public:
  VisionTower(Graph& graph, std::string root, const VisionConfig& config,
              const FamilyOptions& options)
      : Tower(graph, std::move(root), config, options), c_(config) {}

  /// Declares pixel_values f32 [batch, channels, size, size]. `all` is in front of the last norm.
  Features operator()(const Dim& batch) const {
    const Tensor image =
        graph_.input("pixel_values", DType::F32, {batch, c_.channels, c_.imageSize, c_.imageSize});
    const int64_t side = c_.imageSize / c_.patch, width = c_.hiddenSize;
    const nn::PatchEmbedding patches(
        graph_, root_ + "embeddings", c_.channels, c_.patch, width,
        {.projection = "patch_embedding", .bias = false, .weightDType = options_.weightDType});
    const Tensor first = reshape(table("embeddings.class_embedding", {width}), {1, 1, width});
    Tensor x = concat(
        {broadcast(first, {batch, 1, width}), patches(nn::castTo(image, options_.dtype))}, 1);
    x = x + table("embeddings.position_embedding.weight", {side * side + 1, width});
    x = layers(norm("pre_layrnorm")(x), {});  // as the checkpoints spell it
    return {x, norm("post_layernorm")(squeeze(sliceAxis(x, 1, 0, 1), 1))};
  }

 private:
  const VisionConfig c_;
};

Tensor project(Graph& g, const std::string& name, const Tensor& x, int64_t in, int64_t out,
               const FamilyOptions& options) {
  return nn::Linear(g, name, in, out, {.bias = false, .weightDType = options.weightDType})(x);
}

// Of length 1.
Tensor direction(const Tensor& x) {
  const Tensor wide = nn::castTo(x, DType::F32);
  return wide / sqrt(reduceSum(wide * wide, {-1}, /*keepDims=*/true));
}

// Of a checkpoint of one tower alone: transformers 5 leaves out the prefix that earlier ones have.
std::string rootOf(const char* prefix, const char* bareWeight, const FamilyOptions& options) {
  return options.hasWeight && options.hasWeight(bareWeight) ? "" : prefix;
}

// A part of config.json; where it is missing all of its fields are.
ConfigReader partOf(ConfigReader& config, std::string_view key) {
  auto part = config.find(key);
  return ConfigReader(part ? *part : JsonValue::parse("{}", config.json().file()));
}

}  // namespace

// forward: input_ids, attention_mask i64 [texts, seq] and pixel_values f32 [images, channels, size,
// size] -> text_embeds f32 [texts, d] and image_embeds f32 [images, d] of length 1,
// logits_per_image f32 [images, texts] and logits_per_text; embed_text and embed_image: one side
// alone.
Graph builders::clip(ConfigReader& config, const FamilyOptions& options) {
  ConfigReader texts = partOf(config, "text_config"), images = partOf(config, "vision_config");
  const TextConfig t = readText(texts, options);
  const VisionConfig v = readVision(images, options);
  texts.finish("CLIPModel, text_config");
  images.finish("CLIPModel, vision_config");
  const int64_t size = config.size("projection_dim", kMaxHidden, 512);
  // What training began with, and copies of the two parts that old files have.
  config.ignore({"logit_scale_init_value", "text_config_dict", "vision_config_dict"});
  Graph g("clip");
  const Dim textCount = g.dim("texts", 1, options.maxBatch);
  const Dim imageCount = g.dim("images", 1, options.maxBatch);
  const TextTower textTower(g, "text_model.", t, options);
  const VisionTower visionTower(g, "vision_model.", v, options);
  auto text = [&] {
    const Tensor x = textTower(textCount).pooled;
    return direction(project(g, "text_projection", x, t.hiddenSize, size, options));
  };
  auto image = [&] {
    const Tensor x = visionTower(imageCount).pooled;
    return direction(project(g, "visual_projection", x, v.hiddenSize, size, options));
  };
  g.entry("forward");
  const Tensor a = text(), b = image();
  const Tensor factor =
      exp(nn::castTo(g.weight("logit_scale", options.weightDType, {}), DType::F32));
  const Tensor logits = matmul(a, swapAxes(b, 0, 1)) * factor;
  g.output("text_embeds", a);
  g.output("image_embeds", b);
  g.output("logits_per_text", logits);
  g.output("logits_per_image", swapAxes(logits, 0, 1));
  g.entry("embed_text");
  g.output("text_embeds", text());
  g.entry("embed_image");
  g.output("image_embeds", image());
  return g;
}

// forward: input_ids, attention_mask i64 [batch, seq] -> last_hidden_state [batch, seq, hidden] and
// pooler_output [batch, hidden].
Graph builders::clipText(ConfigReader& config, const FamilyOptions& options) {
  const TextConfig c = readText(config, options);
  Graph g("clip_text");
  const std::string root = rootOf("text_model.", "embeddings.token_embedding.weight", options);
  const Features x = TextTower(g, root, c, options)(g.dim("batch", 1, options.maxBatch));
  g.output("last_hidden_state", x.all);
  g.output("pooler_output", x.pooled);
  return g;
}

// forward: pixel_values f32 [batch, channels, size, size] -> last_hidden_state [batch, tokens,
// hidden] and pooler_output [batch, hidden].
Graph builders::clipVision(ConfigReader& config, const FamilyOptions& options) {
  const VisionConfig c = readVision(config, options);
  Graph g("clip_vision");
  const std::string root = rootOf("vision_model.", "embeddings.patch_embedding.weight", options);
  const Features x = VisionTower(g, root, c, options)(g.dim("batch", 1, options.maxBatch));
  g.output("last_hidden_state", x.all);
  g.output("pooler_output", x.pooled);
  return g;
}

}  // namespace lathe
