// SPDX-License-Identifier: Apache-2.0
#include "runtime/token_mass.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe {

// What is less likely than the likeliest by this power of e adds less than a double can show.
constexpr double kDepth = 40;

void TokenMass::weigh(std::span<const float> logits, float largest, double temperature,
                      double least) {
  logits_ = logits;
  weights_.resize(logits.size());
  classes_.resize(logits.size());
  sums_.assign(kClasses, 0);
  float lowest = largest;
  for (float logit : logits)
    lowest = logit < lowest && logit > -std::numeric_limits<float>::infinity() ? logit : lowest;
  const double depth = std::min((double(largest) - double(lowest)) / temperature, kDepth);
  const double perClass = depth > 0 ? kClasses / depth : 0;
  total_ = placed_ = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    // The difference is in double: at a tiny temperature logit / temperature would overflow.
    const double down = (double(largest) - double(logits[i])) / temperature;
    const double weight = std::exp(-down), at = down * perClass;
    weights_[i] = weight;
    total_ += weight;
    if (!(weight > 0) || weight < least) {
      classes_[i] = kClasses;
      continue;
    }
    classes_[i] = at < kClasses - 1 ? uint16_t(at) : uint16_t(kClasses - 1);
    sums_[classes_[i]] += weight;
  }
  for (double sum : sums_) placed_ += sum;
}

TokenMass::Place TokenMass::reach(double mass, bool beyond) {
  auto reached = [&](double sum) { return beyond ? sum > mass : sum >= mass; };
  Place place;
  double before = 0;
  int found = 0;
  for (int c = 0; c < kClasses; ++c) {
    if (sums_[size_t(c)] == 0) continue;
    before = place.sum;
    place.sum += sums_[size_t(c)];
    found = c;
    if (reached(place.sum)) break;
  }
  order_.clear();
  for (size_t i = 0; i < classes_.size(); ++i)
    if (classes_[i] == found) order_.push_back(int32_t(i));
  std::ranges::sort(order_, [&](int32_t a, int32_t b) {
    const float x = logits_[size_t(a)], y = logits_[size_t(b)];
    return x != y ? x > y : a < b;
  });
  place.sum = before;
  for (int32_t id : order_) {
    place.id = id;
    place.sum += weights_[size_t(id)];
    if (reached(place.sum)) break;
  }
  return place;
}

}  // namespace lathe
