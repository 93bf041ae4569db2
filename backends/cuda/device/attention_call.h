// SPDX-License-Identifier: Apache-2.0
#pragma once
// A launch's attention as a library takes it: sizes as numbers, operands as addresses.
#include <functional>
#include <optional>
#include <vector>

#include "backends/cuda/device/kernel_table.h"
#include "backends/cuda/device/library_attention.h"

namespace lathe::cuda {

class AttentionCall {
 public:
  /// `scratchAt` says where a scratch argument begins in the call's scratch memory.
  AttentionCall(const PlainAttention& attention,
                const std::function<int64_t(const DimExpr&)>& valueOf,
                const std::function<int64_t(const Argument&)>& scratchAt);

  /// Nothing of it is empty: a library takes no empty tensors.
  bool some() const;
  const LibraryAttention& attention() const { return attention_; }
  LibraryAttentionOperands operands(void* const* buffers, std::byte* scratch) const;

  /// Every buffer or scratch memory that it refers to.
  static std::vector<const Argument*> argumentsOf(const PlainAttention& attention);

 private:
  struct Place {
    int buffer = -1;    // or scratch memory
    int64_t bytes = 0;  // from its beginning
    std::byte* in(void* const* buffers, std::byte* scratch) const {
      return (buffer < 0 ? scratch : static_cast<std::byte*>(buffers[buffer])) + bytes;
    }
  };

  LibraryAttention attention_;
  Place q_, k_, v_, y_;
  std::optional<Place> lengths_;
};

}  // namespace lathe::cuda
