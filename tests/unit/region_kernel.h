// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiles one region and runs it on arrays that end at an unmapped page, in uneven ranges of rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/lowering/region_emitter.h"
#include "runtime/array.h"

namespace lathe::test {

using Symbols = std::map<std::string, int64_t, std::less<>>;

class RegionKernelUnderTest {
 public:
  /// `text` is one function, in which `f32[m, 4]` is short for a tensor type with named dims.
  RegionKernelUnderTest(const std::string& text, const cpu::Tier& tier);
  ~RegionKernelUnderTest();
  RegionKernelUnderTest(const RegionKernelUnderTest&) = delete;
  RegionKernelUnderTest& operator=(const RegionKernelUnderTest&) = delete;

  /// The results for these operands; fails the test if a byte outside of them is written. With
  /// `inPlace` result r uses the buffer of operand a for every pair that the kernel allows.
  std::vector<Array> run(const std::vector<Array>& operands, const Symbols& symbols = {},
                         bool inPlace = false);
  int64_t status() const { return status_; }
  const cpu::RegionKernel& kernel() const { return kernel_; }

 private:
  cpu::RegionKernel kernel_;
  std::vector<std::pair<DType, std::vector<std::string>>> results_;
  void* library_ = nullptr;
  void* entry_ = nullptr;
  int64_t status_ = 0;
};

/// The tiers that this machine can run.
std::vector<cpu::Tier> runnableTiers();

inline constexpr double kInf = INFINITY;

/// A test of every tier that the machine runs, with random operands.
class RegionTest : public ::testing::TestWithParam<cpu::Tier> {
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
inline void expectNear(const Array& got, const std::function<double(int64_t)>& expected,
                       double rtol, double atol = 0) {
  int wrong = 0;
  for (int64_t i = 0; i < got.size() && wrong < 5; ++i) {
    double g = got.at(i), e = expected(i);
    bool same =
        (std::isnan(g) && std::isnan(e)) || g == e || std::abs(g - e) <= atol + rtol * std::abs(e);
    if (!same) {
      ++wrong;
      ADD_FAILURE() << "element " << i << " of " << got.size() << ": got " << g << ", expected "
                    << e;
    }
  }
}
inline double roundTo(DType dtype, double v) {
  Array a(dtype, {1});
  a.set(0, v);
  return a.at(0);
}

inline constexpr double kF32 = 4e-7;
inline const std::vector<int64_t> kColumns{0, 1, 7, 31, 33, 64, 257};

}  // namespace lathe::test
