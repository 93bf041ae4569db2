// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of their tolerances tests use. With LATHE_OBSERVED_ERRORS=1 a test program ends with the
// largest error of every kind of comparison, as a part of what was allowed: tolerances are set to
// twice what all backends and tiers need, and this is how that is measured.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace lathe::test {

class ObservedErrors {
 public:
  /// `what` names the kind ("cpu softmax bf16"). NaN counts as infinite.
  static void note(const std::string& what, double error, double bound) {
    ObservedErrors& all = instance();
    if (!all.wanted_ || error == 0) return;
    const double part = std::isnan(error) ? INFINITY : error / bound;
    double& most = all.largest_[what];
    if (part > most) most = part;
  }
  static bool wanted() { return instance().wanted_; }

 private:
  static ObservedErrors& instance() {
    static ObservedErrors errors;
    return errors;
  }
  ~ObservedErrors() {
    for (const auto& [what, part] : largest_) std::printf("observed %s %.3f\n", what.c_str(), part);
  }
  const bool wanted_ = std::getenv("LATHE_OBSERVED_ERRORS") != nullptr;
  std::map<std::string, double> largest_;
};

}  // namespace lathe::test
