// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/gpu_driver_staging.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace lathe::cuda {

StagingBuffer::StagingBuffer(const api::DriverApi& api, api::Stream stream, Check check,
                             Await await)
    : api_(api), stream_(stream), check_(std::move(check)), await_(std::move(await)) {
  try {
    for (Half& half : halves_) {
      void* memory = nullptr;
      check_(api_.memHostAlloc(&memory, kHalf, 0), "cuMemHostAlloc", "pinned " + inBytes(kHalf));
      half.memory = static_cast<std::byte*>(memory);
      check_(api_.eventCreate(&half.copied, api::kEventDisableTiming), "cuEventCreate", {});
    }
  } catch (...) {
    close();
    throw;
  }
}

StagingBuffer::~StagingBuffer() { close(); }

void StagingBuffer::close() {
  for (Half& half : halves_) {
    if (half.copied) api_.eventDestroy(half.copied);
    if (half.memory) api_.memFreeHost(half.memory);
  }
}

void StagingBuffer::waitFor(Half& half) {
  await_(half.copied);
  check_(api_.eventSynchronize(half.copied), "cuEventSynchronize", "a copy through pinned memory");
}

std::byte* StagingBuffer::room(size_t wanted, size_t* granted) {
  if (halves_[current_].used == kHalf) {
    check_(api_.eventRecord(halves_[current_].copied, stream_), "cuEventRecord", {});
    current_ ^= 1;
    // An event that was never recorded is over at once.
    waitFor(halves_[current_]);
    halves_[current_].used = 0;
  }
  Half& half = halves_[current_];
  *granted = std::min(wanted, kHalf - half.used);
  std::byte* at = half.memory + half.used;
  // The next piece starts on a line of its own; a half that is nearly full counts as full.
  half.used = std::min(kHalf, (half.used + *granted + 255) / 256 * 256);
  return at;
}

void StagingBuffer::upload(void* to, const void* from, size_t bytes) {
  auto* source = static_cast<const std::byte*>(from);
  for (size_t done = 0; done < bytes;) {
    size_t piece = 0;
    std::byte* pinned = room(bytes - done, &piece);
    std::memcpy(pinned, source + done, piece);
    check_(api_.memcpyHtoDAsync(reinterpret_cast<api::DevicePointer>(to) + done, pinned, piece,
                                stream_),
           "cuMemcpyHtoDAsync", inBytes(piece) + " of " + inBytes(bytes));
    done += piece;
  }
}

void StagingBuffer::download(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  // What uploads have put into the halves is read before the stream reaches these copies, and
  // both are empty when the last one is over.
  auto* target = static_cast<std::byte*>(to);
  std::array<size_t, 2> pending{};  // bytes of the piece in each half
  size_t asked = 0, done = 0;
  for (size_t turn = 0; done < bytes; turn ^= 1) {
    Half& half = halves_[turn];
    if (pending[turn]) {
      waitFor(half);
      std::memcpy(target + done, half.memory, pending[turn]);
      done += std::exchange(pending[turn], 0);
    }
    if (asked == bytes) continue;
    pending[turn] = std::min(kHalf, bytes - asked);
    check_(api_.memcpyDtoHAsync(half.memory, reinterpret_cast<api::DevicePointer>(from) + asked,
                                pending[turn], stream_),
           "cuMemcpyDtoHAsync", inBytes(pending[turn]) + " of " + inBytes(bytes));
    check_(api_.eventRecord(half.copied, stream_), "cuEventRecord", {});
    asked += pending[turn];
  }
  for (Half& half : halves_) half.used = 0;
  current_ = 0;
}

}  // namespace lathe::cuda
