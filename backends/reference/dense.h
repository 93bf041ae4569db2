// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interpreter's tensor: doubles for every float dtype, 64-bit integers for every other, so each
// op is written once. What a dtype cannot hold is rounded or wrapped when a value is made.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lathe/runtime/array.h"

namespace lathe::reference {

/// Floats where they lie, in the dtype they have there: element `index` of a value is element
/// `offset + sum(index * strides)` of the array.
struct Stored {
  Array array;
  Shape strides;
  int64_t offset = 0;
};

/// A value handle in row-major order; copies share the elements, which never change once made.
/// Large weights stay as they are stored until an op asks for doubles: most of them are only
/// multiplied with.
struct Dense {
  DType dtype = DType::F32;
  Shape shape;
  std::shared_ptr<const std::vector<double>> reals;      ///< float dtypes
  std::shared_ptr<const std::vector<int64_t>> integers;  ///< integer dtypes; Bool as 0 and 1
  std::shared_ptr<const Stored> stored;                  ///< in place of `reals`

  bool isReal() const { return integers == nullptr; }
  int64_t size() const {
    if (stored) return elementCount(shape);
    return int64_t(isReal() ? reals->size() : integers->size());
  }
  int64_t rank() const { return int64_t(shape.size()); }
};

/// Calls `read(first, convert)`: the address of the first element, and what makes a double of one.
template <class F>
void readStored(const Stored& s, F read) {
  switch (s.array.dtype()) {
    case DType::F64:
      return read(s.array.as<double>().data() + s.offset, [](double v) { return v; });
    case DType::F32:
      return read(s.array.as<float>().data() + s.offset, [](float v) { return double(v); });
    case DType::BF16:
      return read(s.array.as<uint16_t>().data() + s.offset,
                  [](uint16_t v) { return double(bf16ToFloat(v)); });
    default:
      return read(s.array.as<uint16_t>().data() + s.offset,
                  [](uint16_t v) { return double(f16ToFloat(v)); });
  }
}

/// The value as `dtype` stores it.
double roundTo(DType dtype, double value);
/// The value modulo the width of `dtype`; Bool keeps "not zero".
int64_t wrapTo(DType dtype, int64_t value);
int64_t lowestInteger(DType dtype);
int64_t highestInteger(DType dtype);

/// Elements that `dtype` can already hold, or that are meant to stay unrounded.
Dense makeReals(DType dtype, Shape shape, std::vector<double> values);
Dense makeIntegers(DType dtype, Shape shape, std::vector<int64_t> values);

/// `dtype` is the element type in the IR; a float Array of any width fits a float one.
Dense fromArray(const Array& array, DType dtype);
/// The same for one that does not change while the value lives: a large float one is not copied.
Dense fromStored(const Array& array, DType dtype);
/// In its own dtype, or floats as f64 when `widen`.
Array toArray(const Dense& value, bool widen);

/// Row-major strides in elements.
Shape stridesOf(const Shape& shape);
/// `offset + sum(index * stride)` for every index of `shape` in row-major order.
std::vector<int64_t> stridedIndices(const Shape& shape, std::span<const int64_t> strides,
                                    int64_t offset = 0);
/// Element i of the result is element `indices[i]` of the sources laid end to end. The sources have
/// one dtype and are settled.
Dense pick(std::span<const Dense> sources, Shape shape, std::span<const int64_t> indices);
/// NumPy's common shape of two that are known to broadcast.
Shape broadcastShape(const Shape& a, const Shape& b);
/// Repeats dims of 1 and adds leading axes; shares the elements if the shapes are equal.
Dense stretch(const Dense& x, const Shape& shape);

/// An array seen as [outer, length, inner] around one axis.
struct Lines {
  Lines(const Shape& shape, int64_t axis);
  int64_t outer = 1, length, inner = 1;
  /// Position of element `i` of the line (o, j).
  int64_t at(int64_t o, int64_t i, int64_t j) const { return (o * length + i) * inner + j; }
};

}  // namespace lathe::reference
