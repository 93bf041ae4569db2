// SPDX-License-Identifier: Apache-2.0
#include "runtime/bound_weights.h"

#include <cmath>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/thread_pool.h"

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

// A JSON list of names, absent if every weight is read.
static constexpr const char* kUnreadWeights = "unread_weights";

void noteUnreadWeights(Program& program, const std::vector<std::string>& declared) {
  std::set<std::string> unread(declared.begin(), declared.end());
  for (const TensorInfo& info : program.weights) unread.erase(info.name);
  if (unread.empty()) return;
  std::string list;
  for (const std::string& name : unread) list += (list.empty() ? "" : ", ") + jsonString(name);
  program.metadata[kUnreadWeights] = "[" + list + "]";
}

std::set<std::string> unreadWeights(const Program& program) {
  std::set<std::string> names;
  auto it = program.metadata.find(kUnreadWeights);
  if (it == program.metadata.end()) return names;
  const JsonValue list = JsonValue::parse(it->second, kUnreadWeights);
  for (size_t i = 0; i < list.size(); ++i) names.insert(list.at(i).asString());
  return names;
}

Array randomWeight(const TensorInfo& info, uint64_t seed) {
  Array a(info.dtype, staticShape(info));
  // SplitMix64 (Steele, Lea, Flood 2014), keyed by the name so that order does not matter. Its
  // state is a counter, so that any element can be computed alone.
  constexpr uint64_t step = 0x9e3779b97f4a7c15u;
  uint64_t start = seed * step;
  for (unsigned char c : info.name) start = (start ^ c) * 0x100000001b3u;
  auto uniform = [start](int64_t index) {
    uint64_t z = start + (uint64_t(index) + 1) * step;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return float(int64_t(z) >> 40) * 0x1p-23f;  // [-1, 1)
  };
  bool vector = a.shape().size() < 2;
  float scale = vector ? 0.1f : 1.0f / std::sqrt(float(std::max<int64_t>(a.shape().back(), 1)));
  float center = vector ? 1.0f : 0.0f;
  constexpr int64_t kGrain = 1 << 16;  // elements that repay a fork
  ThreadPool::global().parallelFor(0, a.size(), kGrain, [&](int64_t begin, int64_t end, int) {
    auto value = [&](int64_t i) { return center + scale * uniform(i); };
    if (info.dtype == DType::BF16) {
      uint16_t* to = a.as<uint16_t>().data();
      for (int64_t i = begin; i < end; ++i) to[i] = floatToBf16(value(i));
    } else if (info.dtype == DType::F32) {
      float* to = a.as<float>().data();
      for (int64_t i = begin; i < end; ++i) to[i] = value(i);
    } else {
      for (int64_t i = begin; i < end; ++i) a.set(i, value(i));
    }
  });
  return a;
}

}  // namespace lathe
