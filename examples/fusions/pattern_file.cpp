// SPDX-License-Identifier: Apache-2.0
// Fusions from a file: no compiler, no rebuild. Usage: pattern_file FILE NAME
#include "trial.h"

using namespace lathe;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    Graph g("gates");
    Tensor x = g.input("x", DType::F32, {3, 64});
    Tensor gate = matmul(x, g.weight("gate", DType::F32, {64, 96}));
    Tensor up = matmul(x, g.weight("up", DType::F32, {64, 96}));
    g.output("silu", up * (gate * sigmoid(gate)));
    g.output("tanh", up * (gate * tanh(gate)));
    return example::tryOut(g, {.pipeline = {.patternFiles = {argv[1]}}}, argv[2], 1, 1e-6,
                           {{"x", example::pattern({3, 64})}});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
