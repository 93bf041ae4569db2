// SPDX-License-Identifier: Apache-2.0
#include "runtime/bound_weights.h"

#include <cmath>

#include "runtime/error.h"

namespace lathe {

static Shape staticShape(const TensorInfo& info) {
  Shape shape;
  for (const DimExpr& d : info.shape) shape.push_back(d.asConstant().value());
  return shape;
}

std::vector<Array> fetchWeights(const Program& program, const WeightSource& source) {
  std::vector<Array> arrays;
  std::string mistakes;
  int count = 0;
  auto report = [&](const std::string& line) {
    if (++count <= 20) mistakes += "\n  " + line;
  };
  for (const TensorInfo& info : program.weights) {
    Array a = source(info.name);
    Shape shape = staticShape(info);
    std::string wanted = describe(info.dtype, shape);
    if (!a.defined())
      report("missing: " + info.name + " " + wanted);
    else if (a.shape() != shape)
      report("wrong shape: " + info.name + " is " + describe(a.dtype(), a.shape()) + ", expected " +
             wanted);
    else if (a.dtype() != info.dtype)
      report("wrong dtype: " + info.name + " is " + describe(a.dtype(), a.shape()) + ", expected " +
             wanted + "; convert it or compile for its dtype");
    arrays.push_back(std::move(a));
  }
  if (count)
    throw Error(ErrorCode::InvalidArgument,
                std::to_string(count) + " weights do not fit the program:" + mistakes +
                    (count > 20 ? "\n  ... and " + std::to_string(count - 20) + " more" : ""));
  return arrays;
}

Array randomWeight(const TensorInfo& info, uint64_t seed) {
  Array a(info.dtype, staticShape(info));
  // SplitMix64 (Steele, Lea, Flood 2014), keyed by the name so that order does not matter.
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  for (unsigned char c : info.name) state = (state ^ c) * 0x100000001b3u;
  auto next = [&] {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return float(int64_t(z) >> 40) * 0x1p-23f;  // [-1, 1)
  };
  bool vector = a.shape().size() < 2;
  float scale = vector ? 0.1f : 1.0f / std::sqrt(float(std::max<int64_t>(a.shape().back(), 1)));
  float center = vector ? 1.0f : 0.0f;
  if (info.dtype == DType::BF16) {
    for (uint16_t& v : a.as<uint16_t>()) v = floatToBf16(center + scale * next());
  } else if (info.dtype == DType::F32) {
    for (float& v : a.as<float>()) v = center + scale * next();
  } else {
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, center + scale * next());
  }
  return a;
}

}  // namespace lathe
