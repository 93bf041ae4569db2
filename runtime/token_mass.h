// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where in the order of a vocabulary, likeliest first, the probabilities add up to a given sum:
// without sorting it, which would take longer than a step of a small model.
#include <cstdint>
#include <span>
#include <vector>

namespace lathe {

class TokenMass {
 public:
  /// A token, and the weights of all before it and of itself added up. Among equal logits the lower
  /// id comes first.
  struct Place {
    int64_t id = -1;
    double sum = 0;
  };

  /// Weighs each token with exp((logit - largest) / temperature), -inf with 0. Logits are finite or
  /// -inf, `largest` is the largest and finite; temperature > 0. Tokens that weigh less than
  /// `least` count in total(), but have no place.
  void weigh(std::span<const float> logits, float largest, double temperature, double least);

  double total() const { return total_; }
  /// Of the tokens that have a place.
  double placed() const { return placed_; }
  /// The first token with which the sum is at least `mass`, or, `beyond` it, above; the last token
  /// that has a place where none is.
  Place reach(double mass, bool beyond);

 private:
  // Tokens in classes of about equal weight, heavier ones first: only one class must be sorted.
  static constexpr int kClasses = 1024;

  std::span<const float> logits_;
  std::vector<double> weights_;
  std::vector<uint16_t> classes_;  // by token; kClasses: no place
  std::vector<double> sums_;       // by class
  std::vector<int32_t> order_;     // of the class that is looked into
  double total_ = 0, placed_ = 0;
};

}  // namespace lathe
