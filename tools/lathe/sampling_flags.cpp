// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/sampling_flags.h"

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"
#include "tools/lathe/arguments.h"

namespace lathe::cli {

void addSamplingFlags(CLI::App& parser, SamplingFlags& flags) {
  parser
      .add_option("--temp,--temperature", flags.temperature,
                  "0 takes the likeliest token (default unless the model asks to sample)")
      ->check(RealNumber{});
  parser.add_option("--top-k", flags.topK, "keep the k likeliest tokens; 0 keeps all")
      ->check(WholeNumber{0});
  parser.add_option("--top-p", flags.topP, "keep the fewest tokens that reach this probability")
      ->check(RealNumber{0, 1});
  parser
      .add_option("--min-p", flags.minP,
                  "keep tokens at least so many times as likely as the likeliest")
      ->check(RealNumber{0, 1});
  parser
      .add_option("--repetition-penalty", flags.repetitionPenalty,
                  "divides the logits of tokens that the text has; 1 changes nothing")
      ->check(RealNumber{1e-6});
  parser
      .add_option("--presence-penalty", flags.presencePenalty,
                  "taken off the logits of tokens that were generated")
      ->check(RealNumber{-1e6, 1e6});
  parser
      .add_option("--frequency-penalty", flags.frequencyPenalty,
                  "the same for each time that a token was generated")
      ->check(RealNumber{-1e6, 1e6});
  parser.add_option("--seed", flags.seed, "of the random draws (default: 0)")->check(Seed{});
}

SamplingOptions samplingOf(const SamplingFlags& flags, const GenerationConfig& config) {
  const bool sample = config.doSample.value_or(false);
  SamplingOptions options;
  options.seed = flags.seed;
  options.temperature = flags.temperature.value_or(sample ? config.temperature.value_or(1) : 0);
  options.topK = flags.topK.value_or(sample ? config.topK.value_or(0) : 0);
  options.topP = flags.topP.value_or(sample ? config.topP.value_or(1) : 1);
  options.minP = flags.minP.value_or(sample ? config.minP.value_or(0) : 0);
  options.repetitionPenalty =
      flags.repetitionPenalty.value_or(config.repetitionPenalty.value_or(1));
  options.excluded = config.excludedIds;
  options.presencePenalty = flags.presencePenalty;
  options.frequencyPenalty = flags.frequencyPenalty;
  return options;
}

void addConstraintFlags(CLI::App& parser, ConstraintFlags& flags) {
  parser.add_option("--json-schema", flags.schemaFile,
                    "a file with a JSON schema: the text is a document that it allows");
  parser.add_option("--regex", flags.regex, "the text matches this regular expression, as a whole")
      ->excludes(parser.get_option("--json-schema"));
}

std::shared_ptr<Constraint> constraintOf(const ConstraintFlags& flags, const Model& model,
                                         const std::optional<Tokenizer>& tokenizer) {
  if (flags.schemaFile.empty() && flags.regex.empty()) return nullptr;
  if (!tokenizer) throw missingTokenizer(model, "; --json-schema and --regex need it");
  if (!flags.regex.empty()) return Constraint::regex(flags.regex, *tokenizer);
  return Constraint::jsonSchema(readWholeFile(flags.schemaFile, kPromptFile), flags.schemaFile,
                                *tokenizer);
}

}  // namespace lathe::cli
