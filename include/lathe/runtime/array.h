// SPDX-License-Identifier: Apache-2.0
#pragma once
// Array: a dense row-major tensor of values in host memory. What goes into and comes out of a
// session; the symbolic value of a graph under construction is `Tensor` (lathe/ir/tensor.h).
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lathe/runtime/dtype.h"

namespace lathe {

using Shape = std::vector<int64_t>;

/// Product of the dims; throws Error on overflow or a negative dim.
int64_t elementCount(std::span<const int64_t> shape);
/// "f32[2, 3]"
std::string describe(DType dtype, std::span<const int64_t> shape);

/// What an element of the dtype is in C++: what Array::as takes. 16-bit floats are their bits; for
/// packed elements C++ has no type, at() and set() reach them.
template <class T>
constexpr bool isElementOf(DType dtype) {
  if constexpr (std::is_same_v<T, double>) return dtype == DType::F64;
  if constexpr (std::is_same_v<T, float>) return dtype == DType::F32;
  if constexpr (std::is_same_v<T, uint16_t>) return dtype == DType::BF16 || dtype == DType::F16;
  if constexpr (std::is_same_v<T, int64_t>) return dtype == DType::I64;
  if constexpr (std::is_same_v<T, int32_t>) return dtype == DType::I32;
  if constexpr (std::is_same_v<T, int16_t>) return dtype == DType::I16;
  if constexpr (std::is_same_v<T, int8_t>) return dtype == DType::I8;
  if constexpr (std::is_same_v<T, uint8_t>) return dtype == DType::U8 || dtype == DType::Bool;
  return false;
}

/// A value handle: copies share the storage. Storage is 64-byte aligned when owned.
class Array {
 public:
  Array() = default;
  Array(const Array&) = default;
  Array& operator=(const Array&) = default;
  /// The moved-from Array is undefined.
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept {
    if (this == &other) return *this;
    dtype_ = other.dtype_;
    shape_ = std::move(other.shape_);
    size_ = std::exchange(other.size_, 0);
    data_ = std::exchange(other.data_, nullptr);
    owner_ = std::move(other.owner_);
    return *this;
  }
  /// Zero-filled storage of its own.
  Array(DType dtype, Shape shape);
  /// A view of memory that `owner` keeps alive (a mapped file, a session's buffer). Throws Error
  /// for a null pointer to any elements.
  Array(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner);

  /// Copies `values`; their count must equal the product of `shape`.
  static Array fromFloats(std::span<const float> values, Shape shape);
  static Array fromInts(std::span<const int64_t> values, Shape shape);
  /// The same of numbers in braces: Array::fromFloats({1, 2, 3}, {3}).
  static Array fromFloats(std::initializer_list<float> values, Shape shape) {
    return fromFloats(std::span(values.begin(), values.size()), std::move(shape));
  }
  static Array fromInts(std::initializer_list<int64_t> values, Shape shape) {
    return fromInts(std::span(values.begin(), values.size()), std::move(shape));
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return size_; }
  size_t bytes() const { return bytesOf(dtype_, size_); }
  bool defined() const { return data_ != nullptr; }
  /// True while another Array refers to the same storage.
  bool shared() const { return owner_.use_count() > 1; }

  void* data() { return data_; }
  const void* data() const { return data_; }
  /// All elements, as what they are in C++ (isElementOf). Throws Error (InvalidArgument) for
  /// another dtype and for an undefined Array: in a loop, take the span before it.
  template <class T>
  std::span<T> as() {
    expectElements(isElementOf<T>(dtype_), sizeof(T), std::is_floating_point_v<T>);
    return {static_cast<T*>(data_), size_t(size_)};
  }
  template <class T>
  std::span<const T> as() const {
    expectElements(isElementOf<T>(dtype_), sizeof(T), std::is_floating_point_v<T>);
    return {static_cast<const T*>(data_), size_t(size_)};
  }

  // These throw Error (InvalidArgument) for an undefined Array.
  /// Element `i` in row-major order as a double, whatever the dtype. Throws Error (InvalidArgument)
  /// unless 0 <= i < size().
  double at(int64_t i) const;
  /// Rounds `value` to the dtype (nearest even for floats, truncation for integers) and stores it.
  /// Throws Error (InvalidArgument) for NaN and numbers outside the range of an integer dtype, and
  /// unless 0 <= i < size().
  void set(int64_t i, double value);
  /// A copy in another dtype, converted element by element as `set` does it; an integer that a
  /// narrower dtype cannot hold keeps its low bits, as in PyTorch.
  Array to(DType dtype) const;
  /// The same values under another shape of equal element count, sharing storage.
  Array reshaped(Shape shape) const;
  Array clone() const;

 private:
  void expectElements(bool match, size_t bytes, bool isFloat) const {
    if (!match || !data_) [[unlikely]]
      refuseElements(bytes, isFloat);
  }
  [[noreturn]] void refuseElements(size_t bytes, bool isFloat) const;
  void expectDefined(const char* what) const;
  void expectElement(int64_t i) const;
  double load(int64_t i) const;
  int64_t loadInteger(int64_t i) const;
  void store(int64_t i, double value);
  DType dtype_ = DType::F32;
  Shape shape_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace lathe
