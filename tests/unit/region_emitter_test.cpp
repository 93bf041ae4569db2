// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

constexpr double kInf = INFINITY;

class RegionEmitter : public ::testing::TestWithParam<cpu::Tier> {
 protected:
  RegionKernelUnderTest compile(const std::string& text) { return {text, GetParam()}; }

  Array floats(Shape shape, DType dtype = DType::F32, double scale = 3) {
    Array a(dtype, std::move(shape));
    std::uniform_real_distribution<double> draw(-scale, scale);
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, draw(random_));
    return a;
  }
  Array integers(Shape shape, DType dtype, int64_t lo, int64_t hi) {
    Array a(dtype, std::move(shape));
    std::uniform_int_distribution<int64_t> draw(lo, hi);
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(draw(random_)));
    return a;
  }
  std::mt19937 random_{7};
};

/// Every element against `expected(i)`, within rtol * |expected| + atol; NaN equals NaN.
void expectNear(const Array& got, const std::function<double(int64_t)>& expected, double rtol,
                double atol = 0) {
  int wrong = 0;
  for (int64_t i = 0; i < got.size() && wrong < 5; ++i) {
    double g = got.at(i), e = expected(i);
    bool same = (std::isnan(g) && std::isnan(e)) || g == e ||
                std::abs(g - e) <= atol + rtol * std::abs(e);
    if (!same) {
      ++wrong;
      ADD_FAILURE() << "element " << i << " of " << got.size() << ": got " << g << ", expected " << e;
    }
  }
}
double roundTo(DType dtype, double v) {
  Array a(dtype, {1});
  a.set(0, v);
  return a.at(0);
}

constexpr double kF32 = 4e-7;
const std::vector<int64_t> kColumns{0, 1, 7, 31, 33, 64, 257};

TEST_P(RegionEmitter, AddsElementsWithARowAndAColumnAndAScalar) {
  auto k = compile(R"(func.func @f(%a: tensor<?x?xf32, #lathe.dims<m, n>>, %row: tensor<?xf32, #lathe.dims<n>>,
      %column: tensor<?x1xf32, #lathe.dims<m, 1>>, %s: tensor<f32>) -> tensor<?x?xf32, #lathe.dims<m, n>> {
    %0 = lathe.add %a, %row : tensor<?x?xf32, #lathe.dims<m, n>>, tensor<?xf32, #lathe.dims<n>>
    %1 = lathe.mul %0, %column : tensor<?x?xf32, #lathe.dims<m, n>>, tensor<?x1xf32, #lathe.dims<m, 1>>
    %2 = lathe.sub %1, %s : tensor<?x?xf32, #lathe.dims<m, n>>, tensor<f32>
    return %2 : tensor<?x?xf32, #lathe.dims<m, n>>
  })");
  for (int64_t n : kColumns) {
    Array a = floats({5, n}), row = floats({n}), column = floats({5, 1}), s = floats({});
    auto y = k.run({a, row, column, s}, {{"m", 5}, {"n", n}});
    expectNear(y[0], [&](int64_t i) {
      float sum = float(a.at(i)) + float(row.at(i % n));
      return (sum * float(column.at(i / n))) - float(s.at(0));
    }, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, RegionEmitter, ::testing::ValuesIn(runnableTiers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
