// SPDX-License-Identifier: Apache-2.0
#pragma once
// Array: a dense row-major tensor of values in host memory. What goes into and comes out of a
// session; the symbolic value of a graph under construction is `Tensor` (ir/tensor.h).
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/dtype.h"

namespace lathe {

using Shape = std::vector<int64_t>;

/// Product of the dims; throws Error on overflow or a negative dim.
int64_t elementCount(std::span<const int64_t> shape);
/// "f32[2, 3]"
std::string describe(DType dtype, std::span<const int64_t> shape);

/// A value handle: copies share the storage. Storage is 64-byte aligned when owned.
class Array {
 public:
  Array() = default;
  /// Zero-filled storage of its own.
  Array(DType dtype, Shape shape);
  /// A view of memory that `owner` keeps alive (a mapped file, a session's buffer).
  Array(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner);

  /// Copies `values`; their count must equal the product of `shape`.
  static Array fromFloats(std::span<const float> values, Shape shape);
  static Array fromInts(std::span<const int64_t> values, Shape shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return size_; }
  size_t bytes() const { return size_t(size_) * sizeOf(dtype_); }
  bool defined() const { return data_ != nullptr; }
  /// True while another Array refers to the same storage.
  bool shared() const { return owner_.use_count() > 1; }

  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  std::span<T> as() {
    return {static_cast<T*>(data_), size_t(size_)};
  }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data_), size_t(size_)};
  }

  /// Element `i` in row-major order as a double, whatever the dtype.
  double at(int64_t i) const;
  /// Rounds `value` to the dtype (nearest even for floats, truncation for integers) and stores it.
  void set(int64_t i, double value);
  /// A copy in another dtype, rounded element by element.
  Array to(DType dtype) const;
  /// The same values under another shape of equal element count, sharing storage.
  Array reshaped(Shape shape) const;
  Array clone() const;

 private:
  DType dtype_ = DType::F32;
  Shape shape_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace lathe
