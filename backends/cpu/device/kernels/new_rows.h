// SPDX-License-Identifier: Apache-2.0
#pragma once
// The block that an update writes: rows of one axis for every index of the axes before it. The rows
// may lie in strides; one row is dense.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/cpu/device/kernels/views.h"

namespace lathe::cpu {

/// Elements of the axes [from, to).
inline int64_t sizeOfAxes(const Shape& s, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= s[i];
  return n;
}

class NewRows {
 public:
  /// `elementBytes` of a dense tensor, unless the config has a view.
  NewRows(const UpdateConfig& config, int64_t elementBytes)
      : axis_(size_t(config.axis)), elementBytes_(elementBytes) {
    if (config.view) view_.emplace(*config.view);
  }

  void bind(const Shape& dense, const SymbolValues& symbols) {
    View view;
    if (view_) {
      view = view_->evaluate(symbols);
    } else {
      view.sizes.assign(dense.begin(), dense.end());
      for (size_t i = 0; i < view.sizes.size(); ++i)
        view.strides.push_back(sizeOfAxes(dense, i + 1, dense.size()));
    }
    batch_ = view.sizes[0];
    count_ = view.sizes[axis_];
    stride_ = view.strides[axis_] * elementBytes_;
    starts_.assign(1, view.offset * elementBytes_);
    for (size_t i = 0; i < axis_; ++i) {
      std::vector<int64_t> next;
      for (int64_t start : starts_)
        for (int64_t n = 0; n < view.sizes[i]; ++n)
          next.push_back(start + n * view.strides[i] * elementBytes_);
      starts_ = std::move(next);
    }
  }

  size_t axis() const { return axis_; }
  int64_t batch() const { return batch_; }  ///< of axis 0
  int64_t count() const { return count_; }  ///< rows
  /// Copies `count` rows of `rowBytes`, from row `first` of the n-th index of the axes in front on,
  /// to where they lie one behind the other.
  void copy(const std::byte* value, int64_t n, int64_t first, int64_t count, int64_t rowBytes,
            std::byte* to) const {
    const std::byte* from = value + starts_[size_t(n)] + first * stride_;
    if (stride_ == rowBytes) {
      std::memcpy(to, from, size_t(count * rowBytes));
      return;
    }
    for (int64_t r = 0; r < count; ++r)
      std::memcpy(to + r * rowBytes, from + r * stride_, size_t(rowBytes));
  }

 private:
  size_t axis_;
  int64_t elementBytes_;
  std::optional<SymbolicView> view_;
  int64_t batch_ = 0, count_ = 0, stride_ = 0;
  std::vector<int64_t> starts_;
};

/// The i-th of integers in 32 or 64 bits.
inline int64_t integerAt(const void* integers, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(integers)[i]
              : int64_t(static_cast<const int32_t*>(integers)[i]);
}

}  // namespace lathe::cpu
