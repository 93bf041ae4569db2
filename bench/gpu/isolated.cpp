// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/isolated.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace lathe::cuda {
namespace {

struct Head {
  uint64_t bytes = 0, failed = 0;
};

bool readAll(int from, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes) {
    const ssize_t n = ::read(from, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= size_t(n);
  }
  return true;
}

void writeAll(int to, const void* from, size_t bytes) {
  auto* at = static_cast<const char*>(from);
  while (bytes) {
    const ssize_t n = ::write(to, at, bytes);
    if (n <= 0) _exit(3);
    at += n;
    bytes -= size_t(n);
  }
}

[[noreturn]] void child(size_t first, size_t count, const std::function<std::string(size_t)>& work,
                        unsigned seconds, int to) {
  for (size_t i = first; i < count; ++i) {
    std::string text;
    Head head;
    alarm(seconds);
    try {
      text = work(i);
    } catch (const std::exception& e) {
      text = e.what();
      head.failed = 1;
    }
    alarm(0);
    head.bytes = text.size();
    writeAll(to, &head, sizeof head);
    writeAll(to, text.data(), text.size());
    if (head.failed) break;
  }
  std::fflush(nullptr);
  _exit(0);  // what a lost context would do in destructors does not matter any more
}

}  // namespace

void runIsolated(size_t count, const std::function<std::string(size_t)>& work,
                 const std::function<void(size_t, const std::string&, bool)>& done,
                 unsigned seconds, size_t most) {
  size_t failures = 0;
  for (size_t i = 0; i < count && failures < most;) {
    int ends[2];
    // What a child starts, such as a compiler, may outlive it: it does not keep the pipe open.
    if (::pipe2(ends, O_CLOEXEC))
      throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    std::fflush(nullptr);
    const pid_t process = ::fork();
    if (process < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (process == 0) {
      ::close(ends[0]);
      child(i, count, work, seconds, ends[1]);
    }
    ::close(ends[1]);
    bool failed = false;
    Head head;
    while (i < count && !failed && readAll(ends[0], &head, sizeof head)) {
      std::string text(head.bytes, '\0');
      if (!readAll(ends[0], text.data(), text.size())) break;
      failed = head.failed;
      done(i++, text, failed);
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(process, &status, 0);
    if (!failed && i < count) {
      const char* how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended";
      done(i++, std::string("the process: ") + how, true);
      failed = true;
    }
    failures += failed;
  }
}

}  // namespace lathe::cuda
