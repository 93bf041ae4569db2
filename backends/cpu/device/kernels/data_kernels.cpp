// SPDX-License-Identifier: Apache-2.0
// Kernels that move data: copies, and the update of a block at a position per batch.
#include <cstring>
#include <optional>

#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/kernels/views.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

int64_t product(const Shape& s, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= s[i];
  return n;
}

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const CallInfo& info) : dtype_(info.in(0)) {}
  size_t bind(const KernelShapes& s) override {
    bytes_ = bytesOf(dtype_, product(s.shapes[0], 0, s.shapes[0].size()));
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    if (bytes_) std::memmove(p[1], p[0], bytes_);
  }

 private:
  DType dtype_;
  size_t bytes_ = 0;
};

// Blocks [outer, length, inner] of x: rows positions[b] .. positions[b] + s of the axis are
// replaced. The new rows may lie in strides; one row is dense.
class UpdateKernel final : public Kernel {
 public:
  explicit UpdateKernel(const CallInfo& info)
      : where_(at(info.call)),
        elementBytes_(int64_t(sizeOf(info.in(0)))),
        wideIndex_(info.in(2) == DType::I64) {
    auto config = readConfig<UpdateConfig>(info.config);
    axis_ = size_t(config.axis);
    if (config.view) view_.emplace(std::move(*config.view));
  }

  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];
    batch_ = x[0];
    outer_ = product(x, 1, axis_);
    length_ = x[axis_];
    inner_ = product(x, axis_ + 1, x.size()) * elementBytes_;
    View view;
    if (view_) {
      view = view_->evaluate(*s.symbols);
    } else {
      view.sizes.assign(s.shapes[1].begin(), s.shapes[1].end());
      for (size_t i = 0; i < view.sizes.size(); ++i)
        view.strides.push_back(product(s.shapes[1], i + 1, s.shapes[1].size()));
    }
    count_ = view.sizes[axis_];
    rowStride_ = view.strides[axis_] * elementBytes_;
    // Where the block of every (batch, outer) starts.
    starts_.assign(1, view.offset * elementBytes_);
    for (size_t i = 0; i < axis_; ++i) {
      std::vector<int64_t> next;
      for (int64_t start : starts_)
        for (int64_t n = 0; n < view.sizes[i]; ++n)
          next.push_back(start + n * view.strides[i] * elementBytes_);
      starts_ = std::move(next);
    }
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    auto* out = static_cast<std::byte*>(p[3]);
    auto* value = static_cast<const std::byte*>(p[1]);
    // Every position is checked before a byte is written.
    for (int64_t b = 0; b < batch_; ++b) {
      int64_t position = positionOf(p[2], b);
      if (position < 0 || position > length_ - count_)
        throw Error(ErrorCode::InvalidArgument,
                    where_ + "position " + std::to_string(position) + " of batch " +
                        std::to_string(b) + " with " + std::to_string(count_) +
                        " new elements is outside an axis of " + std::to_string(length_));
    }
    if (out != p[0]) std::memcpy(out, p[0], size_t(batch_ * outer_ * length_ * inner_));
    for (int64_t b = 0; b < batch_; ++b)
      for (int64_t o = 0; o < outer_; ++o) {
        std::byte* to = out + ((b * outer_ + o) * length_ + positionOf(p[2], b)) * inner_;
        const std::byte* from = value + starts_[size_t(b * outer_ + o)];
        if (rowStride_ == inner_) {
          std::memcpy(to, from, size_t(count_ * inner_));
          continue;
        }
        for (int64_t r = 0; r < count_; ++r)
          std::memcpy(to + r * inner_, from + r * rowStride_, size_t(inner_));
      }
  }

 private:
  int64_t positionOf(const void* positions, int64_t b) const {
    return wideIndex_ ? static_cast<const int64_t*>(positions)[b]
                      : static_cast<const int32_t*>(positions)[b];
  }
  std::string where_;
  size_t axis_ = 0;
  int64_t elementBytes_;
  bool wideIndex_;
  std::optional<SymbolicView> view_;  // of the new rows, if they are not dense
  int64_t batch_ = 0, outer_ = 0, length_ = 0, count_ = 0, inner_ = 0, rowStride_ = 0;
  std::vector<int64_t> starts_;
};

}  // namespace

std::unique_ptr<Kernel> makeCopy(const CallInfo& info) {
  return std::make_unique<CopyKernel>(info);
}
std::unique_ptr<Kernel> makeUpdate(const CallInfo& info) {
  return std::make_unique<UpdateKernel>(info);
}

}  // namespace lathe::cpu
