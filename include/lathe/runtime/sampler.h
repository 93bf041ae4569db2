// SPDX-License-Identifier: Apache-2.0
#pragma once
// Choosing the next token from logits.
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lathe {

/// xoshiro256** seeded through SplitMix64 (Blackman and Vigna, https://prng.di.unimi.it): the same
/// sequence on every machine.
class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed);
  uint64_t next();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return double(next() >> 11) * 0x1.0p-53; }

 private:
  std::array<uint64_t, 4> state_;
};

/// Index of the largest logit, the first of equals; -1 if there are NaN or +inf, or nothing above
/// -inf.
int64_t indexOfLargest(std::span<const float> logits);

struct SamplingOptions {
  double temperature = 0;  ///< 0: the largest logit, the first of equals
  int64_t topK = 0;        ///< keep the k largest; 0 keeps all
  double topP = 1;         ///< keep the fewest whose probability reaches p, in (0, 1]
  uint64_t seed = 0;
};

/// One per generated sequence. Order: temperature, top-k, top-p, draw; the token that crosses top-p
/// is kept, and among equal logits the lower id comes first.
class Sampler {
 public:
  /// Throws Error(InvalidArgument) for a negative or NaN option.
  explicit Sampler(const SamplingOptions& options = {});
  /// Index into `logits`, f32 [vocab]. -inf excludes a token; Error(Numeric) for NaN, +inf, or
  /// nothing left to choose from.
  int64_t sample(std::span<const float> logits);

 private:
  SamplingOptions options_;
  RandomGenerator random_;
  std::vector<std::pair<float, int64_t>> candidates_;
  std::vector<double> weights_;
};

}  // namespace lathe
