// SPDX-License-Identifier: Apache-2.0
// Kinds of rotary positions as config.json spells them.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lathe/frontend/families/decoder_config.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

using Scaling = nn::RopeScalingOptions;
using Type = Scaling::Type;

struct Kind {
  std::string_view name;
  Type type;
};
// "su" is what Phi-3's first checkpoints call longrope.
constexpr auto kKinds = std::to_array<Kind>({{"default", Type::Default},
                                             {"linear", Type::Linear},
                                             {"dynamic", Type::Dynamic},
                                             {"yarn", Type::Yarn},
                                             {"llama3", Type::Llama3},
                                             {"longrope", Type::LongRope},
                                             {"su", Type::LongRope}});

std::string kindsText() {
  std::string text;
  for (size_t i = 0; i + 1 < kKinds.size(); ++i)
    text += (i ? ", " : "") + std::string(kKinds[i].name);
  return text;
}

Type readType(ConfigReader& rope, std::string& name) {
  auto type = rope.find("rope_type"), oldType = rope.find("type");
  if (type && oldType && type->asString() != oldType->asString())
    throw rope.json().error(
        fmt::format("\"rope_type\" is {} and \"type\" is {}", type->show(), oldType->show()));
  if (!type) type = oldType;
  name = type ? type->asString() : "default";
  for (const Kind& kind : kKinds)
    if (kind.name == name) return kind.type;
  throw type->error(fmt::format("expected a rope type of {}, got {}", kindsText(), type->show()),
                    ErrorCode::Unsupported);
}

double atLeastOne(const JsonValue& value) {
  double v = value.asDouble();
  if (!(v >= 1)) throw value.error(fmt::format("expected a factor >= 1, got {}", value.show()));
  return v;
}

std::vector<double> readFactors(const JsonValue& list) {
  std::vector<double> factors;
  for (const JsonValue& item : list.elements()) {
    factors.push_back(item.asDouble());
    if (!(factors.back() > 0))
      throw item.error(fmt::format("expected a number > 0, got {}", item.show()));
  }
  return factors;
}

void readLlama3(ConfigReader& rope, Scaling& scaling) {
  scaling.factor = atLeastOne(rope.at("factor"));
  auto frequency = [&](const char* key) {
    rope.at(key);
    return rope.positive(key, 1);
  };
  scaling.lowFreqFactor = frequency("low_freq_factor");
  scaling.highFreqFactor = frequency("high_freq_factor");
  if (scaling.highFreqFactor <= scaling.lowFreqFactor)
    throw rope.json().error(fmt::format("high_freq_factor {} is not above low_freq_factor {}",
                                        scaling.highFreqFactor, scaling.lowFreqFactor));
}

// Without a factor it is how much longer the model's sequences are than those of its training.
double factorOr(ConfigReader& rope, const Scaling& scaling, int64_t maxPositions) {
  auto factor = rope.find("factor");
  return factor ? atLeastOne(*factor) : double(maxPositions) / double(scaling.originalMaxPositions);
}

void readYarn(ConfigReader& rope, Scaling& scaling, int64_t maxPositions) {
  scaling.factor = factorOr(rope, scaling, maxPositions);
  scaling.betaFast = rope.positive("beta_fast", 32);
  scaling.betaSlow = rope.positive("beta_slow", 1);
  scaling.truncate = rope.flag("truncate", true);
  const double part = rope.number("mscale", 0), all = rope.number("mscale_all_dim", 0);
  const double otherwise = part != 0 && all != 0 ? nn::yarnAttentionFactor(scaling.factor, part) /
                                                       nn::yarnAttentionFactor(scaling.factor, all)
                                                 : nn::yarnAttentionFactor(scaling.factor);
  scaling.attentionFactor = rope.positive("attention_factor", otherwise);
}

void readLongRope(ConfigReader& rope, Scaling& scaling, int64_t maxPositions, int64_t frequencies) {
  scaling.shortFactor = readFactors(rope.at("short_factor"));
  scaling.longFactor = readFactors(rope.at("long_factor"));
  for (const char* key : {"short_factor", "long_factor"})
    if (int64_t(rope.at(key).size()) != frequencies)
      throw rope.at(key).error(fmt::format("expected {} factors, one for each frequency, got {}",
                                           frequencies, rope.at(key).size()));
  const double factor = factorOr(rope, scaling, maxPositions);
  scaling.attentionFactor = rope.positive(
      "attention_factor", nn::longRopeAttentionFactor(factor, scaling.originalMaxPositions));
}

// The trained length: what stands beside the object counts before what stands in it.
int64_t readTrainedLength(ConfigReader& rope, ConfigReader& config, const DecoderConfig& sizes,
                          const DecoderDefaults& defaults) {
  const int64_t inner =
      rope.size("original_max_position_embeddings", kMaxPositions,
                defaults.trainedPositions ? defaults.trainedPositions : sizes.maxPositions);
  return config.size("original_max_position_embeddings", kMaxPositions, inner);
}

int64_t rotaryDim(double fraction, const JsonValue& blamed, const DecoderConfig& sizes,
                  const DecoderDefaults& defaults) {
  if (!defaults.mayRotatePartly && fraction != 1)
    throw blamed.error(fmt::format("not supported by this family: expected a "
                                   "partial_rotary_factor of 1, got {}",
                                   fraction),
                       ErrorCode::Unsupported);
  if (!(fraction > 0) || fraction > 1)
    throw blamed.error(
        fmt::format("expected a fraction of a head above 0 and up to 1, got {}", fraction));
  const int64_t size = int64_t(double(sizes.headDim) * fraction);
  if (size < 2 || size % 2)
    throw blamed.error(fmt::format("expected an even number of rotated elements, got {} of {}",
                                   size, sizes.headDim));
  return size;
}

}  // namespace

nn::RopeOptions readRopeObject(const JsonValue& object, const ConfigReader& parent,
                               const DecoderConfig& sizes, const DecoderDefaults& defaults,
                               double theta) {
  if (!object.isObject()) throw object.error("expected an object or null, got " + object.show());
  ConfigReader rope(object), config = parent;
  nn::RopeOptions o{.headDim = sizes.headDim, .maxPositions = sizes.maxPositions, .theta = theta};
  std::string name;
  Scaling& scaling = o.scaling;
  scaling.type = readType(rope, name);
  if (auto inner = rope.find("rope_theta")) {
    o.theta = rope.positive("rope_theta", theta);
    auto outer = config.find("rope_theta");
    if (outer && outer->asDouble() != o.theta)
      throw inner->error(fmt::format("{} contradicts rope_theta {}", inner->show(), outer->show()));
  }
  double fraction = defaults.rotaryFraction;
  JsonValue blamed = object;
  for (ConfigReader* where : {&config, &rope})
    if (auto given = where->find("partial_rotary_factor")) {
      fraction = given->asDouble();
      blamed = *given;
    }
  o.rotaryDim = rotaryDim(fraction, blamed, sizes, defaults);
  scaling.originalMaxPositions = readTrainedLength(rope, config, sizes, defaults);
  switch (scaling.type) {
    case Type::Default:
      if (auto factor = rope.find("factor"); factor && factor->asDouble() != 1)
        throw factor->error("rope type default has no factor, got " + factor->show());
      break;
    case Type::Dynamic:
      // Transformers takes the model's own length here, whatever else is written.
      scaling.originalMaxPositions = sizes.maxPositions;
      scaling.factor = atLeastOne(rope.at("factor"));
      break;
    case Type::Linear:
      scaling.factor = atLeastOne(rope.at("factor"));
      break;
    case Type::Llama3:
      readLlama3(rope, scaling);
      break;
    case Type::Yarn:
      readYarn(rope, scaling, sizes.maxPositions);
      break;
    case Type::LongRope:
      readLongRope(rope, scaling, sizes.maxPositions, o.rotaryDim / 2);
      break;
  }
  rope.finish("rope type " + name);
  return o;
}

nn::RopeOptions readRope(ConfigReader& config, const DecoderConfig& sizes,
                         const DecoderDefaults& defaults, const FamilyOptions& options) {
  auto old = config.find("rope_scaling"), parameters = config.find("rope_parameters");
  if (old && parameters)
    throw config.json().error(
        "both \"rope_scaling\" and \"rope_parameters\" are given, expected one");
  const double theta = config.positive("rope_theta", defaults.ropeTheta);
  const JsonValue object = old          ? *old
                           : parameters ? *parameters
                                        : JsonValue::parse("{}", config.json().file());
  nn::RopeOptions o = readRopeObject(object, config, sizes, defaults, theta);
  DecoderConfig scaled = sizes;
  scaled.rope = o;
  o.maxPositions = reachedPositions(longestSequence(scaled), options);
  return o;
}

int64_t longestSequence(const DecoderConfig& config) {
  const Scaling& scaling = config.rope.scaling;
  if (scaling.type != Type::Dynamic) return config.maxPositions;
  return std::min(kMaxPositions, int64_t(double(config.maxPositions) * scaling.factor));
}

}  // namespace lathe
