// SPDX-License-Identifier: Apache-2.0
// Runs the program with the runtime alone: rows of a softmax sum to one.
#include <cmath>
#include <cstdio>

#include <lathe/runtime/error.h>
#include <lathe/runtime/session.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    lathe::Session session(lathe::Program::open(argv[1]));
    lathe::Array x(lathe::DType::F32, {3, 16});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i % 5));
    lathe::Array y = session.run("forward", {{"x", x}}).at("y");
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < 16; ++i) sum += y.at(row * 16 + i);
      if (!(std::abs(sum - 1) < 1e-5)) {
        std::fprintf(stderr, "row %d sums to %g\n", int(row), sum);
        return 1;
      }
    }
    // exp(2) between neighbours whose inputs differ by one.
    double ratio = y.at(1) / y.at(0);
    if (!(std::abs(ratio - std::exp(2)) < 1e-3)) {
      std::fprintf(stderr, "neighbours differ by the factor %g\n", ratio);
      return 1;
    }
    std::puts("the program runs without LLVM");
  } catch (const lathe::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
