// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiles one region for a CPU tier and runs it on arrays that end at an unmapped page, in uneven
// ranges of rows; or prints it as CUDA text and runs that by host execution with all checks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/lowering/region_emitter.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/lowering/region/region_printer.h"
#include "lathe/runtime/array.h"
#include "tests/closeness.h"

namespace lathe::test {

using Symbols = std::map<std::string, int64_t, std::less<>>;

struct RegionTarget {
  std::string name;
  std::optional<cpu::Tier> tier;
  /// Without a tier: which of the schedules; beyond them the last one.
  size_t schedule = 0;
};

inline void PrintTo(const RegionTarget& target, std::ostream* os) { *os << target.name; }

class RegionKernelUnderTest {
 public:
  /// `text` is one function, in which `f32[m, 4]` is short for a tensor type with named dims.
  RegionKernelUnderTest(const std::string& text, const RegionTarget& target);
  ~RegionKernelUnderTest();
  RegionKernelUnderTest(const RegionKernelUnderTest&) = delete;
  RegionKernelUnderTest& operator=(const RegionKernelUnderTest&) = delete;

  /// The results for these operands; fails the test if a byte outside of them is written. With
  /// `inPlace` result r uses the buffer of operand a for every pair that the kernel allows.
  std::vector<Array> run(const std::vector<Array>& operands, const Symbols& symbols = {},
                         bool inPlace = false);
  int64_t status() const { return status_; }
  /// Of a CPU tier.
  const cpu::RegionKernel& kernel() const { return kernel_; }
  /// (operand, result) pairs that may be one buffer.
  const std::vector<std::pair<unsigned, unsigned>>& inPlace() const { return kernel_.inPlace; }
  /// Of CUDA text.
  const cuda::KernelSet& printed() const { return printed_; }
  const cuda::RegionSchedule& schedule() const { return schedule_; }

 private:
  bool writesBytes() const;
  std::vector<Array> runOnCpu(const std::vector<Array>& operands, const Symbols& symbols,
                              bool inPlace);
  std::vector<Array> runAsCuda(const std::vector<Array>& operands, const Symbols& symbols,
                               bool inPlace);

  cpu::RegionKernel kernel_;
  cuda::KernelSet printed_;
  cuda::RegionSchedule schedule_;
  std::vector<cuda::Driver::Function> functions_;
  std::vector<std::pair<DType, std::vector<std::string>>> results_;
  void* library_ = nullptr;
  void* entry_ = nullptr;
  int64_t status_ = 0;
};

/// The tiers that this machine can run, and CUDA text under the first and the last schedule.
std::vector<RegionTarget> regionTargets();

inline constexpr double kInf = INFINITY;

/// A test of every target, with random operands.
class RegionTest : public ::testing::TestWithParam<RegionTarget> {
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
    if (!isNear(g, e, atol + rtol * std::abs(e))) {
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
