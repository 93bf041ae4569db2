// SPDX-License-Identifier: Apache-2.0
#include "runtime/status_word.h"
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionRows : public RegionTest {};

std::vector<double> softmaxRow(const Array& x, int64_t row, int64_t n) {
  double top = -kInf, sum = 0;
  std::vector<double> e(n);
  for (int64_t j = 0; j < n; ++j) top = std::max(top, x.at(row * n + j));
  for (int64_t j = 0; j < n; ++j) sum += e[j] = std::exp(x.at(row * n + j) - top);
  for (double& v : e) v /= sum;
  return e;
}

TEST_P(RegionRows, TakesSoftmaxOfRowsWithMaskedEntries) {
  for (std::string policy : {"nan", "zero", "uniform"}) {
    auto k = compile(
        "func.func @f(%x: f32[b, m, n]) -> f32[b, m, n] { %0 = lathe.softmax %x axis 2 "
        "masked_row " +
        policy + " : f32[b, m, n]\n return %0 : f32[b, m, n] }");
    // On a CPU the exponentials wait in scratch for their sum.
    if (GetParam().tier) {
      EXPECT_NE(k.kernel().scratchBytes, "0");
    }
    for (int64_t n : kColumns) {
      Array x = floats({2, 3, n}, DType::F32, 20);
      for (int64_t i = 0; i < x.size(); ++i)
        if (i % 5 == 3 || (i >= n && i < 2 * n)) x.set(i, -kInf);
      for (bool inPlace : {false, true}) {
        auto y = k.run({x}, {{"b", 2}, {"m", 3}, {"n", n}}, inPlace);
        expectNear(
            y[0],
            [&](int64_t i) {
              double empty = policy == "nan" ? NAN : policy == "zero" ? 0 : 1. / double(n);
              bool visible = false;
              for (int64_t j = 0; j < n; ++j) visible |= x.at(i / n * n + j) > -kInf;
              return visible ? softmaxRow(x, i / n, n)[i % n] : empty;
            },
            6e-6, 1e-37);
      }
    }
  }
}

// Like a softmax, but shifted by the largest of all rows: a row far below has a sum so small that
// its reciprocal is no number.
TEST_P(RegionRows, DividesBySumsThatAreNearZero) {
  auto k = compile(R"(func.func @f(%x: f32[m, n]) -> f32[m, n] {
    %top = lathe.reduce_max %x axes [0, 1] keep_dims true : f32[m, n]
    %d = lathe.sub %x, %top : f32[m, n], f32[1, 1]
    %e = lathe.exp %d : f32[m, n]
    %sum = lathe.reduce_sum %e axes [1] keep_dims true : f32[m, n]
    %y = lathe.div %e, %sum : f32[m, n], f32[m, 1]
    return %y : f32[m, n]
  })");
  for (int64_t n : {1, 7, 33}) {
    Array x(DType::F32, {4, n});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, i < 3 * n ? double(i / n) : -90);
    expectNear(k.run({x}, {{"m", 4}, {"n", n}})[0], [&](int64_t) { return 1 / double(n); }, 1e-4);
  }
}

TEST_P(RegionRows, LetsANanReachEveryElementOfItsSoftmaxRow) {
  auto k = compile(
      "func.func @f(%x: f32[2, n]) -> f32[2, n] { %0 = lathe.softmax %x axis 1 : f32[2, n]\n "
      "return %0 : f32[2, n] }");
  Array x = floats({2, 70});
  x.set(3, NAN);
  auto y = k.run({x}, {{"n", 70}});
  for (int i = 0; i < 140; ++i) EXPECT_EQ(std::isnan(y[0].at(i)), i < 70) << i;
}

TEST_P(RegionRows, NormalizesByRootMeanSquare) {
  for (std::string rounding : {"after_gain", "before_gain"})
    for (auto [t, dtype] :
         {std::pair{std::string("f32"), DType::F32}, {"bf16", DType::BF16}, {"f16", DType::F16}}) {
      std::string x = t + "[b, s, n]";
      auto k = compile("func.func @f(%x: " + x + ", %g: " + t + "[n], %r: " + x + ") -> (" + x +
                       ", " + x + ") {" + "%h = lathe.add %x, %r : " + x + ", " + x + "\n" +
                       "%0 = lathe.rms_norm %h, %g epsilon 1.0e-5 rounding " + rounding + " : " +
                       x + ", " + t + "[n]\n" + "return %h, %0 : " + x + ", " + x + "}");
      for (int64_t n : {1, 7, 33, 64, 257}) {
        Array a = floats({2, 3, n}, dtype), r = floats({2, 3, n}, dtype), g = floats({n}, dtype);
        for (bool inPlace : {false, true}) {
          auto y = k.run({a, g, r}, {{"b", 2}, {"s", 3}, {"n", n}}, inPlace);
          expectNear(
              y[1],
              [&](int64_t i) {
                double squares = 0;
                auto h = [&](int64_t j) { return a.at(j) + r.at(j); };
                for (int64_t j = 0; j < n; ++j) squares += h(i / n * n + j) * h(i / n * n + j);
                double v = h(i) / std::sqrt(squares / double(n) + 1e-5);
                if (rounding == "before_gain") v = roundTo(dtype, v);
                return v * g.at(i % n);
              },
              dtype == DType::F32   ? 1e-6
              : dtype == DType::F16 ? 2e-3
                                    : 1.2e-2,
              1e-6);
        }
      }
    }
}

TEST_P(RegionRows, NormalizesByMeanAndVariance) {
  auto k = compile(R"(func.func @f(%x: bf16[m, n], %g: f32[n], %b: f32[n]) -> bf16[m, n] {
    %w = lathe.cast %x to f32 : bf16[m, n]
    %mean = lathe.reduce_mean %w axes [1] keep_dims true : f32[m, n]
    %d = lathe.sub %w, %mean : f32[m, n], f32[m, 1]
    %sq = lathe.mul %d, %d : f32[m, n], f32[m, n]
    %var = lathe.reduce_mean %sq axes [1] keep_dims true : f32[m, n]
    %eps = lathe.constant dense<1.0e-5> : tensor<f32>
    %ve = lathe.add %var, %eps : f32[m, 1], f32[]
    %inv = lathe.rsqrt %ve : f32[m, 1]
    %y = lathe.mul %d, %inv : f32[m, n], f32[m, 1]
    %yg = lathe.mul %y, %g : f32[m, n], f32[n]
    %yb = lathe.add %yg, %b : f32[m, n], f32[n]
    %r = lathe.cast %yb to bf16 : f32[m, n]
    return %r : bf16[m, n]
  })");
  for (int64_t n : {1, 7, 33, 64, 257}) {
    Array x = floats({5, n}, DType::BF16), g = floats({n}), b = floats({n});
    auto y = k.run({x, g, b}, {{"m", 5}, {"n", n}}, true);
    expectNear(
        y[0],
        [&](int64_t i) {
          double mean = 0, var = 0;
          for (int64_t j = 0; j < n; ++j) mean += x.at(i / n * n + j) / double(n);
          for (int64_t j = 0; j < n; ++j)
            var += std::pow(x.at(i / n * n + j) - mean, 2) / double(n);
          return (x.at(i) - mean) / std::sqrt(var + 1e-5) * g.at(i % n) + b.at(i % n);
        },
        8e-3, 2e-5);
  }
}

TEST_P(RegionRows, RotatesPairsOfBothKinds) {
  for (std::string pairing : {"half", "interleaved"})
    for (int64_t d : {2, 6, 16, 64, 96, 128})
      for (auto [t, dtype] : {std::pair{std::string("f32"), DType::F32}, {"bf16", DType::BF16}}) {
        SCOPED_TRACE(pairing + " " + std::to_string(d) + " " + t);
        std::string n = std::to_string(d), h = std::to_string(d / 2),
                    x = t + "[b, h, s, " + n + "]";
        auto k = compile("func.func @f(%x: " + x + ", %c: f32[s, " + h + "], %s: f32[s, " + h +
                         "]) -> " + x + " {" + "%0 = lathe.rope " + pairing + " %x, %c, %s : " + x +
                         ", f32[s, " + h + "], f32[s, " + h + "]\n" + "return %0 : " + x + "}");
        Array a = floats({2, 2, 3, d}, dtype), c = floats({3, d / 2}), s = floats({3, d / 2});
        auto y = k.run({a, c, s}, {{"b", 2}, {"h", 2}, {"s", 3}});
        expectNear(
            y[0],
            [&](int64_t i) {
              int64_t row = i / d, at = i % d, pair = pairing == "half" ? at % (d / 2) : at / 2;
              bool second = pairing == "half" ? at >= d / 2 : at % 2;
              int64_t first = row * d + (pairing == "half" ? pair : 2 * pair);
              int64_t other = first + (pairing == "half" ? d / 2 : 1);
              double cos = c.at(row % 3 * (d / 2) + pair), sin = s.at(row % 3 * (d / 2) + pair);
              double v = second ? a.at(first) * sin + a.at(other) * cos
                                : a.at(first) * cos - a.at(other) * sin;
              return roundTo(dtype, v);
            },
            dtype == DType::F32 ? 1e-6 : 8e-3, 2e-6);
      }
}

TEST_P(RegionRows, GatesByEveryActivation) {
  struct Case {
    const char* name;
    double (*f)(double);
  };
  for (const Case& c : std::vector<Case>{
           {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
           {"gelu", [](double x) { return x * 0.5 * (1 + std::erf(x * M_SQRT1_2)); }},
           {"gelu_tanh",
            [](double x) {
              return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
            }},
           {"relu", [](double x) { return std::max(x, 0.); }}}) {
    auto k = compile(std::string("func.func @f(%g: bf16[m, n], %u: bf16[m, n]) -> bf16[m, n] { %0 "
                                 "= lathe.glu %g, %u activation ") +
                     c.name + " : bf16[m, n], bf16[m, n]\n return %0 : bf16[m, n] }");
    for (int64_t n : kColumns) {
      Array g = floats({2, n}, DType::BF16), u = floats({2, n}, DType::BF16);
      auto y = k.run({g, u}, {{"m", 2}, {"n", n}}, true);
      expectNear(y[0], [&](int64_t i) { return c.f(g.at(i)) * u.at(i); }, 4e-3, 1e-5);
    }
  }
}

TEST_P(RegionRows, LooksUpRowsAndReportsAnIdOutOfRange) {
  auto k = compile(
      "func.func @f(%i: i32[b, s], %t: bf16[v, 40]) -> bf16[b, s, 40] { %0 = lathe.embedding %i, "
      "%t : i32[b, s], bf16[v, 40]\n return %0 : bf16[b, s, 40] }");
  Array table = floats({9, 40}, DType::BF16), ids = integers({2, 3}, DType::I32, 0, 8);
  Symbols symbols{{"b", 2}, {"s", 3}, {"v", 9}};
  auto y = k.run({ids, table}, symbols);
  EXPECT_EQ(k.status(), 0);
  expectNear(y[0], [&](int64_t i) { return table.at(int64_t(ids.at(i / 40)) * 40 + i % 40); }, 0);
  for (int64_t bad : {int64_t(9), int64_t(-1), int64_t(1) << 30}) {
    ids.set(4, double(bad));
    y = k.run({ids, table}, symbols);
    EXPECT_EQ(indexOfStatus(k.status()), bad);
    expectNear(
        y[0],
        [&](int64_t i) {
          return table.at((i / 40 == 4 ? 0 : int64_t(ids.at(i / 40))) * 40 + i % 40);
        },
        0);
  }
  symbols["v"] = 0;
  k.run({ids, Array(DType::BF16, {0, 40})}, symbols);
  EXPECT_NE(k.status(), 0);
}

TEST_P(RegionRows, TakesSoftmaxOverAnInnerAxis) {
  auto k = compile(
      "func.func @f(%x: f32[b, m, n]) -> f32[b, m, n] { %0 = lathe.softmax %x axis 1 : f32[b, m, "
      "n]\n return %0 : f32[b, m, n] }");
  for (int64_t n : {1, 7, 33}) {
    Array x = floats({2, 5, n});
    auto y = k.run({x}, {{"b", 2}, {"m", 5}, {"n", n}});
    expectNear(
        y[0],
        [&](int64_t i) {
          double sum = 0;
          for (int64_t j = 0; j < 5; ++j) sum += std::exp(x.at((i / n / 5 * 5 + j) * n + i % n));
          return std::exp(x.at(i)) / sum;
        },
        2e-6);
  }
}

// The second loop over the row still reads what the first one would replace.
TEST_P(RegionRows, ResultsOfTwoWidthsReplaceNothing) {
  auto k = compile(R"(func.func @f(%x: f32[1, 8]) -> (f32[1, 8], f32[1, 4]) {
    %0 = lathe.add %x, %x : f32[1, 8], f32[1, 8]
    %1 = lathe.slice %x starts <0, 0> sizes <1, 4> strides [1, 1] : f32[1, 8]
    return %0, %1 : f32[1, 8], f32[1, 4]
  })");
  for (bool inPlace : {false, true}) {
    Array x = floats({1, 8});
    auto y = k.run({x}, {}, inPlace);
    expectNear(y[0], [&](int64_t i) { return 2 * x.at(i); }, 0);
    expectNear(y[1], [&](int64_t i) { return x.at(i); }, 0);
  }
}

// The second result reads some of what the first one replaces, under a mask of its own.
TEST_P(RegionRows, AllResultsAreThereBeforeOneReplaces) {
  auto k = compile(R"(func.func @f(%x: f32[m, 7], %v: f32[]) -> (f32[m, 7], f64[m, 7]) {
    %0 = lathe.neg %x : f32[m, 7]
    %1 = lathe.slice %x starts <0, 0> sizes <m, 3> strides [1, 1] : f32[m, 7]
    %2 = lathe.pad %1, %v low [0, 0] high [0, 4] : f32[m, 3], f32[]
    %3 = lathe.cast %2 to f64 : f32[m, 7]
    return %0, %3 : f32[m, 7], f64[m, 7]
  })");
  const Array x = floats({9, 7}), v = floats({});
  for (bool inPlace : {false, true}) {
    auto y = k.run({x, v}, {{"m", 9}}, inPlace);
    expectNear(y[0], [&](int64_t i) { return -x.at(i); }, 0);
    expectNear(y[1], [&](int64_t i) { return i % 7 < 3 ? x.at(i) : v.at(0); }, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionRows, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
