// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between pageable memory and the GPU that go through pinned memory, so that they are
// asynchronous and run at the bus's speed: the CPU fills one half while the GPU reads the other.
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "backends/cuda/device/driver_api.h"

namespace lathe::cuda {

/// For error messages.
inline std::string inBytes(size_t bytes) { return std::to_string(bytes) + " bytes"; }

class StagingBuffer {
 public:
  static constexpr size_t kHalf = size_t(8) << 20;
  /// Throws Error for what is not success: (result, call, details).
  using Check = std::function<void(api::Result, std::string_view, std::string_view)>;
  /// Called before an event is waited for; may throw.
  using Await = std::function<void(api::Event)>;

  StagingBuffer(const api::DriverApi& api, api::Stream stream, Check check, Await await);
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  /// `from` may be reused on return; the copy is in the stream's order.
  void upload(void* to, const void* from, size_t bytes);
  /// Waits for what is in the stream and for the copy.
  void download(void* to, const void* from, size_t bytes);

 private:
  struct Half {
    std::byte* memory = nullptr;
    size_t used = 0;
    api::Event copied = nullptr;
  };
  /// Room for up to `wanted` bytes in the current half, or else in the other once it is read.
  std::byte* room(size_t wanted, size_t* granted);
  void waitFor(Half& half);
  void close();

  const api::DriverApi& api_;
  api::Stream stream_;
  Check check_;
  Await await_;
  std::array<Half, 2> halves_;
  size_t current_ = 0;
};

}  // namespace lathe::cuda
