// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/memory_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cuda/hostexec/sanitizer.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda::host {
namespace {

constexpr size_t kPage = 4096, kAlign = 256;
constexpr unsigned char kUntouched = 0xa5;

size_t roundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }
size_t slack(const Buffer& b) { return roundUp(b.bytes, kAlign) - b.bytes; }
size_t pages(const Buffer& b) { return roundUp(std::max<size_t>(b.bytes, 1), kPage); }
size_t cellCount(const Buffer& b) { return b.bytes / 2 + 1; }
size_t cellBytes(const Buffer& b) { return 2 * cellCount(b) * sizeof(GlobalCell); }

// Power of two, so that an address tells its view fast.
int shiftOf(const Buffer& b) { return std::bit_width(pages(b) + 2 * kPage - 1); }

void* map(void* at, size_t bytes, int protection, int flags) {
  void* p = mmap(at, bytes, protection, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

bool overran(const Buffer& b) {
  unpoison(b.base + b.bytes, slack(b));
  const auto* zone = reinterpret_cast<const unsigned char*>(b.base + b.bytes);
  const bool changed =
      std::any_of(zone, zone + slack(b), [](unsigned char c) { return c != kUntouched; });
  poison(b.base + b.bytes, slack(b));
  return changed;
}

void unmap(const Buffer& b) {
  unpoison(b.base, pages(b));
  munmap(b.region, b.cells ? size_t(MemoryMap::kViews + 1) << b.shift : size_t(1) << b.shift);
  if (b.cells) munmap(b.cells, cellBytes(b));
}

bool below(const char* p, const Buffer& b) { return p < b.base; }

}  // namespace

MemoryMap::~MemoryMap() {
  for (const Buffer& b : buffers_) unmap(b);
}

void* MemoryMap::allocate(size_t bytes, std::string_view name) {
  Buffer b{nullptr, bytes, std::string(name), nullptr, 0};
  b.shift = shiftOf(b);
  const size_t views = checked_ ? kViews + 1 : 1;
  auto expect = [&](bool given) {
    if (given) return;
    if (b.region) munmap(b.region, views << b.shift);
    throw Error(ErrorCode::OutOfMemory, "expected " + std::to_string(bytes) + " bytes for " +
                                            b.name + " in host memory; the system refused");
  };
  const int access = PROT_READ | PROT_WRITE;
  b.region = static_cast<char*>(map(nullptr, views << b.shift, PROT_NONE, MAP_PRIVATE));
  expect(b.region);
  // Shared with the views to come.
  expect(
      map(b.region + kPage, pages(b), access, MAP_FIXED | (checked_ ? MAP_SHARED : MAP_PRIVATE)));
  b.base = b.region + kPage + pages(b) - roundUp(bytes, kAlign);
  if (bytes == 0) b.base = b.region + kPage;
  if (checked_) {
    b.cells = static_cast<GlobalCell*>(map(nullptr, cellBytes(b), access, MAP_PRIVATE));
    expect(b.cells);
    b.oddCells = b.cells + cellCount(b);
  }
  std::memset(b.base, 0xff, bytes);  // NaN in every float format, a huge index
  std::memset(b.base + bytes, kUntouched, slack(b));
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

Location MemoryMap::locate(const char* address) const {
  const Buffer* b = at(address);
  if (!b) return {};
  const auto view = size_t(address - b->region) >> b->shift;
  if (!b->cells || view > size_t(kViews)) return {b, address - b->base, 0};
  return {b, address - b->base - ptrdiff_t(view << b->shift), int(view)};
}

char* MemoryMap::view(char* memory, int number) const {
  const auto [b, offset, from] = locate(memory);
  if (!b || !b->cells || from || number > kViews || offset > ptrdiff_t(b->bytes)) return memory;
  const size_t distance = size_t(number) << b->shift;
  if (!(b->mapped >> number & 1)) {
    char* first = b->region + kPage;
    // Of a shared mapping, an old size of 0 makes a second one.
    if (mremap(first, 0, pages(*b), MREMAP_MAYMOVE | MREMAP_FIXED, first + distance) == MAP_FAILED)
      throw Error(ErrorCode::OutOfMemory, "no second mapping of " + b->name);
    b->mapped |= uint64_t(1) << number;
  }
  return memory + distance;
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
