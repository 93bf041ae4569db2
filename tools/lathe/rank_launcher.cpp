// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/rank_launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/error.h"

namespace lathe::cli {
namespace {

// mpirun passes it on to every rank, and does nothing else about it.
constexpr int kStop = SIGUSR1;

// The words that this process was started with.
std::vector<std::string> ownCommand() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
    words.emplace_back(text.c_str() + at);
  return words;
}

std::vector<std::string> launcherCommand(int64_t count) {
  // Each rank gets its share of the CPUs; more ranks than CPUs take turns.
  const int64_t cpus = std::max(1u, std::thread::hardware_concurrency()), own = cpus / count;
  std::vector<std::string> words{"mpirun", "-n", std::to_string(count)};
  if (own >= 1)
    words.insert(words.end(), {"--map-by", fmt::format("slot:PE={}", own), "--bind-to", "core"});
  else
    words.insert(words.end(),
                 {"--oversubscribe", "--bind-to", "none", "-x", "LATHE_NUM_THREADS=1"});
  if (geteuid() == 0) words.push_back("--allow-run-as-root");
  std::vector<std::string> command = ownCommand();
  command[0] = "/proc/self/exe";
  if (char path[4096]; ssize_t length = readlink("/proc/self/exe", path, sizeof path)) {
    if (length > 0) command[0].assign(path, size_t(length));
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

[[noreturn]] void failToStart(int why) {
  throw Error(
      ErrorCode::Unsupported,
      fmt::format("mpirun: {}; --ranks starts processes with it: install openmpi-bin, or add "
                  "--rank-threads",
                  std::strerror(why)));
}

volatile sig_atomic_t launcher = 0;  // its process
extern "C" void passStop(int) {
  if (launcher > 0) ::kill(pid_t(launcher), kStop);
}
extern "C" void stopAsAsked(int) { ::raise(SIGTERM); }

// Returns mpirun's status when it has ended.
int superviseLauncher(char* const* arguments) {
  int started[2];  // closed by exec; else it says why there was none
  if (::pipe2(started, O_CLOEXEC) != 0) failToStart(errno);
  for (int number : {SIGINT, SIGTERM}) std::signal(number, passStop);
  const pid_t child = ::fork();
  if (child < 0) failToStart(errno);
  if (child == 0) {
    for (int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
    ::setpgid(0, 0);  // Ctrl-C is this process's parent's to pass on
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // It may not read from a terminal any more, and nobody asks it to.
    if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, 0);
    ::execvp(arguments[0], arguments);
    const int why = errno;
    [[maybe_unused]] const ssize_t told = ::write(started[1], &why, sizeof why);
    ::_exit(1);
  }
  launcher = child;
  ::close(started[1]);
  int why = 0;
  const bool failed = ::read(started[0], &why, sizeof why) == sizeof why;
  ::close(started[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (failed) failToStart(why);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void becomeLauncher(int64_t count, bool threads, bool stopsInOrder) {
  if (count <= 1 || threads || isRankProcess()) return;
  std::vector<std::string> words = launcherCommand(count);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (stopsInOrder) std::exit(superviseLauncher(arguments.data()));
  execvp("mpirun", arguments.data());
  failToStart(errno);
}

void heedPassedStops(bool isFirst) { std::signal(kStop, isFirst ? stopAsAsked : SIG_IGN); }

}  // namespace lathe::cli
