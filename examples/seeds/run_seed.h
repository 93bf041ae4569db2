// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the seed examples share: run a graph with random weights on each backend and say what came
// out, and how far the backends are apart.
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <lathe/lathe.h>

/// One run of an entry point; runs are made in order on one session.
struct Run {
  std::string entry;
  lathe::Arrays inputs;
};

/// Ids 3, 5, 9, ... below `limit`.
inline lathe::Array tokenIds(const lathe::Shape& shape, int64_t limit) {
  lathe::Array ids(lathe::DType::I64, shape);
  for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double((i * i + i + 3) % limit));
  return ids;
}

/// Waves between -1 and 1.
inline lathe::Array waves(const lathe::Shape& shape) {
  lathe::Array x(lathe::DType::F32, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(0.7 * double(i)));
  return x;
}

/// A program's main: 0 if both backends give the same numbers.
inline int runSeed(const std::function<lathe::Graph()>& build, const std::vector<Run>& runs,
                   const std::map<std::string, int64_t>& symbols = {}) {
  try {
    std::map<std::string, std::vector<lathe::Array>> results;
    for (const char* backend : {"reference", "cpu"}) {
      lathe::Session session(lathe::compile(build(), {.backend = backend}));
      session.bindRandomWeights(/*seed=*/1);
      for (const auto& [name, value] : symbols) session.setSymbol(name, value);
      for (const Run& run : runs)
        results[backend].push_back(session.run(run.entry, run.inputs).at("out"));
    }
    double largest = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      const lathe::Array &y = results["cpu"][i], &expected = results["reference"][i];
      double sum = 0;
      for (int64_t j = 0; j < y.size(); ++j) {
        sum += std::abs(y.at(j));
        const double difference = std::abs(y.at(j) - expected.at(j));
        largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
      }
      std::printf("%s %s: first %.3f, last %.3f, mean size %.3f\n", runs[i].entry.c_str(),
                  lathe::describe(y.dtype(), y.shape()).c_str(), y.at(0), y.at(y.size() - 1),
                  sum / double(y.size()));
    }
    const bool same = largest < 1e-4;
    std::printf("reference and cpu %s\n", same ? "agree" : "differ");
    return same ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
