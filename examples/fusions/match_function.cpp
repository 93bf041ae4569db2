// SPDX-License-Identifier: Apache-2.0
// A replacement that decides: x / c becomes x * (1 / c) where the reciprocal is exact.
#include <lathe/match.h>

#include "trial.h"

using namespace lathe;

PatternLibrary exactReciprocals(mlir::MLIRContext* context) {
  PatternLibrary library;
  addPattern(library, context, "exact_reciprocal", [](DagPattern& p) {
    Tensor x = p.any(), c = p.constantWhere("a divisor", [](double value) { return value != 0; });
    p.root(x / c);
    p.replaceWith([=](Match& m) {
      int exponent = 0;
      if (std::frexp(m.constant(c), &exponent) != 0.5)
        return m.decline("the divisor is no power of two");
      return m.make("lathe.mul", {m[x], m.scalar(1 / m.constant(c), m[x])});
    });
  });
  return library;
}

int main() {
  try {
    Graph g("quotients");
    Tensor x = g.input("x", DType::F32, {3, 64});
    g.output("eighth", exp(x / 8.0));
    g.output("tenth", exp(x / 10.0));  // left alone, with the reason
    return example::tryOut(g, {.pipeline = {.patterns = exactReciprocals}}, "exact_reciprocal", 1,
                           0, {{"x", example::pattern({3, 64})}});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
