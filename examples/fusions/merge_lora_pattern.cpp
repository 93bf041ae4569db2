// SPDX-License-Identifier: Apache-2.0
// A fusion that Lathe does not have: a low-rank adapter is merged into the weight that it adapts.
// x W' + s (x A') B' becomes x (W + s B A)': two thin products per call become weight-only
// arithmetic, which moves into the load function and runs once.
#include "trial.h"

using namespace lathe;

PatternLibrary mergeLora(mlir::MLIRContext* context) {
  PatternLibrary library;
  addPattern(library, context, "merge_lora", [](DagPattern& p) {
    Tensor x = p.any();
    Tensor w = p.weight(p.any()), a = p.weight(p.any()), b = p.weight(p.any());
    auto turned = [&](const Tensor& t) { return p.mayEscape(transpose(t, {1, 0})); };
    Tensor scale = p.constantWhere("a constant scale", [](double s) { return s != 0; });
    Tensor low = matmul(matmul(x, turned(a)), turned(b));
    p.root(matmul(x, turned(w)) + low * scale);
    p.replaceWith(matmul(x, transpose(w + matmul(b, a) * scale, {1, 0})));
  });
  return library;
}

// An adapted layer; `a` is [rank, in], `b` [out, rank].
Tensor adapted(Graph& g, const Tensor& x, const std::string& name, const Tensor& a) {
  Tensor w = g.weight(name + ".weight", DType::F32, {48, 64});
  Tensor b = g.weight(name + ".lora_b", DType::F32, {48, 8});
  Tensor low = matmul(matmul(x, transpose(a, {1, 0})), transpose(b, {1, 0}));
  return matmul(x, transpose(w, {1, 0})) + low * 2.0;
}

int main() {
  try {
    Graph g("adapters");
    Dim rows = g.dim("rows", 1, 64);
    Tensor x = g.input("x", DType::F32, {rows, 64});
    g.output("q", adapted(g, x, "q", g.weight("q.lora_a", DType::F32, {8, 64})));
    // Left alone: this adapter comes with the request.
    g.output("v", adapted(g, x, "v", g.input("lora_a", DType::F32, {8, 64})));
    return example::tryOut(
        g, {.pipeline = {.patterns = mergeLora}}, "merge_lora", 1, 1e-5,
        {{"x", example::pattern({3, 64})}, {"lora_a", example::pattern({8, 64})}});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
