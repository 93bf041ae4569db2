// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiles a graph with a user's changes to the pipeline and without any rewrite at all, runs both
// on the reference backend with the same weights, and says what happened.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <lathe/lathe.h>

namespace example {

inline lathe::Array pattern(lathe::Shape shape) {
  lathe::Array array(lathe::DType::F32, shape);
  for (int64_t i = 0; i < array.size(); ++i) array.set(i, std::sin(double(i)));
  return array;
}

/// Prints the rewrites and near misses of `name`, and the largest difference of the results, which
/// is 0 where they are the same bits. Returns the program's exit status: 0 if `name` was applied
/// `wanted` times and the results are within `tolerance`.
inline int tryOut(const lathe::Graph& graph, lathe::CompileOptions options, const std::string& name,
                  int wanted, double tolerance, const lathe::Arrays& inputs) {
  lathe::CompileRecord record;
  record.wantMisses = true;
  options.backend = "reference";
  options.record = &record;
  lathe::Session changed(lathe::compile(graph, options));
  lathe::Session plain(lathe::compile(graph, {.backend = "reference", .stopAfterRewrite = 0}));

  int applied = 0;
  for (const auto& rewrite : record.rewrites) {
    if (rewrite.what != name) continue;
    ++applied;
    std::printf("#%llu %s at %s\n", (unsigned long long)rewrite.number, name.c_str(),
                rewrite.at.substr(rewrite.at.rfind('/') + 1).c_str());
  }
  for (const auto& miss : record.misses)
    if (miss.pattern == name) std::printf("why not: %s\n", miss.reason.c_str());

  double worst = 0;
  changed.bindRandomWeights(/*seed=*/1);
  plain.bindRandomWeights(/*seed=*/1);
  lathe::Arrays got = changed.run("forward", inputs), expected = plain.run("forward", inputs);
  for (const auto& [output, array] : expected)
    for (int64_t i = 0; i < array.size(); ++i) {
      const double difference = std::abs(array.at(i) - got.at(output).at(i));
      worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
    }
  std::printf("applied: %d, largest difference: %g\n", applied, worst);
  return applied == wanted && worst <= tolerance ? 0 : 1;
}

}  // namespace example
