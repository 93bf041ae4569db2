// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/decoder_config.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation kind;
};
// Three spellings of one approximation by tanh, and two of x sigmoid(x).
constexpr auto kActivations =
    std::to_array<NamedActivation>({{"silu", Activation::silu},
                                    {"swish", Activation::silu},
                                    {"gelu", Activation::gelu},
                                    {"gelu_new", Activation::gelu_tanh},
                                    {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                    {"gelu_fast", Activation::gelu_tanh},
                                    {"relu", Activation::relu}});

void readHeads(ConfigReader& config, const DecoderDefaults& defaults, DecoderConfig& c) {
  c.heads = config.size("num_attention_heads", kMaxHeads);
  // Missing is the family's default, null as many as heads.
  const bool isMissing = !config.json().has("num_key_value_heads");
  c.kvHeads = isMissing && defaults.kvHeads ? defaults.kvHeads : c.heads;
  if (auto kv = config.find("num_key_value_heads")) c.kvHeads = kv->asInt(1, kMaxHeads);
  const JsonValue blamed =
      config.at(config.has("num_key_value_heads") ? "num_key_value_heads" : "num_attention_heads");
  if (c.kvHeads > c.heads)
    throw blamed.error(fmt::format("{} key/value heads for {} heads, expected at most as many",
                                   c.kvHeads, c.heads));
  if (c.heads % c.kvHeads != 0)
    throw blamed.error(
        fmt::format("{} key/value heads do not divide {} heads", c.kvHeads, c.heads));
  const bool named = config.has("head_dim");
  if (named) {
    c.headDim = config.size("head_dim", kMaxHeads);
  } else if (defaults.headDim && !config.json().has("head_dim")) {
    c.headDim = defaults.headDim;
  } else {
    if (c.hiddenSize % c.heads != 0)
      throw config.at("num_attention_heads")
          .error(fmt::format("{} heads do not divide hidden_size {}, and there is no head_dim",
                             c.heads, c.hiddenSize));
    c.headDim = c.hiddenSize / c.heads;
  }
  config.ignore({"head_dim"});
  if (c.heads * c.headDim > kMaxHidden)
    throw config.at(named ? "head_dim" : "num_attention_heads")
        .error(fmt::format("expected heads of at most {} numbers together, got {} x {}", kMaxHidden,
                           c.heads, c.headDim));
}

}  // namespace

void readEqualHeads(ConfigReader& config, std::string_view key, DecoderConfig& c) {
  c.heads = c.kvHeads = config.size(key, kMaxHeads);
  if (c.hiddenSize % c.heads)
    throw config.at(key).error(fmt::format("expected heads that divide the hidden size {}, got {}",
                                           c.hiddenSize, c.heads));
  c.headDim = c.hiddenSize / c.heads;
}

int64_t readLayers(ConfigReader& config, std::string_view key, const FamilyOptions& options) {
  const int64_t layers = config.size(key, kMaxLayers);
  if (options.layers < 0 || options.layers > layers)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("expected 1 to {} layers, got {}", layers, options.layers));
  return options.layers ? options.layers : layers;
}

Activation readActivation(ConfigReader& config, std::string_view key, std::string_view otherwise) {
  return activationOf(config, key, config.text(key, otherwise));
}

Activation activationOf(ConfigReader& config, std::string_view key, std::string_view name) {
  std::string names;
  for (const NamedActivation& a : kActivations) {
    if (a.name == name) return a.kind;
    names += (names.empty() ? "" : ", ") + std::string(a.name);
  }
  throw config.at(key).error(fmt::format("expected an activation of {}, got \"{}\"", names, name),
                             ErrorCode::Unsupported);
}

DecoderConfig readSizes(ConfigReader& config, const FamilyOptions& options,
                        const DecoderDefaults& defaults) {
  DecoderConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("hidden_size", kMaxHidden);
  c.intermediateSize = config.size("intermediate_size", kMaxIntermediate);
  c.layers = readLayers(config, "num_hidden_layers", options);
  readHeads(config, defaults, c);
  c.maxPositions = config.size("max_position_embeddings", kMaxPositions, defaults.maxPositions);
  c.normEps = config.epsilon(defaults.normEpsKey, defaults.normEps);
  c.activation = readActivation(config, defaults.activationKey, defaults.activation);
  c.tiedHead = config.flag("tie_word_embeddings", defaults.tiedHead);
  return c;
}

DecoderConfig readDecoder(ConfigReader& config, const FamilyOptions& options,
                          const DecoderDefaults& defaults) {
  DecoderConfig c = readSizes(config, options, defaults);
  if (c.headDim % 2 != 0 && !defaults.mayRotatePartly)
    throw config.at(config.has("head_dim") ? "head_dim" : "num_attention_heads")
        .error(fmt::format("expected an even head dimension for RoPE, got {}", c.headDim));
  c.rope = readRope(config, c, defaults, options);
  return c;
}

std::vector<int64_t> readWindows(ConfigReader& config, int64_t layers, int64_t window,
                                 const std::function<bool(int64_t layer)>& isWindowed) {
  std::vector<int64_t> windows;
  auto types = config.find("layer_types");
  if (types && int64_t(types->size()) < layers)
    throw types->error(
        fmt::format("expected a type for each of {} layers, got {}", layers, types->size()));
  for (int64_t i = 0; i < layers; ++i) {
    bool windowed = isWindowed(i);
    if (types) {
      const JsonValue type = types->at(size_t(i));
      windowed = type.asString() == "sliding_attention";
      if (!windowed && type.asString() != "full_attention")
        throw type.error("expected \"full_attention\" or \"sliding_attention\", got " + type.show(),
                         ErrorCode::Unsupported);
    }
    if (windowed && types && window == 0)
      throw types->at(size_t(i)).error("a sliding layer needs a sliding_window");
    windows.push_back(windowed ? window : 0);
  }
  return windows;
}

int64_t sequenceLimit(int64_t value, int64_t limit, const char* name) {
  if (value == 0) return limit;
  if (value >= 1 && value <= limit) return value;
  throw Error(ErrorCode::InvalidArgument,
              std::string("expected ") + name + " from 1 to the model's " + std::to_string(limit) +
                  " positions, got " + std::to_string(value) + "; without it, it is all of them");
}

int64_t reachedPositions(int64_t maxPositions, const FamilyOptions& options) {
  auto reached = [&](int64_t asked) { return asked ? asked : maxPositions; };
  return std::max(reached(options.maxSeq), reached(options.cacheCapacity));
}

}  // namespace lathe
