// SPDX-License-Identifier: Apache-2.0
#pragma once
// The likeliest continuations instead of the likeliest next tokens.
#include <cstdint>
#include <span>
#include <vector>

#include "lathe/runtime/batch_generator.h"

namespace lathe {

struct BeamSearchOptions {
  int64_t beams = 4;                   ///< beginnings that are kept at each step
  int64_t newTokens = 128;             ///< at most
  double lengthPenalty = 1;            ///< > 0 favours long texts
  std::vector<int64_t> endIds = {};    ///< end a text; its last id is one of them
  std::vector<int64_t> excluded = {};  ///< tokens that never come
  /// Tokens at the end of the prompt that count in a text's length: those that a model is forced to
  /// begin with.
  int64_t forcedTokens = 0;
};

struct BeamText {
  std::vector<int> ids;
  double score = 0;    ///< the sum of natural logarithms of probabilities, by count^lengthPenalty
  bool ended = false;  ///< by an end token
};

/// The texts that were found, best first, at most `beams` of them. At each step the likeliest
/// `beams` extensions of all beginnings live on, and those that end are put aside. It stops when
/// `beams` ended texts are at least as good as the best beginning is now (as `num_beams` with
/// `early_stopping=False` in Hugging Face's transformers; Graves 2012, arXiv:1211.3711, section
/// 2.5). Throws Error(InvalidArgument) for options out of their ranges and prompts beyond the
/// model's positions.
std::vector<BeamText> beamSearch(BatchGenerator& generator, std::span<const int> prompt,
                                 const BeamSearchOptions& options);

}  // namespace lathe
