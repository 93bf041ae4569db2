// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of tests/cuda_kernels with inputs and the answer of a float64 loop.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cuda/hostexec/host_driver.h"
#include "lathe/runtime/dtype.h"
#include "tests/closeness.h"

namespace lathe::cuda {

inline std::string kernelText(const std::string& name) {
  std::ifstream file(std::string(LATHE_TEST_DATA) + "/cuda_kernels/" + name + ".cu");
  if (!file) throw std::runtime_error("no kernel " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline LaunchConfig configOf(uint32_t x, uint32_t y, uint32_t threads, size_t shared = 0) {
  LaunchConfig c;
  c.grid[0] = x;
  c.grid[1] = y;
  c.threads = threads;
  c.sharedBytes = shared;
  return c;
}

/// Relative error; infinite if one of the two is no number.
inline double off(double got, double want, double scale) { return errorOf(got, want) / scale; }

/// A kernel's launches on one driver, and how far its outputs are from the answer.
class Case {
 public:
  explicit Case(Driver& driver) : driver_(driver) {}
  ~Case() {
    for (void* p : owned_) driver_.release(p);
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  float random() { return std::normal_distribution<float>(0, 1)(rng_); }
  unsigned bits() { return unsigned(rng_()); }
  template <class T>
  T* input(const std::vector<T>& values, const char* name) {
    T* p = allocate<T>(values.size(), name);
    driver_.upload(p, values.data(), values.size() * sizeof(T));
    return p;
  }
  /// Before each run every byte is `fill`: NaN, or zero.
  template <class T>
  T* output(size_t count, const char* name, int fill = 0xff) {
    T* p = allocate<T>(count, name);
    reset_.push_back([this, p, count, fill] {
      const std::vector<char> bytes(count * sizeof(T), char(fill));
      driver_.upload(p, bytes.data(), bytes.size());
    });
    return p;
  }
  std::vector<uint16_t> bf16s(size_t n) {
    std::vector<uint16_t> v(n);
    for (uint16_t& x : v) x = floatToBf16(random());
    return v;
  }
  std::vector<float> floats(size_t n, float scale = 1) {
    std::vector<float> v(n);
    for (float& x : v) x = scale * random();
    return v;
  }
  template <class... A>
  void launch(LaunchConfig config, A... values) {
    launches_.push_back([=](Driver& driver, Driver::Function f) {
      void* arguments[] = {const_cast<void*>(static_cast<const void*>(&values))...};
      driver.launch(f, config, arguments);
    });
  }
  template <class T>
  std::vector<T> read(const T* p, size_t n) {
    std::vector<T> v(n);
    driver_.download(v.data(), p, n * sizeof(T));
    return v;
  }

  /// The worst error of the outputs, and what is allowed.
  std::function<double()> error;
  double tolerance = 0;

  double run(Driver::Function f) {
    for (auto& reset : reset_) reset();
    for (auto& each : launches_) each(driver_, f);
    driver_.synchronize();
    return error();
  }

 private:
  template <class T>
  T* allocate(size_t count, const char* name) {
    owned_.push_back(driver_.allocate(count * sizeof(T), name));
    return static_cast<T*>(owned_.back());
  }

  Driver& driver_;
  std::mt19937 rng_{7};
  std::vector<void*> owned_;
  std::vector<std::function<void()>> reset_;
  std::vector<std::function<void(Driver&, Driver::Function)>> launches_;
};

inline void siluCase(Case& c) {
  const int n = 16 * 1024 + 8;
  auto g = c.bf16s(n), u = c.bf16s(n);
  auto* out = c.output<uint16_t>(n, "out");
  c.launch(configOf((n / 8 + 255) / 256, 1, 256), c.input(g, "gate"), c.input(u, "up"), out, n);
  c.tolerance = 5e-3;
  c.error = [=, &c] {
    auto o = c.read(out, n);
    double worst = 0;
    for (size_t i = 0; i < o.size(); ++i) {
      const double a = bf16ToFloat(g[i]), want = a / (1 + std::exp(-a)) * bf16ToFloat(u[i]);
      worst = std::max(worst, off(bf16ToFloat(o[i]), want, std::abs(want) + 1e-2));
    }
    return worst;
  };
}

inline void rmsNormCase(Case& c, bool warpPerRow) {
  const int rows = 16, cols = 2048;
  const float eps = 1e-5f;
  auto x = c.bf16s(size_t(rows) * cols), w = c.bf16s(cols);
  auto *xs = c.input(x, "x"), *ws = c.input(w, "w");
  auto* out = c.output<uint16_t>(size_t(rows) * cols, "out");
  if (warpPerRow)
    c.launch(configOf(rows / 4, 1, 128), xs, ws, out, rows, cols, eps);
  else
    c.launch(configOf(rows, 1, 256), xs, ws, out, eps);
  c.tolerance = 5e-3;
  c.error = [=, &c] {
    auto o = c.read(out, size_t(rows) * cols);
    double worst = 0;
    for (size_t r = 0; r < size_t(rows); ++r) {
      double s = 0;
      for (size_t i = 0; i < size_t(cols); ++i) s += std::pow(bf16ToFloat(x[r * cols + i]), 2);
      for (size_t i = 0; i < size_t(cols); ++i) {
        const double want =
            bf16ToFloat(x[r * cols + i]) / std::sqrt(s / cols + eps) * bf16ToFloat(w[i]);
        worst = std::max(worst, off(bf16ToFloat(o[r * cols + i]), want, std::abs(want) + 1e-2));
      }
    }
    return worst;
  };
}

inline void softmaxCase(Case& c) {
  const int rows = 12, cols = 1000;
  const float scale = 0.7f;
  auto x = c.floats(size_t(rows) * cols, 3);
  std::vector<uint8_t> mask(x.size());
  // One row is masked as a whole.
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i / cols != 5 && c.bits() % 4 != 0;
  auto* out = c.output<float>(x.size(), "out");
  c.launch(configOf(rows, 1, 128), c.input(x, "x"), c.input(mask, "mask"), out, cols, scale);
  c.tolerance = 2e-6;
  c.error = [=, &c] {
    auto o = c.read(out, x.size());
    double worst = 0;
    for (size_t r = 0; r < size_t(rows); ++r) {
      auto weight = [&](size_t i) {
        return mask[r * cols + i] ? std::exp(scale * double(x[r * cols + i])) : 0;
      };
      double s = 0;
      for (size_t i = 0; i < size_t(cols); ++i) s += weight(i);
      for (size_t i = 0; i < size_t(cols); ++i)
        worst = std::max(worst, off(o[r * cols + i], s == 0 ? 0 : weight(i) / s, 1));
    }
    return worst;
  };
}

inline void attentionCase(Case& c) {
  const int length = 256, heads = 2;
  const float scale = 0.125f;
  const size_t n = size_t(heads) * length * 64;
  auto q = c.bf16s(n), k = c.bf16s(n), v = c.bf16s(n);
  std::vector<double> want(n);
  for (size_t h = 0; h < size_t(heads); ++h)
    for (size_t i = 0; i < size_t(length); ++i) {
      const size_t row = (h * length + i) * 64;
      double sum = 0;
      for (size_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (size_t d = 0; d < 64; ++d)
          dot += double(bf16ToFloat(q[row + d])) * bf16ToFloat(k[(h * length + j) * 64 + d]);
        const double p = std::exp(dot * scale);
        sum += p;
        for (size_t d = 0; d < 64; ++d)
          want[row + d] += p * bf16ToFloat(v[(h * length + j) * 64 + d]);
      }
      for (size_t d = 0; d < 64; ++d) want[row + d] /= sum;
    }
  auto* out = c.output<uint16_t>(n, "o");
  c.launch(configOf(length / 64, heads, 128, 40960), c.input(q, "q"), c.input(k, "k"),
           c.input(v, "v"), out, length, scale);
  c.tolerance = 1.5e-2;
  c.error = [=, &c] {
    auto o = c.read(out, n);
    double worst = 0;
    for (size_t i = 0; i < n; ++i)
      worst = std::max(worst, off(bf16ToFloat(o[i]), want[i], std::abs(want[i]) + 0.5));
    return worst;
  };
}

inline void gemvCase(Case& c) {
  const int n = 64, k = 2048, splits = 4;
  auto w = c.bf16s(size_t(n) * k), x = c.bf16s(k);
  auto *ws = c.input(w, "w"), *xs = c.input(x, "x");
  auto* y = c.output<float>(n, "y");
  auto* parts = c.output<float>(size_t(n) * splits, "ws");
  auto* counter = c.output<uint32_t>(n / 8, "counter", 0);
  c.launch(configOf(n / 8, splits, 256), ws, xs, y, parts, counter, n, k);
  c.tolerance = 2e-5;
  c.error = [=, &c] {
    auto o = c.read(y, n);
    double worst = 0;
    for (size_t r = 0; r < size_t(n); ++r) {
      double s = 0;
      for (size_t i = 0; i < size_t(k); ++i)
        s += double(bf16ToFloat(w[r * k + i])) * bf16ToFloat(x[i]);
      worst = std::max(worst, off(o[r], s, std::abs(s) + 1));
    }
    return worst;
  };
}

// Two launches: the second may overlap the first and reads what it wrote.
inline void bulkCase(Case& c) {
  const int tiles = 9;
  const size_t n = size_t(tiles) * 1024;
  auto in = c.floats(n);
  auto *between = c.output<float>(n, "between"), *out = c.output<float>(n, "out");
  LaunchConfig config = configOf(1, 1, 128);
  c.launch(config, c.input(in, "in"), between, tiles);
  config.overlaps = true;
  c.launch(config, between, out, tiles);
  c.error = [=, &c] {
    auto o = c.read(out, n);
    double worst = 0;
    for (size_t i = 0; i < n; ++i) worst = std::max(worst, off(o[i], 4.0 * in[i], 1));
    return worst;
  };
}

inline void transposeCase(Case& c) {
  const int n = 128;
  auto in = c.floats(size_t(n) * n);
  auto* out = c.output<float>(in.size(), "out");
  c.launch(configOf(n / 64, n / 32, 64), c.input(in, "in"), out, n);
  c.error = [=, &c] {
    auto o = c.read(out, in.size());
    double worst = 0;
    for (size_t i = 0; i < in.size(); ++i)
      worst = std::max(worst, off(o[i], in[i % n * n + i / n], 1));
    return worst;
  };
}

inline const std::vector<std::pair<std::string, std::function<void(Case&)>>>& hostCases() {
  static const std::vector<std::pair<std::string, std::function<void(Case&)>>> cases = {
      {"silu_mul", siluCase},
      {"rmsnorm_warp", [](Case& c) { rmsNormCase(c, true); }},
      {"rmsnorm_block", [](Case& c) { rmsNormCase(c, false); }},
      {"softmax_mask", softmaxCase},
      {"attention", attentionCase},
      {"gemv_splitk", gemvCase},
      {"bulk_scale", bulkCase},
      {"transpose", transposeCase},
  };
  return cases;
}

/// The worst error over the allowed one; throws what the driver throws.
inline double runCase(Driver& driver, Driver::Function f, const std::string& kernel) {
  for (const auto& [name, make] : hostCases()) {
    if (name != kernel) continue;
    Case c(driver);
    make(c);
    const double error = c.run(f);
    return c.tolerance > 0 ? error / c.tolerance : error * 1e30;
  }
  throw std::runtime_error("no case " + kernel);
}

}  // namespace lathe::cuda
