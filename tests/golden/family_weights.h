// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weights of goldens, as scripts/family_goldens/weights.py makes them, and which of them the
// tests of the families take.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/frontend/families/family.h"
#include "lathe/runtime/array.h"
#include "lathe/runtime/program.h"
#include "tests/depth.h"

namespace lathe {

inline uint64_t fnv1a(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325u;
  for (unsigned char byte : name) h = (h ^ byte) * 0x100000001B3u;
  return h;
}

/// Number `index` of a tensor's, in [-1, 1).
inline double uniformWeight(uint64_t start, uint64_t index) {
  uint64_t z = start + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return double(z >> 40) / double(1 << 23) - 1;
}

/// f32: gains lie around 1, biases around 0, matrices keep the size of what they multiply.
inline Array goldenWeight(const std::string& name, const Shape& shape, uint64_t seed) {
  Array values(DType::F32, shape);
  int64_t inputs = 1;
  for (size_t i = 1; i < shape.size(); ++i) inputs *= shape[i];
  const bool isMatrix = shape.size() > 1, isGain = !isMatrix && name.ends_with("weight");
  const double scale = isMatrix ? 1.5 / std::sqrt(double(inputs)) : 0.3;
  const uint64_t start = fnv1a(name) ^ (seed * 0x9E3779B97F4A7C15u);
  for (int64_t i = 0; i < values.size(); ++i)
    values.set(i, float((isGain ? 1 : 0) + scale * uniformWeight(start, uint64_t(i))));
  return values;
}

/// All that a program asks for.
inline Arrays goldenWeights(const Program& program, uint64_t seed) {
  Arrays weights;
  for (const TensorInfo& info : program.weights) {
    Shape shape;
    for (const DimExpr& d : info.sourceShape()) shape.push_back(d.asConstant().value());
    weights.emplace(info.source(), goldenWeight(info.source(), shape, seed));
  }
  return weights;
}

// --- what the tests of the families share ---

/// Errors are measured against the range of what is right: largest minus smallest.
inline constexpr double kFamilyTolerance = 1e-4;
inline double rangeOf(const Array& a) {
  double low = a.at(0), high = a.at(0);
  for (int64_t i = 0; i < a.size(); ++i) {
    low = std::min(low, a.at(i));
    high = std::max(high, a.at(i));
  }
  return high - low;
}

/// Of every family.
inline std::vector<std::string> architectures() {
  std::vector<std::string> all;
  for (const Family& family : families()) all.push_back(family.architecture);
  return all;
}

struct FamilyParameter {
  std::string architecture, backend;
};
inline void PrintTo(const FamilyParameter& p, std::ostream* os) {
  *os << p.architecture << ", " << p.backend;
}
inline std::vector<FamilyParameter> familiesOnBackends(std::initializer_list<ModelTask> tasks) {
  std::vector<FamilyParameter> all;
  for (const Family& family : families())
    if (std::ranges::find(tasks, family.task) != tasks.end())
      for (const char* backend : {"reference", "cpu", "cuda"})
        all.push_back({family.architecture, backend});
  return all;
}
inline std::string nameOfCase(const ::testing::TestParamInfo<FamilyParameter>& info) {
  return info.param.architecture + "_" + info.param.backend;
}

/// Which of `all` configs a backend runs: two, in depth every one; of host execution, which
/// compiles each kernel with a compiler of C++, one, in depth three.
inline std::vector<size_t> configsToRun(size_t all, const std::string& backend) {
  if (backend != "cuda") return test::spread(all, 2);
  if (!test::inDepth()) return {0};
  return {0, all / 3, 2 * all / 3};
}

}  // namespace lathe
