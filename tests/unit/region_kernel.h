// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiles one region and runs it on arrays that end at an unmapped page, in uneven ranges of rows.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/lowering/region_emitter.h"
#include "runtime/array.h"

namespace lathe::test {

using Symbols = std::map<std::string, int64_t, std::less<>>;

class RegionKernelUnderTest {
 public:
  /// `text` is a module with one function.
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

}  // namespace lathe::test
