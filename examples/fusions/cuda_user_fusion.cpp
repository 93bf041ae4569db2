// SPDX-License-Identifier: Apache-2.0
// A fusion that Lathe does not have gets a CUDA kernel, and its author writes no line of CUDA.
// Features gated by their own softmax, recorded without care for overflow, become the form that
// subtracts the largest first; the CUDA backend prints one kernel for it. No GPU is needed: the
// kernel's text runs on this CPU.
#include "trial.h"

using namespace lathe;

PatternLibrary selfGate(mlir::MLIRContext* context) {
  PatternLibrary library;
  addPattern(library, context, "self_gate", [](DagPattern& p) {
    Tensor x = p.any();
    Tensor scale = p.constantWhere("a positive scale", [](double s) { return s > 0; });
    Tensor risky = exp(x * scale);
    p.root(x * (risky / reduceSum(risky, {-1}, true)));
    Tensor safe = exp((x - reduceMax(x, {-1}, true)) * scale);
    p.replaceWith(x * (safe / reduceSum(safe, {-1}, true)));
  });
  return library;
}

int main() {
  try {
    Graph g("gated");
    Dim rows = g.dim("rows", 1, 64);
    Tensor x = g.input("x", DType::F32, {rows, 384});
    Tensor e = exp(x * 0.5);
    g.output("y", x * (e / reduceSum(e, {-1}, true)));

    CompileRecord record;
    record.wantCode = true;
    Session onCuda(
        compile(g, {.backend = "cuda", .pipeline = {.patterns = selfGate}, .record = &record}),
        {.device = "host"});
    int kernels = 0;
    for (const auto& code : record.code) {
      if (code.language != "cuda") continue;
      std::printf("%s", code.text.c_str());
      ++kernels;
    }
    Session onReference(compile(g, {.backend = "reference", .stopAfterRewrite = 0}));
    double worst = 0;
    for (int64_t count : {1, 3, 33}) {
      const Arrays inputs{{"x", example::pattern({count, 384})}};
      const Array got = onCuda.run("forward", inputs).at("y");
      const Array want = onReference.run("forward", inputs).at("y");
      for (int64_t i = 0; i < want.size(); ++i) {
        const double difference = std::abs(got.at(i) - want.at(i));
        worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
      }
    }
    // exp(0.5 * 300) is no f32: only the kernel's form has a result.
    Array large = example::pattern({1, 384});
    for (int64_t i = 0; i < large.size(); ++i) large.set(i, 300 * large.at(i));
    const Array y = onCuda.run("forward", {{"x", large}}).at("y");
    bool isFinite = true;
    for (int64_t i = 0; i < y.size(); ++i) isFinite = isFinite && std::isfinite(y.at(i));
    std::printf("kernels: %d, largest difference: %g, large values: %s\n", kernels, worst,
                isFinite ? "finite" : "lost");
    return kernels == 1 && worst <= 1e-6 && isFinite ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
