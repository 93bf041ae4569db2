// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/dense.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/reference/strided.h"
#include "lathe/runtime/odd_rounding.h"

namespace lathe::reference {
namespace {

template <class T>
void widen(const Array& array, auto& out, auto convert) {
  auto values = array.as<T>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = convert(values[i]);
}

template <class T>
void narrow(Array& array, const auto& values, auto convert) {
  auto out = array.as<T>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert(values[i]);
}

template <class T>
std::vector<T> pickFrom(const std::vector<T>& pool, std::span<const int64_t> indices) {
  std::vector<T> y(indices.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = pool[size_t(indices[i])];
  return y;
}

template <class T>
std::vector<T> joined(std::span<const Dense> sources,
                      std::shared_ptr<const std::vector<T>> Dense::* elements) {
  std::vector<T> pool;
  for (auto& s : sources) pool.insert(pool.end(), (s.*elements)->begin(), (s.*elements)->end());
  return pool;
}

}  // namespace

double roundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::F32:
      return float(value);
    case DType::BF16:
      return bf16ToFloat(doubleToBf16(value));
    case DType::F16:
      return f16ToFloat(doubleToF16(value));
    default:
      return value;
  }
}

int64_t wrapTo(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::I32:
      return int32_t(value);
    case DType::I16:
      return int16_t(value);
    case DType::I8:
      return int8_t(value);
    case DType::U8:
      return uint8_t(value);
    case DType::Bool:
      return value != 0;
    case DType::I4:
      return int8_t(value << 4) >> 4;
    case DType::U4:
      return value & 15;
    default:
      return value;
  }
}

int64_t lowestInteger(DType dtype) {
  bool isSigned = dtype != DType::U8 && dtype != DType::Bool && dtype != DType::U4;
  return isSigned ? std::numeric_limits<int64_t>::min() >> (64 - bitsOf(dtype)) : 0;
}

int64_t highestInteger(DType dtype) {
  if (dtype == DType::U8) return 255;
  if (dtype == DType::Bool) return 1;
  if (dtype == DType::U4) return 15;
  return std::numeric_limits<int64_t>::max() >> (64 - bitsOf(dtype));
}

Dense makeReals(DType dtype, Shape shape, std::vector<double> values) {
  return {dtype, std::move(shape), std::make_shared<const std::vector<double>>(std::move(values)),
          nullptr, nullptr};
}

Dense makeIntegers(DType dtype, Shape shape, std::vector<int64_t> values) {
  return {dtype, std::move(shape), nullptr,
          std::make_shared<const std::vector<int64_t>>(std::move(values)), nullptr};
}

Dense fromArray(const Array& array, DType dtype) {
  auto same = [](auto v) { return v; };
  if (isFloat(dtype)) {
    std::vector<double> out(size_t(array.size()));
    switch (array.dtype()) {
      case DType::F64:
        widen<double>(array, out, same);
        break;
      case DType::F32:
        widen<float>(array, out, same);
        break;
      case DType::BF16:
        widen<uint16_t>(array, out, bf16ToFloat);
        break;
      default:
        widen<uint16_t>(array, out, f16ToFloat);
        break;
    }
    return makeReals(dtype, array.shape(), std::move(out));
  }
  std::vector<int64_t> out(size_t(array.size()));
  switch (array.dtype()) {
    case DType::I64:
      widen<int64_t>(array, out, same);
      break;
    case DType::I32:
      widen<int32_t>(array, out, same);
      break;
    case DType::I16:
      widen<int16_t>(array, out, same);
      break;
    case DType::I8:
      widen<int8_t>(array, out, same);
      break;
    case DType::U8:
      widen<uint8_t>(array, out, same);
      break;
    case DType::I4:
    case DType::U4:
      for (size_t i = 0; i < out.size(); ++i) out[i] = int64_t(array.at(int64_t(i)));
      break;
    default:
      widen<uint8_t>(array, out, [](uint8_t v) { return v != 0; });
      break;
  }
  return makeIntegers(dtype, array.shape(), std::move(out));
}

Dense fromStored(const Array& array, DType dtype) {
  constexpr int64_t kLarge = 4096;
  if (!isFloat(dtype) || array.size() < kLarge) return fromArray(array, dtype);
  return {dtype, array.shape(), nullptr, nullptr,
          std::make_shared<const Stored>(Stored{array, stridesOf(array.shape())})};
}

Array toArray(const Dense& given, bool widen) {
  const Dense value = settled(given);
  Array array(value.isReal() && widen ? DType::F64 : value.dtype, value.shape);
  switch (array.dtype()) {
    case DType::F64:
      narrow<double>(array, *value.reals, [](double v) { return v; });
      break;
    case DType::F32:
      narrow<float>(array, *value.reals, [](double v) { return float(v); });
      break;
    case DType::BF16:
      narrow<uint16_t>(array, *value.reals, doubleToBf16);
      break;
    case DType::F16:
      narrow<uint16_t>(array, *value.reals, doubleToF16);
      break;
    case DType::I64:
      narrow<int64_t>(array, *value.integers, [](int64_t v) { return v; });
      break;
    case DType::I32:
      narrow<int32_t>(array, *value.integers, [](int64_t v) { return int32_t(v); });
      break;
    case DType::I16:
      narrow<int16_t>(array, *value.integers, [](int64_t v) { return int16_t(v); });
      break;
    case DType::I8:
      narrow<int8_t>(array, *value.integers, [](int64_t v) { return int8_t(v); });
      break;
    case DType::U8:
    case DType::Bool:
      narrow<uint8_t>(array, *value.integers, [](int64_t v) { return uint8_t(v); });
      break;
    case DType::I4:
    case DType::U4:
      for (int64_t i = 0; i < array.size(); ++i) array.set(i, double((*value.integers)[size_t(i)]));
      break;
  }
  return array;
}

Shape stridesOf(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::vector<int64_t> stridedIndices(const Shape& shape, std::span<const int64_t> strides,
                                    int64_t offset) {
  std::vector<int64_t> indices(size_t(elementCount(shape)));
  Shape index(shape.size(), 0);
  for (int64_t& position : indices) {
    position = offset;
    // Count up like an odometer, the last axis fastest.
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= shape[axis] * strides[axis];
      index[axis] = 0;
    }
  }
  return indices;
}

Dense pick(std::span<const Dense> sources, Shape shape, std::span<const int64_t> indices) {
  const Dense& first = sources.front();
  if (first.isReal()) {
    auto values = sources.size() == 1 ? pickFrom(*first.reals, indices)
                                      : pickFrom(joined(sources, &Dense::reals), indices);
    return makeReals(first.dtype, std::move(shape), std::move(values));
  }
  auto values = sources.size() == 1 ? pickFrom(*first.integers, indices)
                                    : pickFrom(joined(sources, &Dense::integers), indices);
  return makeIntegers(first.dtype, std::move(shape), std::move(values));
}

Shape broadcastShape(const Shape& a, const Shape& b) {
  Shape shape = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  size_t lead = shape.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i)
    if (shape[lead + i] == 1) shape[lead + i] = other[i];
  return shape;
}

Dense stretch(const Dense& x, const Shape& shape) {
  if (x.shape == shape) return x;
  Shape from = stridesIn(x), strides(shape.size(), 0);
  size_t lead = shape.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (x.shape[i] != 1) strides[lead + i] = from[i];
  return strided(x, shape, std::move(strides));
}

Lines::Lines(const Shape& shape, int64_t axis) : length(shape[size_t(axis)]) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (int64_t(i) != axis) (int64_t(i) < axis ? outer : inner) *= shape[i];
}

}  // namespace lathe::reference
