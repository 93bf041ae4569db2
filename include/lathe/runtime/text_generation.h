// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a prompt to a continuation: sampling, stops, callbacks, drafts that are checked in groups.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/batch_generator.h"
#include "lathe/runtime/draft.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/sampler.h"
#include "lathe/runtime/tokenizer.h"

namespace lathe {

class Constraint;  // lathe/runtime/constraint.h

enum class StopReason {
  Length,     ///< as many tokens as were wanted
  Positions,  ///< the model's last position
  EndToken,
  StopText,
  Cancelled,  ///< by the callback
  Complete    ///< the constraint allows nothing more
};
/// "length", "positions", "eos", "stop", "cancelled", "complete"
std::string_view nameOf(StopReason reason);

/// A token that was generated, and how likely the model itself found it: before penalties,
/// temperature and what they leave out.
struct GeneratedToken {
  int id = 0;
  double logProbability = 0;           ///< natural; 0 unless asked for
  std::vector<Choice> likeliest = {};  ///< with natural logarithms of probabilities
};

/// What onToken is told: a token and the text that is certain with it, which is empty within a
/// character and where a stop text may have begun. What was held back comes at the end without a
/// token.
struct GenerationEvent {
  int64_t row = 0;  ///< of a batch
  const GeneratedToken* token = nullptr;
  std::string_view text;
};

struct TextGenerationOptions {
  int64_t newTokens = 128;  ///< at most
  SamplingOptions sampling = {};
  std::vector<int64_t> endIds = {};  ///< end the text; the last id of the result is one of them
  std::vector<std::string> stopTexts = {};  ///< end the text in front of them; need a tokenizer
  /// Ask for logProbability and so many of the likeliest tokens at each step.
  std::optional<int64_t> logProbabilities = {};
  /// What the text must be. Its end token may come only where the text is whole; one that ends
  /// otherwise (Length, StopText) is a beginning. Needs a tokenizer.
  std::shared_ptr<Constraint> constraint = {};
  /// Told each token as it comes. False ends the text (of a batch, that row).
  std::function<bool(const GenerationEvent&)> onToken = {};
  /// Go on from what the generator's cache holds of the prompt instead of reading it again.
  bool resume = false;
  /// Guesses tokens that the model then checks several at once: the result is distributed as
  /// without it, and the same at temperature 0. Needs a program with `verify`.
  Drafter* drafter = nullptr;
  int64_t draftTokens = 4;  ///< guessed at a time
};

struct TextGeneration {
  std::vector<GeneratedToken> tokens;
  std::string text;  ///< without special tokens and stop texts; empty without a tokenizer
  StopReason stopped = StopReason::Length;
  int64_t drafted = 0, accepted = 0;  ///< tokens of the drafter

  std::vector<int> ids() const;
};

/// Continues `prompt` (at least one id) from position 0, and reserves what that takes. Throws
/// Error(InvalidArgument) for a prompt beyond the model's positions, for stop texts or a
/// constraint without a tokenizer, and for options out of their ranges.
TextGeneration generateText(Generator& generator, const std::optional<Tokenizer>& tokenizer,
                            std::span<const int> prompt, const TextGenerationOptions& options);

/// The same for several prompts at once, of any lengths: row by row what generateText gives, at
/// temperature 0 token by token, else with the seed of the options plus the row. No drafts.
std::vector<TextGeneration> generateTexts(BatchGenerator& generator,
                                          const std::optional<Tokenizer>& tokenizer,
                                          std::span<const std::vector<int>> prompts,
                                          const TextGenerationOptions& options);

}  // namespace lathe
