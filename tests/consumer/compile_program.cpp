// SPDX-License-Identifier: Apache-2.0
// Builds a graph, compiles it for every ISA tier and writes it as a program.
#include <cstdio>

#include <lathe/lathe.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    lathe::Graph g("consumer");
    lathe::Dim rows = g.dim("rows", 1, 64);
    lathe::Tensor x = g.input("x", lathe::DType::F32, {rows, 16});
    g.output("y", lathe::nn::softmax(x * 2.0));
    lathe::compile(g, {.allTiers = true}).save(argv[1]);
  } catch (const lathe::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
