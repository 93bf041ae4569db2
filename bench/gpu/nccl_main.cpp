// SPDX-License-Identifier: Apache-2.0
// lathe-gpu-nccl: sums and gathers of ranks with a GPU each, that are threads of this process: as
// calls, and as nodes of a graph that is played again. One rank is enough to open NCCL, join a
// communicator and capture its calls; two are needed to see something summed.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "backends/cuda/device/driver.h"
#include "lathe/runtime/array.h"
#include "lathe/runtime/error.h"

namespace {

using namespace lathe;
using namespace lathe::cuda;
using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: lathe-gpu-nccl DEVICE RANKS OUT.json\n"
    "DEVICE is gpu, with a GPU for each of RANKS, or host\n";
constexpr auto kDeadline = std::chrono::seconds(60);

// Small whole numbers, whose sums over 8 ranks every dtype holds: what comes back has the same
// bits.
Array givenBy(int rank, DType dtype, int64_t count) {
  Array given(dtype, {count});
  for (int64_t i = 0; i < count; ++i) given.set(i, double(i % 7 + rank));
  return given;
}
double sumAt(int64_t i, int ranks) { return double(i % 7 * ranks + ranks * (ranks - 1) / 2); }

// Device memory that holds an array.
class Held {
 public:
  Held(Driver& driver, size_t bytes) : driver_(driver), at_(driver.allocate(bytes, "values")) {}
  ~Held() { driver_.release(at_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void* at() const { return at_; }

 private:
  Driver& driver_;
  void* at_;
};

// One rank: throws Error for the first value that is not what it has to be.
class Rank {
 public:
  Rank(Driver& driver, Communicator& ranks) : driver_(driver), ranks_(ranks) {}

  void check(DType dtype, int64_t count) {
    const Array given = givenBy(ranks_.rank(), dtype, count * ranks_.size());
    const size_t bytes = given.bytes(), share = bytes / size_t(ranks_.size());
    Held whole(driver_, bytes), all(driver_, bytes), mine(driver_, share);
    const int64_t begin = count * ranks_.rank();
    auto work = [&] {
      ranks_.reduceScatter(whole.at(), mine.at(), size_t(count), dtype, Combine::sum);
      ranks_.allReduce(whole.at(), size_t(given.size()), dtype, Combine::sum);
      ranks_.allGather(mine.at(), all.at(), share);
    };
    auto compare = [&](const std::string& how) {
      expectSums(whole, given, 0, how + "all_reduce");
      expectSums(mine, Array(dtype, {count}), begin, how + "reduce_scatter");
      expectSums(all, given, 0, how + "all_gather");
    };
    auto fresh = [&] {
      driver_.upload(whole.at(), given.data(), bytes);
      driver_.zero(all.at(), bytes);
      driver_.zero(mine.at(), share);
    };
    fresh();
    work();
    compare("");
    const auto recorded = driver_.record(work);
    for (int run = 0; run < 2; ++run) {
      fresh();
      driver_.replay(*recorded);
      compare("replayed ");
    }
  }

  // Microseconds of a sum over all ranks, in a graph of many.
  double microseconds(int64_t bytes) {
    constexpr int kSums = 20;
    Held values(driver_, size_t(bytes));
    driver_.zero(values.at(), size_t(bytes));
    ranks_.allReduce(values.at(), size_t(bytes) / 2, DType::BF16, Combine::sum);
    const auto recorded = driver_.record([&] {
      for (int i = 0; i < kSums; ++i)
        ranks_.allReduce(values.at(), size_t(bytes) / 2, DType::BF16, Combine::sum);
    });
    std::vector<double> all = driver_.replayTimes(*recorded, 9);
    std::ranges::sort(all);
    return 1e6 * all[all.size() / 2] / kSums;
  }

 private:
  // The elements from number `begin` of the whole on; `like` has their dtype and shape.
  void expectSums(const Held& held, const Array& like, int64_t begin, const std::string& what) {
    Array got(like.dtype(), like.shape());
    driver_.download(got.data(), held.at(), got.bytes());
    for (int64_t i = 0; i < got.size(); ++i)
      if (const double wanted = sumAt(begin + i, ranks_.size()); got.at(i) != wanted)
        throw Error(ErrorCode::Numeric, what + " of " + std::to_string(got.size()) + " " +
                                            std::string(nameOf(like.dtype())) + ": element " +
                                            std::to_string(i) + " is " + std::to_string(got.at(i)) +
                                            ", expected " + std::to_string(wanted));
  }

  Driver& driver_;
  Communicator& ranks_;
};

// What rank 0 has to report.
Json runOf(const std::string& device, const std::shared_ptr<Communicator>& end) {
  const std::unique_ptr<Driver> driver = device == "gpu" ? openGpu(end->rank()) : openHost();
  Rank rank(*driver, *driver->join(end));
  int64_t checked = 0;
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64, DType::I32, DType::I64})
    for (int64_t count : {1, 1000, 100'003}) {
      rank.check(dtype, count);
      ++checked;
    }
  Json found{{"by", driver->ranksReport()}, {"checked", checked}};
  if (device == "gpu")
    for (int64_t bytes : {int64_t(8) << 10, int64_t(32) << 20})
      found["all_reduce_us_" + std::to_string(bytes)] = rank.microseconds(bytes);
  return found;
}

int run(const std::string& device, int count, const std::string& out) {
  const auto ends = threadRanks(count, kDeadline);
  std::vector<std::string> said(ends.size());
  Json report{{"check", "nccl"}, {"device", device}, {"ranks", count}};
  auto one = [&](size_t r) {
    try {
      const Json found = runOf(device, ends[r]);
      if (r == 0) report.update(found);
    } catch (const std::exception& e) {
      said[r] = e.what();
      ends[r]->abort("rank " + std::to_string(r) + ": " + e.what());
    }
  };
  std::vector<std::thread> others;
  for (size_t r = 1; r < ends.size(); ++r) others.emplace_back(one, r);
  one(0);
  for (std::thread& t : others) t.join();
  const auto failed = std::ranges::find_if(said, [](const auto& words) { return !words.empty(); });
  report["outcome"] = failed == said.end() ? "passed" : "failed";
  if (failed != said.end()) report["error"] = *failed;
  std::ofstream(out) << report.dump(1) << "\n";
  std::cout << report.dump() << "\n";
  return failed == said.end() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "";
  const int ranks = argc == 4 ? std::atoi(argv[2]) : 0;
  if ((device != "gpu" && device != "host") || ranks < 1 || ranks > 8) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(device, ranks, argv[3]);
  } catch (const std::exception& e) {
    std::cerr << "lathe-gpu-nccl: " << e.what() << "\n";
    return 2;
  }
}
