// SPDX-License-Identifier: Apache-2.0
// A fusion as a builder pattern: x * sigmoid(x) * up becomes one op.
#include "trial.h"

using namespace lathe;

PatternLibrary myFusions(mlir::MLIRContext* context) {
  PatternLibrary library;
  addPattern(library, context, "my_glu", [](DagPattern& p) {
    Tensor x = p.any(), up = p.any();
    Tensor active = p.anyOf({x * sigmoid(x), x / (exp(-x) + 1.0)});
    p.root(active * up);
    p.replaceWith(fused::glu(x, up));
  });
  return library;
}

int main() {
  try {
    Graph g("gates");
    Dim rows = g.dim("rows", 1, 64);
    Tensor x = g.input("x", DType::F32, {rows, 64});
    Tensor gate = matmul(x, g.weight("gate", DType::F32, {64, 96}));
    Tensor up = matmul(x, g.weight("up", DType::F32, {64, 96}));
    g.output("silu", up * (gate * sigmoid(gate)));  // a hit, whatever the order
    g.output("tanh", up * (gate * tanh(gate)));     // a near miss: another activation
    Tensor kept = up * sigmoid(up);                 // a near miss: somebody else needs it
    g.output("kept", kept);
    g.output("used", kept * gate);
    return example::tryOut(g, {.pipeline = {.patterns = myFusions}}, "my_glu", 1, 1e-6,
                           {{"x", example::pattern({3, 64})}});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
