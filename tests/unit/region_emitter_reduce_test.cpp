// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionReduce : public RegionTest {};

TEST_P(RegionReduce, ReducesOverEveryAxis) {
  std::vector<std::string> kinds{"sum", "mean", "max", "min", "prod"};
  for (std::string t : {"f32", "f64", "bf16", "i32", "ui8"})
    for (std::vector<int64_t> axes :
         std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}})
      for (bool keep : {false, true}) {
        DType dtype = *parseDType(t == "ui8" ? "u8" : t);
        bool real = isFloat(dtype);
        std::string list, shape, text = "func.func @f(%x: " + t + "[a, b, c]) -> (", results,
                                 values, code;
        const char* names[] = {"a", "b", "c"};
        bool gone[3] = {};
        for (int64_t axis : axes)
          gone[axis] = true, list += (list.empty() ? "" : ", ") + std::to_string(axis);
        for (int i = 0; i < 3; ++i)
          if (!gone[i] || keep)
            shape += (shape.empty() ? "" : ", ") + std::string(gone[i] ? "1" : names[i]);
        for (size_t i = 0; i < kinds.size(); ++i) {
          if (!real && kinds[i] == "mean") continue;
          std::string comma = values.empty() ? "" : ", ";
          results += comma + t + "[" + shape + "]";
          values += comma + "%r" + std::to_string(i);
          code += "%r" + std::to_string(i) + " = lathe.reduce_" + kinds[i] + " %x axes [" + list +
                  "] keep_dims " + (keep ? "true" : "false") + " : " + t + "[a, b, c]\n";
        }
        SCOPED_TRACE(t + " axes " + list + (keep ? " kept" : ""));
        auto k =
            compile(text + results + ") {" + code + "return " + values + " : " + results + "}");
        for (int64_t n : {1, 7, 41}) {
          int64_t size[3] = {3, 2, n};
          Array x = real ? floats({3, 2, n}, dtype, 1.5)
                         : integers({3, 2, n}, dtype, t == "ui8" ? 0 : -9, 9);
          if (real && n > 1) x.set(3, NAN);
          auto y = k.run({x}, {{"a", 3}, {"b", 2}, {"c", n}});
          std::vector<std::vector<double>> groups(y[0].size());
          for (int64_t i = 0; i < x.size(); ++i) {
            int64_t at[3] = {i / n / 2, i / n % 2, i % n}, where = 0;
            for (int d = 0; d < 3; ++d)
              if (!gone[d]) where = where * size[d] + at[d];
            groups[where].push_back(x.at(i));
          }
          size_t out = 0;
          for (const std::string& kind : kinds) {
            if (!real && kind == "mean") continue;
            SCOPED_TRACE(kind);
            expectNear(
                y[out++],
                [&](int64_t i) -> double {
                  double sum = 0, product = 1, most = -kInf, least = kInf;
                  bool nan = false;
                  for (double v : groups[i]) {
                    sum += v, product *= v, nan |= std::isnan(v);
                    most = std::max(most, v), least = std::min(least, v);
                    if (t == "ui8") sum = uint8_t(int(sum)), product = uint8_t(int(product));
                    if (t == "i32") product = double(int32_t(uint32_t(int64_t(product))));
                  }
                  if (nan) return NAN;
                  if (kind == "sum") return sum;
                  if (kind == "mean") return sum / double(groups[i].size());
                  return kind == "max" ? most : kind == "min" ? least : product;
                },
                !real         ? 0
                : t == "f64"  ? 1e-13
                : t == "bf16" ? 8e-3
                              : 2e-5,
                real ? 2e-6 : 0);
          }
        }
      }
}

TEST_P(RegionReduce, GivesEmptyReductionsTheirNeutralValues) {
  auto k =
      compile(R"(func.func @f(%x: f32[m, n]) -> (f32[m], f32[m], f32[m], f32[m], f32[m], i64[m]) {
    %0 = lathe.reduce_sum %x axes [1] : f32[m, n]
    %1 = lathe.reduce_mean %x axes [1] : f32[m, n]
    %2 = lathe.reduce_max %x axes [1] : f32[m, n]
    %3 = lathe.reduce_min %x axes [1] : f32[m, n]
    %4 = lathe.reduce_prod %x axes [1] : f32[m, n]
    %5 = lathe.argmax %x axis 1 : f32[m, n]
    return %0, %1, %2, %3, %4, %5 : f32[m], f32[m], f32[m], f32[m], f32[m], i64[m]
  })");
  auto y = k.run({Array(DType::F32, {2, 0})}, {{"m", 2}, {"n", 0}});
  double expected[] = {0, NAN, -kInf, kInf, 1, 0};
  for (int i = 0; i < 6; ++i) expectNear(y[i], [&](int64_t) { return expected[i]; }, 0);
}

TEST_P(RegionReduce, ReducesTruthValues) {
  for (int64_t axis : {0, 1}) {
    std::string a = std::to_string(axis), kept = axis ? "m" : "n";
    auto k = compile("func.func @f(%x: i1[m, n]) -> (i1[" + kept + "], i1[" + kept +
                     "]) { %0 = lathe.reduce_any %x axes [" + a +
                     "] : i1[m, n]\n%1 = lathe.reduce_all %x axes [" + a +
                     "] : i1[m, n]\n return %0, %1 : i1[" + kept + "], i1[" + kept + "] }");
    for (int64_t n : kColumns)
      for (int64_t few : {0, 1}) {
        Array x = integers({4, n}, DType::Bool, few, 1);
        if (n) x.set(n / 2, few ? 0 : 1);
        auto y = k.run({x}, {{"m", 4}, {"n", n}});
        auto count = [&](int64_t i) {
          int64_t sum = 0;
          for (int64_t j = 0; j < (axis ? n : 4); ++j)
            sum += x.at(axis ? i * n + j : j * n + i) != 0;
          return sum;
        };
        expectNear(y[0], [&](int64_t i) { return count(i) > 0; }, 0);
        expectNear(y[1], [&](int64_t i) { return count(i) == (axis ? n : 4); }, 0);
      }
  }
}

// What is handed from thread to thread in wider words has the sign of its own dtype.
TEST_P(RegionReduce, FindsExtremesOfWholeNarrowRanges) {
  for (auto [t, lowest, highest] :
       {std::tuple("ui8", 0, 255), {"i8", -128, 127}, {"i16", -300, 300}})
    for (int64_t axis : {0, 1}) {
      const std::string a = std::to_string(axis), kept = axis ? "m" : "n";
      const std::string x = t + std::string("[m, n]"), y = t + ("[" + kept + "]");
      auto k = compile("func.func @f(%x: " + x + ") -> (" + y + ", " + y +
                       ") { %0 = lathe.reduce_max %x axes [" + a + "] : " + x +
                       "\n%1 = lathe.reduce_min %x axes [" + a + "] : " + x +
                       "\n return %0, %1 : " + y + ", " + y + " }");
      for (int64_t n : {1, 33, 257}) {
        Array v =
            integers({5, n}, *parseDType(t == std::string("ui8") ? "u8" : t), lowest, highest);
        v.set(0, lowest), v.set(n - 1, highest);
        auto got = k.run({v}, {{"m", 5}, {"n", n}});
        for (int most : {1, 0})
          expectNear(
              got[1 - most],
              [&](int64_t i) {
                auto at = [&](int64_t j) { return v.at(axis ? i * n + j : j * n + i); };
                double best = at(0);
                for (int64_t j = 1; j < (axis ? n : 5); ++j)
                  best = most ? std::max(best, at(j)) : std::min(best, at(j));
                return best;
              },
              0);
      }
    }
}

TEST_P(RegionReduce, FindsTheFirstOfEqualExtremesAndNans) {
  for (int64_t axis : {0, 1})
    for (std::string t : {"f32", "bf16", "i64", "ui8"}) {
      DType dtype = *parseDType(t == "ui8" ? "u8" : t);
      std::string a = std::to_string(axis), kept = axis ? "m" : "n", x = t + "[m, n]";
      auto k = compile("func.func @f(%x: " + x + ") -> (i64[" + kept + "], i64[" + kept +
                       "]) { %0 = lathe.argmax %x axis " + a + " : " + x +
                       "\n%1 = lathe.argmin %x axis " + a + " : " + x + "\n return %0, %1 : i64[" +
                       kept + "], i64[" + kept + "] }");
      for (int64_t n : {1, 7, 33, 257})
        for (bool nans : {false, true}) {
          Array v = integers({5, n}, dtype, isFloat(dtype) || t == "i64" ? -3 : 0, 3);
          if (isFloat(dtype) && nans) v.set(n / 2, NAN), v.set(n - 1, NAN), v.set(2 * n, -kInf);
          auto y = k.run({v}, {{"m", 5}, {"n", n}});
          for (int most : {1, 0})
            expectNear(
                y[1 - most],
                [&](int64_t i) {
                  int64_t best = 0, count = axis ? n : 5;
                  auto at = [&](int64_t j) { return v.at(axis ? i * n + j : j * n + i); };
                  for (int64_t j = 1; j < count; ++j)
                    if (!std::isnan(at(best)) &&
                        (std::isnan(at(j)) || (most ? at(j) > at(best) : at(j) < at(best))))
                      best = j;
                  return double(best);
                },
                0);
        }
    }
}

TEST_P(RegionReduce, SharesOnePassBetweenIndependentReductions) {
  auto k = compile(R"(func.func @f(%x: f32[m, n]) -> (f32[m], f32[m], f32[m, n]) {
    %0 = lathe.reduce_mean %x axes [1] : f32[m, n]
    %sq = lathe.mul %x, %x : f32[m, n], f32[m, n]
    %1 = lathe.reduce_mean %sq axes [1] : f32[m, n]
    %c = lathe.reshape %0 to <m, 1> : f32[m]
    %2 = lathe.sub %x, %c : f32[m, n], f32[m, 1]
    return %0, %1, %2 : f32[m], f32[m], f32[m, n]
  })");
  for (int64_t n : {1, 33, 257}) {
    Array x = floats({4, n});
    auto y = k.run({x}, {{"m", 4}, {"n", n}});
    auto mean = [&](int64_t r, int power) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += std::pow(x.at(r * n + j), power);
      return sum / double(n);
    };
    expectNear(y[0], [&](int64_t i) { return mean(i, 1); }, 1e-5, 1e-6);
    expectNear(y[1], [&](int64_t i) { return mean(i, 2); }, 1e-5);
    expectNear(y[2], [&](int64_t i) { return x.at(i) - mean(i / n, 1); }, 1e-5, 2e-6);
  }
}

// One pass over a row makes all reductions that wait for nothing else.
TEST_P(RegionReduce, MakesTwoMomentsOfARowInOnePass) {
  auto k = compile(R"(func.func @f(%x: f32[m, 640]) -> (f32[m], f32[m]) {
    %square = lathe.mul %x, %x : f32[m, 640], f32[m, 640]
    %0 = lathe.reduce_mean %x axes [1] : f32[m, 640]
    %1 = lathe.reduce_mean %square axes [1] : f32[m, 640]
    return %0, %1 : f32[m], f32[m]
  })");
  if (GetParam().tier) {
    EXPECT_EQ(DimExpr::parse(k.kernel().costPerRow)->evaluate({}), 642);
  } else {
    const std::string& text = k.printed().kernels[0].source;
    const size_t first = text.find("(x + ");
    EXPECT_EQ(first == std::string::npos, k.schedule().kind == cuda::RegionSchedule::Kind::Flat);
    if (first != std::string::npos) EXPECT_EQ(text.find("(x + ", first + 1), std::string::npos);
  }
  const Array x = floats({5, 640});
  auto y = k.run({x}, {{"m", 5}});
  auto sum = [&](int64_t row, int power) {
    double total = 0;
    for (int64_t i = 0; i < 640; ++i) total += std::pow(x.at(row * 640 + i), power);
    return total / 640;
  };
  expectNear(y[0], [&](int64_t row) { return sum(row, 1); }, 1e-5, 1e-6);
  expectNear(y[1], [&](int64_t row) { return sum(row, 2); }, 1e-5, 1e-6);
}

// All threads of a row read its only element: none of them may have written it.
TEST_P(RegionReduce, LeavesTheOnlyElementOfARow) {
  auto k = compile(R"(func.func @f(%x: f64[5, 1]) -> f64[5, 1] {
    %0 = lathe.reduce_min %x axes [1] keep_dims true : f64[5, 1]
    %1 = lathe.sub %x, %0 : f64[5, 1], f64[5, 1]
    return %1 : f64[5, 1]
  })");
  const Array x = floats({5, 1}, DType::F64);
  expectNear(k.run({x}, {}, true)[0], [](int64_t) { return 0; }, 0);
}

// A pass over a row serves the reductions of its axes alone.
TEST_P(RegionReduce, KeepsReductionsOfOtherAxesApart) {
  auto k = compile(R"(func.func @f(%x: f32[m, 3, 5]) -> (f32[m], f32[m]) {
    %0 = lathe.reduce_max %x axes [1, 2] : f32[m, 3, 5]
    %1 = lathe.reduce_min %x axes [2] : f32[m, 3, 5]
    %2 = lathe.reduce_sum %1 axes [1] : f32[m, 3]
    return %0, %2 : f32[m], f32[m]
  })");
  const Array x = floats({7, 3, 5});
  auto y = k.run({x}, {{"m", 7}});
  auto at = [&](int64_t row, int64_t i) { return x.at(row * 15 + i); };
  expectNear(
      y[0],
      [&](int64_t row) {
        double most = at(row, 0);
        for (int64_t i = 1; i < 15; ++i) most = std::max(most, at(row, i));
        return most;
      },
      0);
  expectNear(
      y[1],
      [&](int64_t row) {
        double sum = 0;
        for (int64_t part = 0; part < 3; ++part) {
          double least = at(row, part * 5);
          for (int64_t i = 1; i < 5; ++i) least = std::min(least, at(row, part * 5 + i));
          sum += least;
        }
        return sum;
      },
      1e-6);
}

// Sums along two axes of a square, at the same numbers of both.
TEST_P(RegionReduce, KeepsSumsAlongTwoAxesApart) {
  auto k = compile(R"(func.func @f(%x: f32[m, 3, 3]) -> (f32[m, 1], f32[m, 1]) {
    %0 = lathe.reduce_sum %x axes [1] : f32[m, 3, 3]
    %1 = lathe.reduce_sum %x axes [2] : f32[m, 3, 3]
    %2 = lathe.slice %0 starts <0, 1> sizes <m, 1> strides [1, 1] : f32[m, 3]
    %3 = lathe.slice %1 starts <0, 1> sizes <m, 1> strides [1, 1] : f32[m, 3]
    return %2, %3 : f32[m, 1], f32[m, 1]
  })");
  const Array x = floats({7, 3, 3});
  auto y = k.run({x}, {{"m", 7}});
  auto sum = [&](int64_t row, int64_t first, int64_t step) {
    double total = 0;
    for (int64_t i = 0; i < 3; ++i) total += x.at(9 * row + first + i * step);
    return total;
  };
  expectNear(y[0], [&](int64_t row) { return sum(row, 1, 3); }, 1e-6, 1e-6);
  expectNear(y[1], [&](int64_t row) { return sum(row, 3, 1); }, 1e-6, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionReduce, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
