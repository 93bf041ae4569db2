// SPDX-License-Identifier: Apache-2.0
// A pass that is compiled into the program: registered once, then named in PipelineOptions::passes.
#include "round_weights.h"
#include "trial.h"

using namespace lathe;

int main() {
  try {
    mlir::PassRegistration<RoundWeights>();
    Graph g("layer");
    Tensor x = g.input("x", DType::F32, {3, 64});
    g.output("y", matmul(x, g.weight("w", DType::F32, {64, 32})));
    return example::tryOut(g, {.pipeline = {.passes = "example-round-weights"}},
                           "pass example-round-weights", 1, 1e-2,
                           {{"x", example::pattern({3, 64})}});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
