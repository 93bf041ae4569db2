// SPDX-License-Identifier: Apache-2.0
// Gemma 3, the language model: Gemma Team, "Gemma 3 Technical Report", 2025. Norms of q and k, and
// five layers with a window and rotations of their own for each one that sees everything.
#include <cmath>

#include "frontend/families/builders.h"
#include "frontend/families/gemma.h"

namespace lathe {
namespace {

struct Gemma3Config : DecoderConfig {
  bool attentionBias = false;
  double scale = 1, logitCap = 0;
  std::vector<int64_t> windows;  ///< of each layer; 0: all keys
  nn::RopeOptions localRope;     ///< of the layers with a window
};

class Gemma3 : public GemmaLm {
 public:
  Gemma3(Graph& graph, const Gemma3Config& config, const FamilyOptions& options)
      : GemmaLm(graph, config, options), own_(config) {}

  std::vector<nn::RopeAngles> angles(const Tensor& where) const override {
    return {nn::RoPE(graph_, "rope", own_.rope).angles(where),
            nn::RoPE(graph_, "rope_local", own_.localRope).angles(where)};
  }
  size_t anglesOf(int64_t layer) const override { return own_.windows[size_t(layer)] ? 1 : 0; }

  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    nn::SelfAttentionOptions o = attentionOptions();
    o.qkNorm = nn::SelfAttentionOptions::QkNorm::Head;
    o.qkvBias = o.outputBias = own_.attentionBias;
    o.attention.scale = own_.scale;
    o.attention.window = own_.windows[size_t(index)];
    return sandwich(index, x, o, context);
  }

  Tensor logits(const Tensor& x) const override { return cappedLogits(x, own_.logitCap); }

 private:
  const Gemma3Config own_;
};

// transformers 4: rope_theta and rope_scaling for the global layers, rope_local_base_freq for the
// others. 5: one object for each kind.
void readRotations(ConfigReader& config, const DecoderDefaults& defaults,
                   const FamilyOptions& options, Gemma3Config& c) {
  const double local = config.positive("rope_local_base_freq", 10000);
  const JsonValue none = JsonValue::parse("{}", config.json().file());
  if (auto parameters = config.find("rope_parameters")) {
    ConfigReader kinds(*parameters);
    const double theta = config.positive("rope_theta", defaults.ropeTheta);
    c.rope =
        readRopeObject(kinds.find("full_attention").value_or(none), config, c, defaults, theta);
    c.localRope =
        readRopeObject(kinds.find("sliding_attention").value_or(none), config, c, defaults, local);
    kinds.finish("Gemma3ForCausalLM");
  } else {
    c.rope = readRope(config, c, defaults, options);
    c.localRope = {.headDim = c.headDim, .theta = local};
  }
  c.rope.maxPositions = c.localRope.maxPositions = reachedPositions(longestSequence(c), options);
}

}  // namespace

Graph builders::gemma3(ConfigReader& config, const FamilyOptions& options) {
  const DecoderDefaults defaults{.kvHeads = 4,
                                 .headDim = 256,
                                 .maxPositions = 131072,
                                 .ropeTheta = 1e6,
                                 .tiedHead = true,
                                 .activationKey = "hidden_activation",
                                 .activation = "gelu_pytorch_tanh"};
  Gemma3Config c{readSizes(config, options, defaults)};
  readRotations(config, defaults, options, c);
  c.attentionBias = config.flag("attention_bias", false);
  c.scale = 1 / std::sqrt(config.positive("query_pre_attn_scalar", 256));
  c.logitCap = readCap(config, "final_logit_softcapping", 0);
  const int64_t window = config.size("sliding_window", kMaxPositions, 4096);
  int64_t pattern = config.size("sliding_window_pattern", kMaxLayers, 6);
  pattern = config.size("_sliding_window_pattern", kMaxLayers, pattern);
  c.windows =
      readWindows(config, c.layers, window, [&](int64_t i) { return (i + 1) % pattern != 0; });
  return recordFamily<Gemma3>("gemma3", c, options);
}

}  // namespace lathe
