// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products against float64 loops over the definitions of lathe.linear and lathe.matmul.
#include <cmath>
#include <limits>
#include <random>

#include "backends/cuda/lowering/matmul/gemm_kernels.h"
#include "tests/closeness.h"
#include "tests/unit/cuda/element_bytes.h"
#include "tests/unit/cuda/kernel_set_run.h"

namespace lathe::cuda {

inline std::vector<double> randomValues(int64_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<size_t>(count));
  for (double& e : x) e = isFloat(dtype) ? normal(random) : double(int64_t(random() % 201) - 100);
  return decoded(encoded(x, dtype), dtype);
}

/// Of sums of `k` terms whose magnitudes sum to `magnitude`, accumulated in f32 (f64 for f64).
inline double toleranceOf(DType dtype, double want, double magnitude) {
  const double sum = dtype == DType::F64 ? 1e-14 : 1e-6;
  const double last = dtype == DType::BF16 ? 1 / 256.0 : dtype == DType::F16 ? 1 / 2048.0 : sum;
  return std::abs(want) * last + magnitude * sum + 1e-7;
}

inline void expectNear(const std::vector<double>& got, const std::vector<double>& want,
                       const std::vector<double>& magnitude, DType dtype, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  int wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 4; ++i) {
    if (isNear(got[i], want[i], toleranceOf(dtype, want[i], magnitude[i]))) continue;
    ++wrong;
    ADD_FAILURE() << what << ": element " << i << " is " << got[i] << ", expected " << want[i];
  }
}

inline double activated(Activation kind, double x) {
  if (kind == Activation::silu) return x / (1 + std::exp(-x));
  if (kind == Activation::gelu) return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
  if (kind == Activation::gelu_tanh)
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (kind == Activation::relu) return std::isnan(x) || x > 0 ? x : 0;
  return x;
}

/// lathe.linear with random operands: m is the symbol "m", n and k are numbers.
struct LinearCase {
  DType dtype = DType::BF16;
  int64_t n = 64, k = 64;
  Activation activation = Activation::none;
  bool bias = false, residual = false, inOut = false;

  /// Buffers: x, w, bias, residual, result.
  MatmulKernel kernel() const {
    MatmulKernel p;
    p.name = "product";
    p.dtype = dtype;
    p.m = DimExpr::symbol("m");
    p.n = n;
    p.k = k;
    p.transposedB = inOut;
    p.hooks = linearHooks(p, 4, activation, bias ? 2 : -1, residual ? 3 : -1);
    return p;
  }
};

inline KernelSet only(const MatmulKernel& matmul, const MatmulChoice& choice, int64_t rows) {
  MatmulVariant made = printMatmul(matmul, choice, rows, matmul.name);
  return {{made.text}, {made.variant}};
}

inline host::Options schedule(std::string_view text) { return host::parseOptions(text); }

/// Runs it for `m` rows and compares. `special` plants infinities and a NaN.
inline void expectLinear(KernelSetRun& run, const LinearCase& c, int64_t m,
                         const host::Options& options, bool special = false) {
  std::vector<double> x = randomValues(m * c.k, c.dtype, 1),
                      w = randomValues(c.n * c.k, c.dtype, 2);
  const std::vector<double> bias = randomValues(c.n, c.dtype, 3),
                            residual = randomValues(m * c.n, c.dtype, 4);
  if (special) {
    x[size_t(c.k / 2)] = INFINITY;
    x[x.size() - 1] = NAN;
  }
  std::vector<double> want(size_t(m * c.n)), magnitude(want.size());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0, all = 0;
      for (int64_t p = 0; p < c.k; ++p) {
        const double term = x[size_t(i * c.k + p)] * w[size_t(c.inOut ? p * c.n + j : j * c.k + p)];
        sum += term;
        all += std::abs(term);
      }
      if (c.bias) sum += bias[size_t(j)];
      sum = activated(c.activation, sum);
      if (c.residual) sum += residual[size_t(i * c.n + j)];
      want[size_t(i * c.n + j)] = sum;
      magnitude[size_t(i * c.n + j)] = all;
    }
  std::vector<RunBuffer> buffers(5);
  buffers[0].bytes = encoded(x, c.dtype);
  buffers[1].bytes = encoded(w, c.dtype);
  buffers[2].bytes = encoded(bias, c.dtype);
  buffers[3].bytes = encoded(residual, c.dtype);
  buffers[4].bytes.resize(want.size() * sizeOf(c.dtype));
  buffers[4].isOutput = true;
  run.run(buffers, {{"m", m}}, options);
  expectNear(decoded(buffers[4].bytes, c.dtype), want, magnitude, c.dtype,
             run.what() + ", " + std::to_string(m) + " rows, n " + std::to_string(c.n) + ", k " +
                 std::to_string(c.k));
}

}  // namespace lathe::cuda
