// SPDX-License-Identifier: Apache-2.0
// Prints one block of a transformer as it was recorded, after the fusion passes and as the program
// that the runtime executes; then the recorded graph in Graphviz form.
#include <cstdio>

#include <lathe/lathe.h>

using namespace lathe;

int main() {
  try {
    Graph g("block");
    Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 128);
    Tensor x = g.input("x", DType::F32, {batch, seq, 64});
    nn::TransformerBlock block(g, "blocks.0",
                               {.attention = {.dModel = 64,
                                              .heads = 4,
                                              .kvHeads = 2,
                                              .rope = nn::RopeOptions{.maxPositions = 128}},
                                .dHidden = 172});
    g.output("y", block(x));

    for (const char* stage : {"recorded", "fused", "program"})
      std::printf("// ---- %s ----\n%s\n", stage, irAt(g, stage).c_str());
    std::printf("// ---- recorded, for `dot -Tsvg` ----\n%s\n", g.graphviz().c_str());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
