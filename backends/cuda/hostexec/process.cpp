// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "lathe/runtime/error.h"

extern char** environ;

namespace lathe::cuda::host {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw Error(ErrorCode::Io, std::string("pipe: ") + strerror(errno));
  }
  ~Pipe() {
    shut(0);
    shut(1);
  }
  void shut(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
};

}  // namespace

std::string findProgram(std::string_view name) {
  if (name.find('/') != name.npos)
    return access(std::string(name).c_str(), X_OK) == 0 ? std::string(name) : "";
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string file = std::string(rest.substr(0, colon)) + "/" + std::string(name);
    if (access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(colon == rest.npos ? rest.size() : colon + 1);
  }
  return "";
}

ProcessResult runProcess(const std::vector<std::string>& command, std::string_view input) {
  Pipe in, out;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.ends[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], 2);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // A sanitizer that is preloaded for this process is not meant for compilers; messages are read.
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e)
    if (strncmp(*e, "LD_PRELOAD=", 11) != 0 && strncmp(*e, "LC_ALL=", 7) != 0)
      environment.push_back(*e);
  char locale[] = "LC_ALL=C";
  environment.push_back(locale);
  environment.push_back(nullptr);
  pid_t child;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed) throw Error(ErrorCode::Io, "cannot start " + command[0] + ": " + strerror(failed));
  in.shut(0);
  out.shut(1);
  if (input.empty()) in.shut(1);
  // A child that ends early must not end us by SIGPIPE: writes stop when it closes its end.
  if (in.ends[1] >= 0) fcntl(in.ends[1], F_SETFL, O_NONBLOCK);
  ProcessResult result;
  char buffer[16 << 10];
  while (out.ends[0] >= 0) {
    pollfd fds[2] = {{out.ends[0], POLLIN, 0}, {in.ends[1], POLLOUT, 0}};
    if (poll(fds, in.ends[1] >= 0 ? 2 : 1, -1) < 0 && errno != EINTR) break;
    if (in.ends[1] >= 0 && fds[1].revents) {
      const ssize_t n = (fds[1].revents & (POLLERR | POLLHUP))
                            ? -1
                            : write(in.ends[1], input.data(), input.size());
      if (n > 0) input.remove_prefix(size_t(n));
      if ((n < 0 && errno != EAGAIN) || input.empty()) in.shut(1);
    }
    if (fds[0].revents) {
      const ssize_t n = read(out.ends[0], buffer, sizeof buffer);
      if (n > 0)
        result.output.append(buffer, size_t(n));
      else if (n == 0 || errno != EINTR)
        out.shut(0);
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace lathe::cuda::host
