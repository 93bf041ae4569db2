// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/memory_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/hostexec/sanitizer.h"
#include "runtime/error.h"

namespace lathe::cuda::host {
namespace {

constexpr size_t kPage = 4096, kAlign = 256;
constexpr unsigned char kZone = 0xa5;

size_t roundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }
size_t slack(const Buffer& b) { return roundUp(b.bytes, kAlign) - b.bytes; }
size_t pages(const Buffer& b) { return roundUp(std::max<size_t>(b.bytes, 1), kPage); }
size_t cellCount(const Buffer& b) { return b.bytes / 2 + 1; }
size_t cellBytes(const Buffer& b) { return 2 * cellCount(b) * sizeof(GlobalCell); }

void* reserve(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

bool overran(const Buffer& b) {
  unpoison(b.base + b.bytes, slack(b));
  const auto* zone = reinterpret_cast<const unsigned char*>(b.base + b.bytes);
  const bool changed =
      std::any_of(zone, zone + slack(b), [](unsigned char c) { return c != kZone; });
  poison(b.base + b.bytes, slack(b));
  return changed;
}

void unmap(const Buffer& b) {
  unpoison(b.base, pages(b));
  const auto start = reinterpret_cast<uintptr_t>(b.base) / kPage * kPage - kPage;
  munmap(reinterpret_cast<void*>(start), pages(b) + 2 * kPage);
  if (b.cells) munmap(b.cells, cellBytes(b));
}

bool below(const char* p, const Buffer& b) { return p < b.base; }

}  // namespace

MemoryMap::~MemoryMap() {
  for (const Buffer& b : buffers_) unmap(b);
}

void* MemoryMap::allocate(size_t bytes, std::string_view name) {
  Buffer b{nullptr, bytes, std::string(name), nullptr, nullptr};
  auto* start = static_cast<char*>(reserve(pages(b) + 2 * kPage, PROT_NONE));
  if (!start || mprotect(start + kPage, pages(b), PROT_READ | PROT_WRITE) != 0)
    throw Error(ErrorCode::OutOfMemory, "expected " + std::to_string(bytes) + " bytes for " +
                                            b.name + " in host memory; the system refused");
  b.base = start + kPage + pages(b) - roundUp(bytes, kAlign);
  if (bytes == 0) b.base = start + kPage;
  if (checked_) {
    b.cells = static_cast<GlobalCell*>(reserve(cellBytes(b), PROT_READ | PROT_WRITE));
    if (b.cells) b.oddCells = b.cells + cellCount(b);
  }
  std::memset(b.base, 0xff, bytes);  // NaN in every float format, a huge index
  std::memset(b.base + bytes, kZone, slack(b));
  poison(b.base + bytes, slack(b));
  buffers_.insert(std::upper_bound(buffers_.begin(), buffers_.end(), b.base, below), b);
  return b.base;
}

void MemoryMap::release(void* memory) {
  if (!memory) return;
  auto found = std::find_if(buffers_.begin(), buffers_.end(),
                            [&](const Buffer& b) { return b.base == memory; });
  if (found == buffers_.end())
    throw Error(ErrorCode::InvalidArgument,
                "release: expected memory of this driver that is not released yet");
  const Buffer b = *found;
  const bool bad = overran(b);
  buffers_.erase(found);
  unmap(b);
  if (bad)
    throw Error(ErrorCode::Numeric, "a kernel wrote past the end of " + b.name + " (buffer of " +
                                        std::to_string(b.bytes) +
                                        " bytes); run with LATHE_CUDA_HOST=check to see which");
}

const Buffer* MemoryMap::at(const char* address) const {
  auto it = std::upper_bound(buffers_.begin(), buffers_.end(), address, below);
  return it == buffers_.begin() ? nullptr : &*--it;
}

const Buffer* MemoryMap::above(const char* address) const {
  auto it = std::upper_bound(buffers_.begin(), buffers_.end(), address, below);
  return it == buffers_.end() ? nullptr : &*it;
}

void MemoryMap::expectInside(const void* p, size_t bytes, const char* what) const {
  const auto* from = static_cast<const char*>(p);
  const Buffer* b = at(from);
  if (bytes == 0 || (b && from + bytes <= b->base + b->bytes)) return;
  throw Error(ErrorCode::InvalidArgument,
              std::string(what) + ": expected " + std::to_string(bytes) +
                  " bytes inside one buffer of this driver" +
                  (b ? ", got offset " + std::to_string(from - b->base) + " of " + b->name + " (" +
                           std::to_string(b->bytes) + " bytes)"
                     : ", got memory that it did not allocate"));
}

void MemoryMap::forget(const void* p, size_t bytes) {
  const Buffer* b = at(static_cast<const char*>(p));
  if (!b || !b->cells) return;
  const size_t offset = size_t(static_cast<const char*>(p) - b->base);
  const size_t cells = (offset + bytes + 1) / 2 - offset / 2;
  std::memset(b->cells + offset / 2, 0, cells * sizeof(GlobalCell));
}

std::string MemoryMap::overrun() const {
  for (const Buffer& b : buffers_)
    if (overran(b)) return b.name;
  return "";
}

}  // namespace lathe::cuda::host
