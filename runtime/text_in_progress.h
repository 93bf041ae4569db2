// SPDX-License-Identifier: Apache-2.0
#pragma once
// One text in the making: what is sampled, told and held back, and what ends it. Where its logits
// come from is another's business.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/constraint.h"
#include "lathe/runtime/text_generation.h"
#include "runtime/stop_finder.h"

namespace lathe {

/// Throws Error(InvalidArgument) for options out of their ranges.
void checkTextOptions(const TextGenerationOptions& options, bool hasTokenizer);

class TextInProgress {
 public:
  /// `options` must outlive it; `row` is added to the seed and told with every token. Throws
  /// Error(InvalidArgument) for a prompt beyond the positions.
  TextInProgress(const std::optional<Tokenizer>& tokenizer, const TextGenerationOptions& options,
                 std::span<const int> prompt, int64_t maxPositions, int64_t row);

  /// Tokens of the cache that it may need.
  int64_t positions() const { return positions_; }
  int64_t left() const { return count_ - int64_t(result_.tokens.size()); }
  bool ended() const { return ended_; }
  int last() const { return result_.tokens.back().id; }
  Sampler& sampler() { return sampler_; }
  TextGeneration& result() { return result_; }

  /// The logits with -inf for what the constraint excludes here; valid until the next call.
  std::span<const float> permitted(std::span<const float> logits);
  /// Draws a token from permitted(logits). Several texts may draw at the same time.
  int draw(std::span<const float> permitted) { return int(sampler_.sample(permitted)); }
  /// Draws a token from the model's logits and takes it.
  void sample(std::span<const float> logits);
  /// Takes a token that was drawn from permitted(logits).
  void take(int id, std::span<const float> logits);
  /// Ends it here, telling nobody.
  void cancel();

 private:
  void stop(StopReason reason);
  bool tell(const GeneratedToken* token, const std::string& text);
  bool isEnd(int64_t id) const;

  const TextGenerationOptions& options_;
  Sampler sampler_;
  StopFinder stops_;
  std::optional<StreamDecoder> stream_;
  int tokens_ = 0;  // that the tokenizer has
  std::optional<ConstraintState> constraint_;
  std::vector<float> permitted_;
  int64_t row_ = 0, count_ = 0, positions_ = 0;
  bool ended_ = false;
  TextGeneration result_;
};

}  // namespace lathe
