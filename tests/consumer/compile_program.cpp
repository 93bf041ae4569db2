// SPDX-License-Identifier: Apache-2.0
// Builds a graph, compiles it for every ISA tier with a fusion of its own, without MLIR's headers,
// and writes it as a program.
#include <cstdio>

#include <lathe/lathe.h>

lathe::PatternLibrary fusions(mlir::MLIRContext* context) {
  lathe::PatternLibrary library;
  lathe::addPattern(library, context, "doubled", [](lathe::DagPattern& p) {
    lathe::Tensor x = p.any();
    p.root(x * 2.0);
    p.replaceWith(x + x);
  });
  return library;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    lathe::Graph g("consumer");
    lathe::Dim rows = g.dim("rows", 1, 64);
    lathe::Tensor x = g.input("x", lathe::DType::F32, {rows, 16});
    g.output("y", lathe::nn::softmax(x * 2.0));
    lathe::CompileRecord record;
    lathe::compile(g, {.backendOptions = {.allTiers = true},
                       .pipeline = {.patterns = fusions},
                       .record = &record})
        .save(argv[1]);
    for (const auto& rewrite : record.rewrites)
      if (rewrite.what == "doubled") return 0;
    std::fprintf(stderr, "the fusion was not applied\n");
    return 1;
  } catch (const lathe::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
