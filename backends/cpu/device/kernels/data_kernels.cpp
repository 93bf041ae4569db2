// SPDX-License-Identifier: Apache-2.0
// Kernels that move data: copies, and updates of a state at a position per batch, which may lie in
// blocks.
#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/device/kernels.h"
#include "backends/cpu/device/kernels/new_rows.h"
#include "lathe/runtime/error.h"

namespace lathe::cpu {
namespace {

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const CallInfo& info) : dtype_(info.in(0)) {}
  size_t bind(const KernelShapes& s) override {
    bytes_ = bytesOf(dtype_, sizeOfAxes(s.shapes[0], 0, s.shapes[0].size()));
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
// replaced.
class UpdateKernel final : public Kernel {
 public:
  explicit UpdateKernel(const CallInfo& info)
      : where_(at(info.call)),
        elementBytes_(int64_t(sizeOf(info.in(0)))),
        wideIndex_(info.in(2) == DType::I64),
        rows_(readConfig<UpdateConfig>(info.config), elementBytes_) {}

  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];
    rows_.bind(s.shapes[1], *s.symbols);
    batch_ = x[0];
    outer_ = sizeOfAxes(x, 1, rows_.axis());
    length_ = x[rows_.axis()];
    inner_ = sizeOfAxes(x, rows_.axis() + 1, x.size()) * elementBytes_;
    return 0;
  }
  void run(void* const* p, std::byte*) override {
    auto* out = static_cast<std::byte*>(p[3]);
    auto* value = static_cast<const std::byte*>(p[1]);
    const int64_t count = rows_.count();
    // Every position is checked before a byte is written.
    for (int64_t b = 0; b < batch_; ++b) {
      int64_t position = integerAt(p[2], wideIndex_, b);
      if (position < 0 || position > length_ - count)
        throw Error(ErrorCode::InvalidArgument,
                    where_ + "position " + std::to_string(position) + " of batch " +
                        std::to_string(b) + " with " + std::to_string(count) +
                        " new elements is outside an axis of " + std::to_string(length_));
    }
    if (out != p[0]) std::memcpy(out, p[0], size_t(batch_ * outer_ * length_ * inner_));
    for (int64_t b = 0; b < batch_; ++b)
      for (int64_t o = 0; o < outer_; ++o) {
        const int64_t position = integerAt(p[2], wideIndex_, b);
        rows_.copy(value, b * outer_ + o, 0, count, inner_,
                   out + ((b * outer_ + o) * length_ + position) * inner_);
      }
  }

 private:
  std::string where_;
  int64_t elementBytes_;
  bool wideIndex_;
  NewRows rows_;
  int64_t batch_ = 0, outer_ = 0, length_ = 0, inner_ = 0;
};

// Blocks [outer, length, inner] of x. Row s of sequence b goes to place p % length of the block
// table[b, p / length], with p = positions[b] + s.
class PagedUpdateKernel final : public Kernel {
 public:
  explicit PagedUpdateKernel(const CallInfo& info)
      : where_(at(info.call)),
        elementBytes_(int64_t(sizeOf(info.in(0)))),
        wideTable_(info.in(2) == DType::I64),
        wideIndex_(info.in(3) == DType::I64),
        rows_(readConfig<UpdateConfig>(info.config), elementBytes_) {}

  size_t bind(const KernelShapes& s) override {
    const Shape& x = s.shapes[0];
    rows_.bind(s.shapes[1], *s.symbols);
    blocks_ = x[0];
    outer_ = sizeOfAxes(x, 1, rows_.axis());
    length_ = x[rows_.axis()];
    inner_ = sizeOfAxes(x, rows_.axis() + 1, x.size()) * elementBytes_;
    entries_ = s.shapes[2][1];
    return 0;
  }

  void run(void* const* p, std::byte*) override {
    auto* out = static_cast<std::byte*>(p[4]);
    auto* value = static_cast<const std::byte*>(p[1]);
    check(p[2], p[3]);
    if (out != p[0]) std::memcpy(out, p[0], size_t(blocks_ * outer_ * length_ * inner_));
    for (int64_t b = 0; b < rows_.batch(); ++b) {
      const int64_t position = integerAt(p[3], wideIndex_, b);
      for (int64_t s = 0, n = 0; s < rows_.count(); s += n) {
        const int64_t place = (position + s) % length_;
        n = std::min(rows_.count() - s, length_ - place);
        const int64_t block = blockOf(p[2], b, position + s);
        for (int64_t o = 0; o < outer_; ++o)
          rows_.copy(value, b * outer_ + o, s, n, inner_,
                     out + ((block * outer_ + o) * length_ + place) * inner_);
      }
    }
  }

 private:
  int64_t blockOf(const void* table, int64_t sequence, int64_t position) const {
    return integerAt(table, wideTable_, sequence * entries_ + position / length_);
  }
  // Everything is checked before a byte is written.
  void check(const void* table, const void* positions) const {
    for (int64_t b = 0; b < rows_.batch(); ++b) {
      const int64_t position = integerAt(positions, wideIndex_, b);
      if (position < 0 || position > entries_ * length_ - rows_.count())
        throw Error(ErrorCode::InvalidArgument,
                    where_ + "position " + std::to_string(position) + " of sequence " +
                        std::to_string(b) + " with " + std::to_string(rows_.count()) +
                        " new elements is outside of " + std::to_string(entries_) + " blocks of " +
                        std::to_string(length_));
      for (int64_t s = 0; s < rows_.count(); s += length_ - (position + s) % length_)
        if (const int64_t block = blockOf(table, b, position + s); block < 0 || block >= blocks_)
          throw outsideOfBlocks(where_, block, (position + s) / length_, b, blocks_);
    }
  }

  std::string where_;
  int64_t elementBytes_;
  bool wideTable_, wideIndex_;
  NewRows rows_;
  int64_t blocks_ = 0, outer_ = 0, length_ = 0, inner_ = 0, entries_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeCopy(const CallInfo& info) {
  return std::make_unique<CopyKernel>(info);
}
std::unique_ptr<Kernel> makeUpdate(const CallInfo& info) {
  return std::make_unique<UpdateKernel>(info);
}
std::unique_ptr<Kernel> makePagedUpdate(const CallInfo& info) {
  return std::make_unique<PagedUpdateKernel>(info);
}

}  // namespace lathe::cpu
