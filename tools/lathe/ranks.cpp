// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/console.h"

namespace lathe::cli {
namespace {

struct RankThreads {
  std::shared_ptr<Communicator> first;
  std::vector<std::thread> threads;
  ~RankThreads() {
    // They have been told to stop, unless nobody came to open a session.
    first->abort("rank 0 has left");
    for (std::thread& t : threads) t.join();
  }
};

std::shared_ptr<Communicator> startThreads(
    int64_t count, const std::function<void(std::shared_ptr<Communicator>)>& serve) {
  auto ends = threadRanks(int(count));
  auto all = std::make_shared<RankThreads>();
  all->first = ends[0];
  for (size_t r = 1; r < ends.size(); ++r)
    all->threads.emplace_back([end = ends[r], serve, r] {
      try {
        serve(end);
      } catch (const std::exception& e) {
        end->abort(fmt::format("rank {}: {}", r, e.what()));
      }
    });
  return {all, all->first.get()};
}

// The words that this process was started with.
std::vector<std::string> ownCommand() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
    words.emplace_back(text.c_str() + at);
  return words;
}

}  // namespace

void addRankThreads(CLI::App& parser, bool& threads) {
  parser.add_flag("--rank-threads", threads,
                  "ranks are threads of this process; without it mpirun starts processes");
}

void becomeLauncher(int64_t count, bool threads) {
  if (count <= 1 || threads || isRankProcess()) return;
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
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp("mpirun", arguments.data());
  throw Error(
      ErrorCode::Unsupported,
      fmt::format("mpirun: {}; --ranks starts processes with it: install openmpi-bin, or add "
                  "--rank-threads",
                  std::strerror(errno)));
}

std::shared_ptr<Communicator> startRanks(int64_t count, bool threads,
                                         std::function<void(std::shared_ptr<Communicator>)> serve) {
  if (threads) return startThreads(count, serve);
  becomeLauncher(count, threads);
  std::shared_ptr<Communicator> end = processRanks();
  if (end->rank() == 0) return end;
  try {
    serve(end);
  } catch (const std::exception& e) {
    end->abort(e.what());
  }
  end.reset();
  std::exit(0);  // rank 0 does what is left
}

void noteThreads(Communicator& ranks) {
  const int64_t own = ThreadPool::global().threads();
  std::vector<int64_t> all(size_t(ranks.size()));
  ranks.allGather(&own, all.data(), sizeof own);
  if (ranks.rank() != 0) return;
  const bool isSame = std::ranges::all_of(all, [&](int64_t threads) { return threads == own; });
  console().note(isSame ? fmt::format("{} ranks of {} threads", all.size(), own)
                        : fmt::format("{} ranks of {} threads", all.size(), fmt::join(all, ", ")));
}

}  // namespace lathe::cli
