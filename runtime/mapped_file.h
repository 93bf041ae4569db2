// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files in memory: a checkpoint is mapped, not read; what is written appears whole or not at all.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// A regular file mapped copy-on-write: the file itself is never changed, and a write through a
/// view stays in this process. The file must not be shortened while mapped: the operating system
/// then ends the process (SIGBUS) at the next access past the new end.
class MappedFile {
 public:
  /// Refuses directories, FIFOs, sockets and devices (InvalidFile) and reports what the operating
  /// system refused (Io).
  static std::shared_ptr<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::byte* data() { return data_; }
  size_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  std::byte* data_;
  size_t size_;
};

/// Gives memory back: the whole pages of a range that still hold what a file holds. They stay valid,
/// and the next access fetches them from the file (or the system's cache of it) again. Pages that
/// were written to and memory that is no file's stay as they are, as does everything on a system
/// that does not tell which is which.
void releaseFilePages(const void* data, size_t bytes);

/// Writes `chunks` one after the other to a temporary file beside `path`, syncs it, renames it
/// over `path` and syncs the folder: a reader sees the old file or the whole new one. Throws
/// Error(Io) and leaves no temporary file behind.
void writeFileAtomically(const std::string& path,
                         const std::vector<std::span<const std::byte>>& chunks);
void writeFileAtomically(const std::string& path, std::string_view text);

inline std::span<const std::byte> asBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace lathe
