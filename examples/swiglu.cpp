// SPDX-License-Identifier: Apache-2.0
// Builds a SiLU-gated MLP, compiles it once and runs it on two batch sizes.
#include <cstdio>

#include <lathe/lathe.h>

using namespace lathe;

int main() {
  try {
    Graph g("swiglu");
    Dim batch = g.dim("batch", 1, 64);
    Tensor x = g.input("x", DType::F32, {batch, 64});
    g.output("y", nn::SwiGLU(g, "mlp", /*dModel=*/64, /*dHidden=*/172)(x));

    Session session(compile(g));
    session.bindRandomWeights(/*seed=*/1);
    for (int64_t rows : {1, 3}) {
      Array input(DType::F32, {rows, 64});
      for (int64_t i = 0; i < input.size(); ++i) input.set(i, double(i % 7) - 3);
      Array y = session.run("forward", {{"x", input}}).at("y");
      std::printf("y %s starts with %.4f %.4f %.4f\n", describe(y.dtype(), y.shape()).c_str(),
                  y.at(0), y.at(1), y.at(2));
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
