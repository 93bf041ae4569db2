// SPDX-License-Identifier: Apache-2.0
#include "runtime/mapped_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

Error systemError(const std::string& path, const char* action, int number = errno) {
  return Error(ErrorCode::Io, path + ": " + action + ": " + std::strerror(number));
}

#ifdef __aarch64__
constexpr auto kMachine = EM_AARCH64;
#else
constexpr auto kMachine = EM_X86_64;
#endif

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// What a clone without Git LFS leaves in place of a large file.
void refusePointer(int fd, const std::string& path, const struct stat& info) {
  constexpr std::string_view begin = "version https://git-lfs.github.com/spec/";
  char head[begin.size()];
  if (info.st_size <= 1024 && ::pread(fd, head, begin.size(), 0) == ssize_t(begin.size()) &&
      std::string_view(head, begin.size()) == begin)
    throw Error(ErrorCode::InvalidFile,
                path +
                    ": expected the file itself, got a pointer of Git LFS to it; run `git lfs "
                    "pull` in its folder, or download it");
}

FileDescriptor openRegular(const std::string& path, struct stat& info) {
  if (path.find('\0') != std::string::npos)
    throw Error(ErrorCode::Io, "a path contains a NUL character");
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) throw systemError(path, "cannot open");
  if (::fstat(fd.get(), &info) != 0) throw systemError(path, "cannot stat");
  if (!S_ISREG(info.st_mode))
    throw Error(ErrorCode::InvalidFile,
                path + ": expected a regular file, got " + kindOf(info.st_mode));
  refusePointer(fd.get(), path, info);
  return fd;
}

Error tooLarge(const std::string& path, const FileKind& kind) {
  return Error(ErrorCode::InvalidFile, path + ": expected " + std::string(kind.name) +
                                           " of at most " + std::to_string(kind.maxBytes) +
                                           " bytes, the file is larger");
}

// Reads until `read` gives nothing: a file of /proc has bytes although its size is 0.
template <class Read>
std::string readUntilTheEnd(const std::string& path, const FileKind& kind, size_t expected,
                            Read read) {
  std::string text;
  text.reserve(std::min(expected, kind.maxBytes) + 1);
  constexpr size_t step = size_t(64) << 10;
  while (text.size() <= kind.maxBytes) {
    const size_t done = text.size();
    text.resize(std::max(text.capacity(), done + step));
    const size_t got = read(text.data() + done, text.size() - done);
    text.resize(done + got);
    if (got == 0) return text;
  }
  throw tooLarge(path, kind);
}

void writeAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    // One call writes at most 2 GiB on Linux; smaller steps keep the loop ordinary.
    ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), size_t(1) << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw systemError(path, "cannot write");
    bytes = bytes.subspan(size_t(n));
  }
}

}  // namespace

std::string readWholeFile(const std::string& path, const FileKind& kind) {
  struct stat info;
  FileDescriptor fd = openRegular(path, info);
  if (size_t(info.st_size) > kind.maxBytes) throw tooLarge(path, kind);
  return readUntilTheEnd(path, kind, size_t(info.st_size), [&](char* to, size_t bytes) {
    ssize_t n;
    do n = ::read(fd.get(), to, bytes);
    while (n < 0 && errno == EINTR);
    if (n < 0) throw systemError(path, "cannot read");
    return size_t(n);
  });
}

std::string readWholeStream(std::FILE* stream, const std::string& name, const FileKind& kind) {
  return readUntilTheEnd(name, kind, 0, [&](char* to, size_t bytes) {
    const size_t n = std::fread(to, 1, bytes, stream);
    if (n == 0 && std::ferror(stream)) throw systemError(name, "cannot read");
    return n;
  });
}

void expectRegularFile(const std::string& path) {
  struct stat info;
  openRegular(path, info);
}

void expectWholeLibrary(const std::string& path) {
  struct stat info;
  const FileDescriptor fd = openRegular(path, info);
  const auto size = uint64_t(info.st_size);
  auto read = [&](auto& to, uint64_t from) {
    return ::pread(fd.get(), &to, sizeof to, off_t(from)) == ssize_t(sizeof to);
  };
  Elf64_Ehdr header;
  // What is no library the loader refuses itself.
  if (!read(header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  // It says of another processor's that there is no such file.
  if (header.e_machine != kMachine)
    throw Error(ErrorCode::InvalidFile,
                path + ": the shared library is for another processor: ELF machine " +
                    std::to_string(header.e_machine) + ", expected " + std::to_string(kMachine));
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (read(segment, header.e_phoff + i * sizeof segment) &&
        (segment.p_type != PT_LOAD ||
         (segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset)))
      continue;
    throw Error(ErrorCode::InvalidFile,
                path + ": the shared library ends early, after " + std::to_string(size) + " bytes");
  }
}

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path) {
  struct stat info;
  FileDescriptor fd = openRegular(path, info);
  size_t size = size_t(info.st_size);
  void* data = nullptr;
  if (size > 0) {  // mmap refuses length 0
    // NORESERVE: a copy-on-write mapping would else count as memory in use in full.
    data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd.get(), 0);
    if (data == MAP_FAILED) throw systemError(path, "cannot map into memory");
  }
  // Reading ahead is for those who read on; the mapping does so by itself.
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  return std::shared_ptr<MappedFile>(
      new MappedFile(path, static_cast<std::byte*>(data), size, fd.release()));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
  ::close(descriptor_);
}

void MappedFile::readRuns(size_t offset, size_t run, size_t stride, size_t count,
                          std::byte* to) const {
  auto read = [&](size_t at, size_t bytes, std::byte* target) {
    while (bytes > 0) {
      const ssize_t n = ::pread(descriptor_, target, std::min(bytes, size_t(1) << 30), off_t(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw systemError(path_, "cannot read");
      if (n == 0) throw Error(ErrorCode::Io, path_ + ": cannot read: the file was shortened");
      at += size_t(n);
      target += n;
      bytes -= size_t(n);
    }
  };
  if (run == 0) return;
  if (run == stride) return read(offset, run * count, to);
  // Of runs that are closer than pages every page is needed: they are cut out in memory.
  if (stride > size_t(::sysconf(_SC_PAGESIZE))) {
    for (size_t i = 0; i < count; ++i) read(offset + i * stride, run, to + i * run);
    return;
  }
  constexpr size_t block = size_t(1) << 20;
  const size_t atOnce = block / stride;
  std::vector<std::byte> rows(std::min(atOnce, count) * stride);
  for (size_t first = 0; first < count; first += atOnce) {
    const size_t n = std::min(atOnce, count - first);
    read(offset + first * stride, (n - 1) * stride + run, rows.data());
    for (size_t i = 0; i < n; ++i)
      std::memcpy(to + (first + i) * run, rows.data() + i * stride, run);
  }
}

void MappedFile::fetchRuns(size_t offset, size_t run, size_t stride, size_t count) {
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  auto each = [&](size_t from, size_t bytes, auto advise) {
    const size_t begin = from / page * page, end = std::min(size_, from + bytes);
    if (begin < end) advise(begin, end - begin);
  };
  if (run == 0 || count == 0) return;
  const size_t all = (count - 1) * stride + run;
  each(offset, all,
       [&](size_t begin, size_t bytes) { ::madvise(data_ + begin, bytes, MADV_RANDOM); });
  auto willNeed = [&](size_t begin, size_t bytes) {
    ::posix_fadvise(descriptor_, off_t(begin), off_t(bytes), POSIX_FADV_WILLNEED);
  };
  // Of runs that are closer than pages every page is needed.
  if (stride < run + page) return each(offset, all, willNeed);
  for (size_t i = 0; i < count; ++i) each(offset + i * stride, run, willNeed);
}

void discardPages(void* data, size_t bytes) {
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  const uintptr_t at = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (at < end) ::madvise(reinterpret_cast<void*>(at), end - at, MADV_DONTNEED);
}

void releaseFilePages(const void* data, size_t bytes) {
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  uintptr_t at = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  // One word per page: bit 63 says that it is present, bit 61 that it is not this process's own.
  FileDescriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (pagemap.get() < 0) return;
  constexpr uint64_t present = uint64_t(1) << 63, ofFile = uint64_t(1) << 61;
  std::array<uint64_t, 1024> words;
  while (at < end) {
    const size_t count = std::min<size_t>(words.size(), (end - at) / page);
    const ssize_t got =
        ::pread(pagemap.get(), words.data(), count * sizeof(uint64_t), off_t(at / page * 8));
    if (got != ssize_t(count * sizeof(uint64_t))) return;
    auto clean = [&](size_t i) { return (words[i] & (present | ofFile)) == (present | ofFile); };
    for (size_t i = 0; i < count;) {
      size_t next = i;
      while (next < count && clean(next)) ++next;
      if (next > i)
        ::madvise(reinterpret_cast<void*>(at + i * page), (next - i) * page, MADV_DONTNEED);
      i = std::max(next, i + 1);
    }
    at += count * page;
  }
}

void writeFileAtomically(const std::string& path,
                         const std::vector<std::span<const std::byte>>& chunks) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    throw Error(ErrorCode::InvalidArgument,
                path + ": expected the name of a file to write, got " + kindOf(info.st_mode));
  static std::atomic<unsigned> counter = 0;
  const std::string temporary =
      path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  FileDescriptor fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (fd.get() < 0) throw systemError(path, "cannot create a file beside it");
  try {
    for (auto chunk : chunks) writeAll(fd.get(), chunk, path);
    if (::fsync(fd.get()) != 0) throw systemError(path, "cannot sync");
    if (fd.close() != 0) throw systemError(path, "cannot close");
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw systemError(path, "cannot rename");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder and answer EINVAL; the file itself is safe by then.
  if (directory.get() < 0 || (::fsync(directory.get()) != 0 && errno != EINVAL))
    throw systemError(folder, "cannot sync the folder");
}

void writeFileAtomically(const std::string& path, std::string_view text) {
  writeFileAtomically(path, std::vector{asBytes(text)});
}

}  // namespace lathe
