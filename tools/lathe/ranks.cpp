// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/thread_pool.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/console.h"
#include "tools/lathe/rank_launcher.h"

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

}  // namespace

void addRankThreads(CLI::App& parser, bool& threads) {
  parser.add_flag("--rank-threads", threads,
                  "ranks are threads of this process; without it mpirun starts processes");
}

std::shared_ptr<Communicator> startRanks(int64_t count, bool threads,
                                         std::function<void(std::shared_ptr<Communicator>)> serve,
                                         bool stopsInOrder) {
  if (threads) return startThreads(count, serve);
  becomeLauncher(count, threads, stopsInOrder);
  std::shared_ptr<Communicator> end = processRanks();
  if (stopsInOrder) heedPassedStops(end->rank() == 0);
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
