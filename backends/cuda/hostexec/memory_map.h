// SPDX-License-Identifier: Apache-2.0
#pragma once
// The global memory of host execution: named buffers between inaccessible pages.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::cuda::host {

/// What the checks know of two bytes of global memory: its last write and one last read. Bytes that
/// are accessed one by one have a cell each, the second one in Buffer::oddCells.
struct GlobalCell {
  uint32_t writeLaunch, readLaunch;  ///< 0: never
  uint32_t writeBlock, writeClock, writePlace;
  uint32_t readBlock, readClock, readPlace;
  uint32_t constantLaunch;  ///< that read it by ld.global.nc
  uint16_t writeThread, readThread;
  bool split;
};

struct Buffer {
  char* base;
  size_t bytes;
  std::string name;
  /// All views of it, each of 2^shift bytes with inaccessible pages around the buffer.
  char* region;
  int shift;
  mutable uint64_t mapped = 0;  ///< the views in use, by bit
  GlobalCell* cells = nullptr;  ///< null where nothing is checked
  GlobalCell* oddCells = nullptr;
};

/// What an address means: the buffer of it or below it, where in it, through which view.
struct Location {
  const Buffer* buffer = nullptr;
  ptrdiff_t offset = 0;
  int view = 0;
};

class MemoryMap {
 public:
  explicit MemoryMap(bool checked) : checked_(checked) {}
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  /// Aligned to 256 bytes and filled with NaN; ends at an inaccessible page, to 256 bytes. Throws
  /// Error (OutOfMemory).
  void* allocate(size_t bytes, std::string_view name);
  /// Throws Error (InvalidArgument) for what `allocate` did not return, or for a buffer that was
  /// written past its end.
  void release(void* memory);
  /// Where memory of `allocate` is mapped a second time, so that accesses through one pointer are
  /// told from those through another: `number` from 1 to kViews. Where nothing is checked, and for
  /// memory of others, `memory` itself.
  char* view(char* memory, int number) const;
  static constexpr int kViews = 63;
  /// The buffer that begins at or below an address, or none.
  Location locate(const char* address) const;
  /// The first buffer above an address, or null.
  const Buffer* above(const char* address) const;
  /// Throws Error unless [p, p + bytes) lies in one buffer.
  void expectInside(const void* p, size_t bytes, const char* what) const;
  /// The host wrote here: what kernels did before is history.
  void forget(const void* p, size_t bytes);
  /// The name of a buffer whose bytes just behind its end have changed, or "".
  std::string overrun() const;

 private:
  const Buffer* at(const char* address) const;

  std::vector<Buffer> buffers_;  // sorted by base
  const bool checked_;
};

}  // namespace lathe::cuda::host
