// SPDX-License-Identifier: Apache-2.0
#pragma once
// How tokens are chosen, on the command line.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lathe/runtime/constraint.h"
#include "lathe/runtime/sampler.h"
#include "tools/lathe/model.h"

namespace lathe::cli {

struct SamplingFlags {
  std::optional<int64_t> topK;
  std::optional<double> temperature, topP, minP, repetitionPenalty;
  double presencePenalty = 0, frequencyPenalty = 0;
  uint64_t seed = 0;
};
/// Adds --temp, --top-k, --top-p, --min-p, the penalties and --seed.
void addSamplingFlags(CLI::App& parser, SamplingFlags& flags);
/// A flag wins over generation_config.json, whose sampling counts only where it asks to sample.
SamplingOptions samplingOf(const SamplingFlags& flags, const GenerationConfig& config);

struct ConstraintFlags {
  std::string schemaFile, regex;
};
/// Adds --json-schema and --regex.
void addConstraintFlags(CLI::App& parser, ConstraintFlags& flags);
/// Null where neither is given.
std::shared_ptr<Constraint> constraintOf(const ConstraintFlags& flags, const Model& model,
                                         const std::optional<Tokenizer>& tokenizer);

}  // namespace lathe::cli
