// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/positions.h"

#include <cmath>

#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

void expectSize(int64_t size, int64_t divisor, const std::string& module, std::source_location at) {
  expectPositive(size, module + ", size", at, kMostTable);
  if (size % divisor == 0) return;
  throw Error(ErrorCode::InvalidArgument,
              module + ": expected a size that is a multiple of " + std::to_string(divisor) +
                  ", got " + std::to_string(size) + "; each angle needs a sine and a cosine",
              at);
}

Tensor firstPositions(const Tensor& x, const std::string& module, std::source_location at) {
  if (x.rank() >= 2) return iota(x, {x.dim(-2)}, 0, DType::I64, at);
  throw Error(ErrorCode::InvalidArgument,
              module + ": expected x [..., seq, size], got " + typeText(x), at);
}

// Axis 0 is the position, axis 1 the frequency: [count, frequencies].
Tensor anglesOf(Graph& graph, const Tensor& like, int64_t count, const std::vector<float>& values) {
  Tensor factors = graph.constant(Array::fromFloats(values, {int64_t(values.size())}));
  return iota(like, {count, 1}, 0, DType::F32) * factors;
}

}  // namespace

std::vector<float> sineFrequencies(int64_t size, std::source_location at) {
  expectPositive(size, "sineFrequencies, size", at, kMostTable);
  std::vector<float> values(size_t(size / 2));
  const float slope = float(-(std::log(10000.0) / double(size)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::exp(float(2 * i) * slope);
  return values;
}

SinePositions::SinePositions(Graph& graph, std::string path, int64_t size, int64_t maxPositions,
                             SineOrder order, std::source_location at)
    : Module(graph, std::move(path), at), size_(size), maxPositions_(maxPositions), order_(order) {
  expectSize(size_, 2, "SinePositions '" + this->path() + "'", at);
  expectPositive(maxPositions_, "SinePositions '" + this->path() + "', maxPositions", at);
}

Tensor SinePositions::table(const Tensor& like, std::source_location at) const {
  expectDefined(like, "SinePositions '" + path() + "'", at);
  const Scope scope = opened(like, at);
  if (order_ == SineOrder::Halves) {
    Array frequencies(DType::F64, {size_ / 2});
    for (int64_t i = 0; i < size_ / 2; ++i)
      frequencies.set(i, std::pow(10000.0, -2.0 * double(i) / double(size_)));
    Tensor angles = iota(like, {maxPositions_, 1}, 0, DType::F64) * graph().constant(frequencies);
    return cast(concat({sin(angles), cos(angles)}, -1), DType::F32);
  }
  Tensor angles = anglesOf(graph(), like, maxPositions_, sineFrequencies(size_));
  const Dims pair = {maxPositions_, size_ / 2, 1};
  Tensor pairs = concat({reshape(sin(angles), pair), reshape(cos(angles), pair)}, -1);
  return reshape(pairs, {maxPositions_, size_});
}

Tensor SinePositions::operator()(const Tensor& x, std::source_location at) const {
  const std::string module = "SinePositions '" + path() + "'";
  expectFeatures(x, size_, module, at);
  return (*this)(x, firstPositions(x, module, at), at);
}

Tensor SinePositions::operator()(const Tensor& x, const Tensor& positions,
                                 std::source_location at) const {
  expectFeatures(x, size_, "SinePositions '" + path() + "'", at);
  expectIntegers(positions, "SinePositions '" + path() + "', positions", at);
  const Scope scope = opened(x, at);
  return x + gather(castTo(table(x, at), x.dtype()), positions, 0);
}

SinePositions2d::SinePositions2d(Graph& graph, std::string path, int64_t size, int64_t rows,
                                 int64_t columns, std::source_location at)
    : Module(graph, std::move(path), at), size_(size), rows_(rows), columns_(columns) {
  expectSize(size_, 4, "SinePositions2d '" + this->path() + "'", at);
  expectPositive(rows_, "SinePositions2d '" + this->path() + "', rows", at);
  expectPositive(columns_, "SinePositions2d '" + this->path() + "', columns", at);
}

Tensor SinePositions2d::table(const Tensor& like, std::source_location at) const {
  expectDefined(like, "SinePositions2d '" + path() + "'", at);
  const Scope scope = opened(like, at);
  const int64_t half = size_ / 2;
  std::vector<float> frequencies(size_t(size_ / 4));
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = float(std::pow(10000.0, -double(i) / double(frequencies.size())));
  auto line = [&](int64_t count, const Dims& shape) {
    Tensor angles = anglesOf(graph(), like, count, frequencies);
    Tensor values = reshape(concat({sin(angles), cos(angles)}, -1), shape);
    return broadcast(values, {rows_, columns_, half});
  };
  Tensor columns = line(columns_, {1, columns_, half}), rows = line(rows_, {rows_, 1, half});
  return reshape(concat({columns, rows}, -1), {rows_ * columns_, size_});
}

Tensor SinePositions2d::operator()(const Tensor& x, std::source_location at) const {
  expectFeatures(x, size_, "SinePositions2d '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return x + castTo(table(x, at), x.dtype());
}

LearntPositions::LearntPositions(Graph& graph, std::string path, int64_t size, int64_t maxPositions,
                                 EmbeddingOptions options, std::source_location at)
    : Module(graph, std::move(path), at),
      size_(size),
      maxPositions_(maxPositions),
      options_(std::move(options)) {
  expectPositive(size_, "LearntPositions '" + this->path() + "', size", at);
  expectPositive(maxPositions_, "LearntPositions '" + this->path() + "', maxPositions", at);
}

Tensor LearntPositions::operator()(const Tensor& x, std::source_location at) const {
  const std::string module = "LearntPositions '" + path() + "'";
  expectFeatures(x, size_, module, at);
  return (*this)(x, firstPositions(x, module, at), at);
}

Tensor LearntPositions::operator()(const Tensor& x, const Tensor& positions,
                                   std::source_location at) const {
  expectFeatures(x, size_, "LearntPositions '" + path() + "'", at);
  expectIntegers(positions, "LearntPositions '" + path() + "', positions", at);
  EmbeddingOptions options = options_;
  options.dtype = x.dtype();
  return add(x, Embedding(graph(), path(), maxPositions_, size_, options, at)(positions, at), at);
}

}  // namespace lathe::nn
