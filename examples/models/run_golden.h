// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a graph on weights and inputs of a file and compares with the result that it holds.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <lathe/lathe.h>

/// A program's main: argv[1] is a file of scripts/make_example_goldens.py. 0 if both backends give
/// Hugging Face's numbers.
inline int runGolden(int argc, char** argv, const lathe::Graph& graph) {
  using namespace lathe;
  try {
    if (argc != 2)
      throw Error(ErrorCode::InvalidArgument,
                  "usage: PROGRAM tests/golden/models/NAME.safetensors");
    const Checkpoint checkpoint = Checkpoint::open(argv[1]);
    Arrays inputs;
    std::vector<std::string> others = {"expected"};
    for (const std::string& name : checkpoint.names())
      if (name.starts_with("input.")) {
        inputs[name.substr(6)] = *checkpoint.find(name);
        others.push_back(name);
      }
    const Array expected = checkpoint.find("expected").value();
    for (const char* backend : {"reference", "cpu"}) {
      Session session(compile(graph, {.backend = backend}));
      session.bindWeights(checkpoint, others);
      const Array y = session.run("forward", inputs).at("out");
      double error = 0, largest = 0;
      for (int64_t i = 0; i < expected.size(); ++i)
        largest = std::max(largest, std::abs(expected.at(i)));
      bool isSame = y.shape() == expected.shape();
      for (int64_t i = 0; isSame && i < y.size(); ++i) {
        const double difference = std::abs(y.at(i) - expected.at(i));
        isSame = difference < 1e-6 * largest;  // not so for NaN
        error = std::max(error, difference);
      }
      std::printf("%s: %s, largest error %.1e of %.2f: %s\n", backend,
                  describe(y.dtype(), y.shape()).c_str(), error, largest,
                  isSame ? "as Hugging Face" : "WRONG");
      if (!isSame) return 1;
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
