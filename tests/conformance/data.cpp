// SPDX-License-Identifier: Apache-2.0
// Deterministic values for the samples, and the graph that holds them.
#include <cmath>
#include <limits>

#include "tests/conformance/cases.h"

namespace lathe::conformance {
namespace {

// SplitMix64: Steele et al., "Fast splittable pseudorandom number generators", 2014.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return double(bits() >> 11) * 0x1p-53; }
  // The sum of twelve uniform numbers: bounded, near to normal.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  int64_t integer(int64_t lo, int64_t hi) { return lo + int64_t(bits() % uint64_t(hi - lo + 1)); }

 private:
  uint64_t state_;
};

uint64_t seedOf(const std::string& text) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : text) hash = (hash ^ uint8_t(c)) * 1099511628211u;
  return hash;
}

std::vector<double> specialValues(DType dtype) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  switch (dtype) {
    case DType::F64:
      return {0,   -0.,  inf,    -inf,    nan,      1,       -1,
              0.5, -2.5, 5e-324, -1e-310, 2.3e-308, 1.7e308, -1.7e308};
    case DType::F32:
      return {0, -0., inf, -inf, nan, 1, -1, 0.5, -2.5, 1e-45, -1e-40, 1.2e-38, 3.4e38, -3.4e38};
    case DType::BF16:
      return {0, -0., inf, -inf, nan, 1, -1, 0.5, -2.5, 1e-40, -1e-39, 1.2e-38, 3.38e38, -3.38e38};
    case DType::F16:
      return {0, -0., inf, -inf, nan, 1, -1, 0.5, -2.5, 6e-8, -6e-8, 6.2e-5, 65504, -65504};
    case DType::I64:
      return {0, 1, -1, 2, 7, -7, 0x1p62, -0x1p63, 63, 3};
    case DType::I32:
      return {0, 1, -1, 2, 7, -7, 2147483647, -2147483648., 31, 3};
    case DType::I16:
      return {0, 1, -1, 2, 7, -7, 32767, -32768, 15, 3};
    case DType::I8:
      return {0, 1, -1, 2, 5, -7, 127, -128, 6, 3};
    case DType::U8:
      return {0, 1, 2, 5, 255, 128, 6, 3};
    case DType::Bool:
      return {0, 1};
    case DType::I4:
      return {0, 1, -1, 2, 5, -7, 7, -8, 6, 3};
    case DType::U4:
      return {0, 1, 2, 5, 15, 8, 6, 3};
  }
  return {};
}

double hugeValue(DType dtype) {
  return dtype == DType::F16 ? 3e4 : dtype == DType::F64 ? 1e150 : isFloat(dtype) ? 1e30 : 100;
}

double valueOf(Random& random, const Input& input, int64_t index, int64_t columns) {
  const bool unsigned8 = input.dtype == DType::U8, real = isFloat(input.dtype);
  if (input.dtype == DType::Bool) {
    bool masked = input.fill == Fill::MaskedRows && index / columns % 3 == 0;
    return !masked && random.integer(0, 1);
  }
  switch (input.fill) {
    case Fill::Normal:
      return real ? 1.5 * random.normal() : double(random.integer(unsigned8 ? 0 : -20, 20));
    case Fill::Positive:
      return real ? 0.05 + 19.95 * random.uniform() : double(random.integer(1, 20));
    case Fill::NearOne:
      if (real) return 0.9 + 0.2 * random.uniform();
      return unsigned8 || random.integer(0, 1) ? 1 : -1;
    case Fill::Integers:
      return double(random.integer(unsigned8 ? 0 : -4, 4));
    case Fill::Special:
    case Fill::NonFinite: {
      // Half of the values are plain, so that rows are not all NaN.
      std::vector<double> values = specialValues(input.dtype);
      if (real && input.fill == Fill::NonFinite) values.resize(values.size() - 2);
      double plain = real ? random.normal() : double(random.integer(0, 5));
      return random.integer(0, 1) ? values[random.bits() % values.size()] : plain;
    }
    case Fill::Huge: {
      const double huge = hugeValue(input.dtype) * (0.5 + random.uniform());
      return !unsigned8 && random.integer(0, 1) ? -huge : huge;
    }
    case Fill::MaskedRows: {
      const double value = 1.5 * random.normal();
      return index / columns % 3 == 0 ? -std::numeric_limits<double>::infinity() : value;
    }
    case Fill::Index:
      return double(random.integer(0, input.limit - 1));
  }
  return 0;
}

std::string inputName(size_t sample, size_t input) {
  return std::to_string(sample) + ".in" + std::to_string(input);
}

}  // namespace

const std::vector<Sizes>& allSizes() {
  static const std::vector<Sizes> sizes{{3, 1}, {2, 31}, {3, 33}, {1, 257}, {0, 31}};
  return sizes;
}
static std::optional<Sizes>& fixedSizes() {
  static std::optional<Sizes> fixed;
  return fixed;
}
FixedSizes::FixedSizes(Sizes sizes) { fixedSizes() = sizes; }
FixedSizes::~FixedSizes() { fixedSizes().reset(); }
Dim rows() { return fixedSizes() ? Dim(fixedSizes()->rows) : Dim::symbol("rows"); }
Dim cols() { return fixedSizes() ? Dim(fixedSizes()->cols) : Dim::symbol("cols"); }

Graph recordSamples(const std::vector<Sample>& samples, int64_t leastCols) {
  Graph g;
  bool symbolic = false;
  for (const Sample& s : samples)
    for (const Input& i : s.inputs)
      for (const Dim& d : i.shape) symbolic |= !d.asConstant();
  if (symbolic) {
    g.dim("rows", 0, 8);
    g.dim("cols", leastCols, 512);
  }
  g.entry("forward");
  std::vector<std::vector<Tensor>> values(samples.size());
  for (size_t s = 0; s < samples.size(); ++s)
    for (size_t i = 0; i < samples[s].inputs.size(); ++i) {
      const Input& input = samples[s].inputs[i];
      if (!input.weight) {
        values[s].push_back(g.input(inputName(s, i), input.dtype, input.shape));
        continue;
      }
      Shape shape;
      for (const Dim& d : input.shape) shape.push_back(d.asConstant().value());
      values[s].push_back(g.weight(inputName(s, i), input.dtype, shape));
    }
  for (size_t s = 0; s < samples.size(); ++s) {
    std::vector<Tensor> results = samples[s].record(g, values[s]);
    for (size_t o = 0; o < results.size(); ++o)
      g.output(std::to_string(s) + ".out" + std::to_string(o), results[o]);
  }
  return g;
}

Data makeData(const std::vector<Sample>& samples, Sizes sizes, const std::string& salt) {
  Data data;
  for (size_t s = 0; s < samples.size(); ++s)
    for (size_t i = 0; i < samples[s].inputs.size(); ++i) {
      const Input& input = samples[s].inputs[i];
      const std::string name = inputName(s, i);
      Shape shape;
      for (const Dim& d : input.shape)
        shape.push_back(d.evaluate({{"rows", sizes.rows}, {"cols", sizes.cols}}).value());
      Array value(input.dtype, shape);
      Random random(seedOf(salt + "/" + samples[s].name + "/" + name));
      const int64_t columns = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
      for (int64_t e = 0; e < value.size(); ++e) value.set(e, valueOf(random, input, e, columns));
      (input.weight ? data.weights : data.inputs)[name] = value;
    }
  return data;
}

}  // namespace lathe::conformance
