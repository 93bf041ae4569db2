// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files in memory: a checkpoint is mapped, text is read whole and has a largest size; what is
// written appears whole or not at all. Every file that a user names is opened here.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// What a file is read as, and how large such a file may be.
struct FileKind {
  std::string_view name;
  size_t maxBytes;
};
inline constexpr FileKind kIrTextFile{"IR text", size_t(64) << 20};
inline constexpr FileKind kPatternFile{"a pattern file", size_t(16) << 20};
inline constexpr FileKind kConfigFile{"a configuration", size_t(16) << 20};
inline constexpr FileKind kTokenizerFile{"a tokenizer", size_t(256) << 20};
inline constexpr FileKind kChatTemplateFile{"a chat template", size_t(1) << 20};
inline constexpr FileKind kShardIndexFile{"an index of shards", size_t(256) << 20};
inline constexpr FileKind kPromptFile{"a prompt", size_t(64) << 20};
inline constexpr FileKind kTuningFile{"tuning records", size_t(16) << 20};
inline constexpr FileKind kSourceFile{"a source file", size_t(4) << 20};
inline constexpr FileKind kCacheFile{"a file of a cache", size_t(64) << 20};

/// The small files beside a model's weights, which a program compiled from it holds too.
struct ModelFile {
  const char* name;
  FileKind kind;
};
inline constexpr ModelFile kModelFiles[] = {{"config.json", kConfigFile},
                                            {"generation_config.json", kConfigFile},
                                            {"tokenizer.json", kTokenizerFile},
                                            {"tokenizer_config.json", kConfigFile},
                                            {"chat_template.jinja", kChatTemplateFile}};

/// The bytes of a regular file of at most `kind.maxBytes`. Refuses directories, FIFOs, sockets,
/// devices and longer files (InvalidFile), whatever size the system says they have, and reports
/// what the system refused (Io). Waits for nobody: a file whose bytes are not there yet is refused
/// too.
std::string readWholeFile(const std::string& path, const FileKind& kind);
/// The same of a stream that a user opened, such as standard input, which may be a pipe. `name` is
/// what errors call it.
std::string readWholeStream(std::FILE* stream, const std::string& name, const FileKind& kind);

/// Throws as readWholeFile does if `path` is there and is no regular file: for files that another
/// library opens.
void expectRegularFile(const std::string& path);
/// The same of a shared library for the loader, which maps the segments that it names without
/// asking how long the file is: a shorter one would end the process where it is touched. Another
/// processor's is refused, too.
void expectWholeLibrary(const std::string& path);

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

  /// Reads `count` runs of `run` bytes, which begin `stride` bytes apart, one behind the other to
  /// `to`. Of what lies between them no more is read than the system must: through the mapping it
  /// would fetch it ahead. Throws Error(Io).
  void readRuns(size_t offset, size_t run, size_t stride, size_t count, std::byte* to) const;
  /// Has the system fetch these bytes of the mapping now, and nothing ahead of them: what it reads
  /// ahead of an ordinary mapping may be megabytes.
  void fetch(size_t offset, size_t bytes) { fetchRuns(offset, bytes, bytes, 1); }
  /// The same of `count` runs of `run` bytes, which begin `stride` bytes apart.
  void fetchRuns(size_t offset, size_t run, size_t stride, size_t count);

 private:
  MappedFile(std::string path, std::byte* data, size_t size, int descriptor)
      : path_(std::move(path)), data_(data), size_(size), descriptor_(descriptor) {}
  std::string path_;
  std::byte* data_;
  size_t size_;
  int descriptor_;
};

/// Gives memory back: the whole pages of a range that still hold what a file holds. They stay
/// valid, and the next access fetches them from the file (or the system's cache of it) again. Pages
/// that were written to and memory that is no file's stay as they are, as does everything on a
/// system that does not tell which is which.
void releaseFilePages(const void* data, size_t bytes);
/// Gives the whole pages of this process's own memory back: they hold nothing afterwards, and come
/// again when they are written.
void discardPages(void* data, size_t bytes);

/// Writes `chunks` one after the other to a temporary file beside `path`, syncs it, renames it
/// over `path` and syncs the folder: a reader sees the old file or the whole new one. Throws
/// Error(Io) and leaves no temporary file behind. A device, a FIFO or a directory is not replaced
/// (InvalidArgument).
void writeFileAtomically(const std::string& path,
                         const std::vector<std::span<const std::byte>>& chunks);
void writeFileAtomically(const std::string& path, std::string_view text);

inline std::span<const std::byte> asBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace lathe
