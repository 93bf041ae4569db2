// SPDX-License-Identifier: Apache-2.0
// Any bytes give a graph or an error that names the file.
#include <lathe/lathe.h>

#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> lathe::fuzz::seeds() {
  Graph g;
  const Dim rows = g.dim("rows", 1, 8);
  g.state("bias", DType::F32, {5});
  Tensor x = g.input("x", DType::F32, {rows, 4}), w = g.weight("w", DType::F32, {5, 4});
  g.writeState("bias", g.readState("bias") + reduceMean(matmul(x, swapAxes(w, 0, 1)), {0}));
  g.output("y", nn::softmax(tanh(x) * 0.5));
  return {g.text()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    lathe::Graph::parse({reinterpret_cast<const char*>(data), size}, "fuzz.mlir");
  } catch (const lathe::Error& e) {
    lathe::fuzz::checkNamed(e, "fuzz.mlir:");
  }
  return 0;
}
