// SPDX-License-Identifier: Apache-2.0
// A pass from a plugin. Usage: load_plugin ROUND_WEIGHTS_PLUGIN
#include "trial.h"

using namespace lathe;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    Graph g("layer");
    Tensor x = g.input("x", DType::F32, {3, 64});
    g.output("y", matmul(x, g.weight("w", DType::F32, {64, 32})));
    return example::tryOut(
        g, {.pipeline = {.plugins = {argv[1]}, .passes = "example-round-weights"}},
        "pass example-round-weights", 1, 1e-2, {{"x", example::pattern({3, 64})}});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
