// SPDX-License-Identifier: Apache-2.0
#pragma once
// Guesses of the next tokens, for speculative decoding (Leviathan et al. 2022, arXiv:2211.17192;
// Chen et al. 2023, arXiv:2302.01318).
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lathe/runtime/generator.h"
#include "lathe/runtime/sampler.h"

namespace lathe {

/// A guess and what it was drawn from; nothing in `from` means that it was certain.
struct Draft {
  int id = 0;
  std::vector<Choice> from;
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  /// A new text begins, of at most `positions` tokens with its prompt; what is drawn at random
  /// depends on the seed alone.
  virtual void start(std::span<const int> prompt, int64_t positions, uint64_t seed) = 0;
  /// This token follows, guessed or not.
  virtual void accept(int id) = 0;
  /// Up to `count` tokens that may follow; none is an answer too.
  virtual std::vector<Draft> propose(int64_t count) = 0;
};

/// What followed the last time the text had its last tokens (Saxena 2023,
/// https://github.com/apoorvumang/prompt-lookup-decoding): costs next to nothing, and guesses well
/// where an answer quotes its prompt.
class NgramDrafter final : public Drafter {
 public:
  /// Looks for the last `longest` tokens, then for fewer, down to one. Throws
  /// Error(InvalidArgument) unless `longest` is from 1 to 8.
  explicit NgramDrafter(int64_t longest = 3);
  void start(std::span<const int> prompt, int64_t positions, uint64_t seed) override;
  void accept(int id) override;
  std::vector<Draft> propose(int64_t count) override;

 private:
  uint64_t hashOfLast(int64_t length) const;

  int64_t longest_;
  std::vector<int> text_;
  /// By length and tokens: where the text went on the last two times, so that one of them lies
  /// behind the end.
  struct Places {
    size_t last = 0, before = 0;
  };
  std::unordered_map<uint64_t, Places> places_;
};

/// A smaller model with the same vocabulary.
class ModelDrafter final : public Drafter {
 public:
  /// The generator must outlive it. `sampling` is best that of the text, whose seed counts: the
  /// more alike the distributions, the more guesses are taken.
  ModelDrafter(Generator& generator, const SamplingOptions& sampling);
  void start(std::span<const int> prompt, int64_t positions, uint64_t seed) override;
  void accept(int id) override;
  std::vector<Draft> propose(int64_t count) override;

 private:
  Generator& generator_;
  SamplingOptions options_;
  Sampler sampler_;
  RandomGenerator random_;
  std::vector<int> text_, fed_;  // fed_: what the cache holds, guesses too
};

}  // namespace lathe
