// SPDX-License-Identifier: Apache-2.0
// DiT: Peebles and Xie, "Scalable Diffusion Models with Transformers", 2022, as diffusers stores
// it: every block embeds the timestep and the label with weights of its own.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/dit_parts.h"
#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/feed_forward.h"
#include "lathe/frontend/nn/multi_head_attention.h"
#include "lathe/frontend/nn/positions.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

struct DitConfig {
  int64_t layers = 0, heads = 0, width = 0, channels = 4, outputs = 4;
  int64_t side = 32, patch = 2, labels = 1000;
  double normEps = 1e-5;
  bool qkvBias = true, affine = false;
};

class Dit {
 public:
  Dit(Graph& graph, const DitConfig& config, const FamilyOptions& options)
      : graph_(graph), c_(config), options_(options) {}

  /// image [batch, channels, side, side], timesteps and labels [batch].
  Tensor operator()(const Tensor& image, const Tensor& timesteps, const Tensor& labels) const {
    const int64_t grid = c_.side / c_.patch;
    Tensor x = nn::PatchEmbedding(graph_, "pos_embed", c_.channels, c_.patch, c_.width,
                                  {.weightDType = options_.weightDType})(image);
    x = nn::SinePositions2d(graph_, "pos_embed", c_.width, grid, grid)(x);
    for (int64_t i = 0; i < c_.layers; ++i)
      x = block("transformer_blocks." + std::to_string(i) + ".", x, timesteps, labels);
    const Tensor last = condition("transformer_blocks.0.norm1.", timesteps, labels);
    const std::vector<Tensor> m = modulation("proj_out_1", last, 2);
    x = nn::modulate(norm("norm_out", kSharpEps, false)(x), m[0], m[1]);
    x = linear("proj_out_2", c_.patch * c_.patch * c_.outputs)(x);
    return nn::unpatchify(x, grid, grid, c_.patch);
  }

 private:
  static constexpr double kSharpEps = 1e-6;  // of the norms that have no epsilon in config.json

  Tensor block(const std::string& path, const Tensor& x, const Tensor& timesteps,
               const Tensor& labels) const {
    const nn::LinearOptions stored{.weightDType = options_.weightDType};
    const std::vector<Tensor> m =
        modulation(path + "norm1.linear", condition(path + "norm1.", timesteps, labels), 6);
    const nn::MultiHeadAttention attend(
        graph_, path + "attn1",
        {.dModel = c_.width,
         .heads = c_.heads,
         .qkvBias = c_.qkvBias,
         .linear = stored,
         .names = {.q = "to_q", .k = "to_k", .v = "to_v", .o = "to_out.0"}});
    const nn::FeedForward mlp(graph_, path + "ff", c_.width, 4 * c_.width,
                              {.in = "net.0.proj",
                               .out = "net.2",
                               .activation = Activation::gelu_tanh,
                               .linear = stored});
    Tensor y = nn::modulate(norm(path + "norm1.norm", kSharpEps, false)(x), m[0], m[1]);
    y = x + unsqueeze(m[2], 1) * attend(y);
    const Tensor z = nn::modulate(norm(path + "norm3", c_.normEps, c_.affine)(y), m[3], m[4]);
    return y + unsqueeze(m[5], 1) * mlp(z);
  }

  // What a block is told: [batch, width].
  Tensor condition(const std::string& path, const Tensor& timesteps, const Tensor& labels) const {
    nn::TimestepOptions o{.first = "linear_1", .second = "linear_2"};
    o.endsAtPeriod = true;
    o.weightDType = options_.weightDType;
    const nn::TimestepEmbedding time(graph_, path + "emb.timestep_embedder", c_.width, o);
    // The row behind the labels stands for none.
    const nn::Embedding label(graph_, path + "emb.class_embedder.embedding_table", c_.labels + 1,
                              c_.width,
                              {.dtype = options_.dtype, .weightDType = options_.weightDType});
    return time(timesteps, options_.dtype) + label(labels);
  }
  std::vector<Tensor> modulation(const std::string& path, const Tensor& condition,
                                 int64_t count) const {
    const Tensor all = linear(path, count * c_.width)(nn::silu(condition));
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(sliceAxis(all, -1, i * c_.width, c_.width));
    return parts;
  }
  nn::Linear linear(const std::string& path, int64_t out) const {
    return nn::Linear(graph_, path, c_.width, out, {.weightDType = options_.weightDType});
  }
  nn::LayerNorm norm(const std::string& path, double eps, bool affine) const {
    return nn::LayerNorm(
        graph_, path, c_.width,
        {.eps = eps, .gain = affine, .bias = affine, .weightDType = options_.weightDType});
  }

  Graph& graph_;
  const DitConfig c_;
  const FamilyOptions options_;
};

}  // namespace

// forward: hidden_states f32 [batch, channels, side, side], timestep f32 [batch], class_labels i64
// [batch] -> sample f32 [batch, outputs, side, side].
Graph builders::dit(ConfigReader& config, const FamilyOptions& options) {
  DitConfig c;
  c.layers = readLayers(config, "num_layers", options);
  c.heads = config.size("num_attention_heads", kMaxHeads, 16);
  c.width = c.heads * config.size("attention_head_dim", kMaxHeads, 72);
  c.channels = config.size("in_channels", kMaxHidden, 4);
  c.outputs = config.size("out_channels", kMaxHidden, c.channels);
  c.side = config.size("sample_size", kMaxPositions, 32);
  c.patch = config.size("patch_size", kMaxPositions, 2);
  if (c.side % c.patch)
    throw config.json().error("patch_size: expected patches that divide the sample_size " +
                              std::to_string(c.side) + ", got " + std::to_string(c.patch));
  c.labels = config.size("num_embeds_ada_norm", kMaxVocabulary, 1000);
  c.normEps = config.epsilon("norm_eps", 1e-5);
  c.qkvBias = config.flag("attention_bias", true);
  c.affine = config.flag("norm_elementwise_affine", false);
  config.expect("norm_type", "ada_norm_zero");
  config.expect("activation_fn", "gelu-approximate");
  // Of other models of that class, and which arithmetic their products have.
  config.ignore({"norm_num_groups", "upcast_attention", "_class_name", "_diffusers_version"});
  Graph g("dit");
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  const Tensor image = g.input("hidden_states", DType::F32, {batch, c.channels, c.side, c.side});
  const Tensor timesteps = g.input("timestep", DType::F32, {batch});
  const Tensor labels = g.input("class_labels", DType::I64, {batch});
  const Tensor sample = Dit(g, c, options)(nn::castTo(image, options.dtype), timesteps, labels);
  g.output("sample", nn::castTo(sample, DType::F32));
  return g;
}

}  // namespace lathe
