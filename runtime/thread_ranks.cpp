// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: each lays its buffer open and reads those of the others.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/error.h"
#include "runtime/join_ranks.h"
#include "runtime/rank_messages.h"

namespace lathe {
namespace {

// What a rank comes with.
struct Offer {
  std::string what;      // "all_reduce sum of 64 f32"
  void* data = nullptr;  // written by a sum alone
};

class Group {
 public:
  Group(int size, std::chrono::milliseconds deadline)
      : offers(size_t(size)), came_(size_t(size)), deadline_(deadline) {}

  std::vector<Offer> offers;

  /// Returns when all ranks are here. `patient`: however long they take.
  void meet(int rank, bool patient = false) {
    std::unique_lock lock(mutex_);
    throwIfEnded();
    const uint64_t round = round_;
    came_[size_t(rank)] = true;
    if (++here_ == came_.size()) {
      here_ = 0;
      came_.assign(came_.size(), false);
      ++round_;
      all_.notify_all();
      return;
    }
    auto isOver = [&] { return round_ != round || !ended_.empty(); };
    bool met = true;
    if (patient)
      all_.wait(lock, isOver);
    else
      met = all_.wait_for(lock, deadline_, isOver);
    if (round_ != round) return;
    throwIfEnded();
    if (met) return;
    std::string missing;
    for (size_t r = 0; r < came_.size(); ++r)
      if (!came_[r]) missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(r);
    ended_ = offers[size_t(rank)].what + " of rank " + std::to_string(rank) + " of " +
             std::to_string(came_.size()) + ": no sign of " + missing + " within " +
             std::to_string(deadline_.count()) + " ms";
    all_.notify_all();
    throwIfEnded();
  }

  /// Lays a message down for another rank.
  void send(int from, int to, const void* data, size_t bytes) {
    expectRank("send", to, offers.size());
    std::unique_lock lock(mutex_);
    auto& box = mail_[{from, to}];
    await(lock, describe("send", bytes, from), to, false,
          [&] { return box.size() < kMostOnTheWay; });
    const auto* begin = static_cast<const std::byte*>(data);
    box.emplace_back(begin, begin + bytes);
    all_.notify_all();
  }
  /// Takes the next one up.
  void receive(int from, int to, void* data, size_t bytes, bool patient) {
    expectRank("receive", from, offers.size());
    std::unique_lock lock(mutex_);
    auto& box = mail_[{from, to}];
    await(lock, describe("receive", bytes, to), from, patient, [&] { return !box.empty(); });
    if (box.front().size() != bytes) {
      ended_ = "the ranks have parted: " + describe("receive", bytes, to) + ", rank " +
               std::to_string(from) + " sent " + std::to_string(box.front().size());
      all_.notify_all();
      throw Error(ErrorCode::InvalidArgument, ended_);
    }
    if (bytes) std::memcpy(data, box.front().data(), bytes);
    box.pop_front();
    all_.notify_all();
  }

  /// All ranks came with the same call.
  void checkOffers(int rank) {
    for (size_t r = 0; r < offers.size(); ++r)
      if (offers[r].what != offers[size_t(rank)].what)
        fail("the ranks have parted: rank " + std::to_string(rank) + " calls " +
             offers[size_t(rank)].what + ", rank " + std::to_string(r) + " " + offers[r].what);
  }

  void end(const std::string& why) {
    std::lock_guard lock(mutex_);
    if (ended_.empty()) ended_ = why;
    all_.notify_all();
  }

  std::chrono::milliseconds deadline() const { return deadline_; }
  void check() const {
    std::lock_guard lock(mutex_);
    throwIfEnded();
  }

 private:
  std::string describe(const char* call, size_t bytes, int rank) const {
    return std::string(call) + " of " + std::to_string(bytes) + " bytes of rank " +
           std::to_string(rank) + " of " + std::to_string(offers.size());
  }
  // Until `isThere`, of which another rank is to see to.
  template <class Fn>
  void await(std::unique_lock<std::mutex>& lock, const std::string& what, int other, bool patient,
             Fn isThere) {
    auto isOver = [&] { return !ended_.empty() || isThere(); };
    bool met = true;
    if (patient)
      all_.wait(lock, isOver);
    else
      met = all_.wait_for(lock, deadline_, isOver);
    throwIfEnded();
    if (met) return;
    ended_ = what + ": no sign of rank " + std::to_string(other) + " within " +
             std::to_string(deadline_.count()) + " ms";
    all_.notify_all();
    throwIfEnded();
  }
  [[noreturn]] void fail(const std::string& why) {
    end(why);
    throw Error(ErrorCode::InvalidArgument, why);
  }
  void throwIfEnded() const {
    if (!ended_.empty()) throw Error(ErrorCode::Io, ended_);
  }

  mutable std::mutex mutex_;
  std::condition_variable all_;
  std::vector<bool> came_;
  size_t here_ = 0;
  uint64_t round_ = 0;
  std::string ended_;  // why, once the job has failed
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> mail_;  // by sender, receiver
  std::chrono::milliseconds deadline_;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return int(group_->offers.size()); }

  void allReduce(void* data, size_t count, DType dtype, Combine combine) override {
    meetWith("all_reduce " + std::string(nameOf(combine)) + " of " + std::to_string(count) + " " +
                 std::string(nameOf(dtype)),
             data);
    // Each rank joins a part, the same order of addends for every element, and writes it to all: no
    // other reads or writes that part of any buffer. In pieces that stay in the cache.
    constexpr size_t kPiece = 4096;
    const size_t n = size_t(size()), element = sizeOf(dtype), end = count * (size_t(rank_) + 1) / n;
    std::vector<const void*> parts(n);
    for (size_t begin = count * size_t(rank_) / n; begin < end; begin += kPiece) {
      const size_t piece = std::min(kPiece, end - begin);
      auto at = [&](const Offer& offer) {
        return static_cast<std::byte*>(offer.data) + begin * element;
      };
      std::ranges::transform(group_->offers, parts.begin(), at);
      std::byte* own = at(group_->offers[size_t(rank_)]);
      joinRanks(parts, own, piece, dtype, combine);
      for (const Offer& offer : group_->offers)
        if (at(offer) != own) std::memcpy(at(offer), own, piece * element);
    }
    group_->meet(rank_);
  }

  void reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                     Combine combine) override {
    meetWith("reduce_scatter " + std::string(nameOf(combine)) + " of " + std::to_string(count) +
                 " " + std::string(nameOf(dtype)),
             all);
    std::vector<const void*> parts;
    for (const Offer& offer : group_->offers)
      parts.push_back(static_cast<const std::byte*>(offer.data) +
                      size_t(rank_) * count * sizeOf(dtype));
    joinRanks(parts, mine, count, dtype, combine);
    group_->meet(rank_);
  }

  void allGather(const void* mine, void* all, size_t bytes) override {
    meetWith("all_gather of " + std::to_string(bytes) + " bytes", mine);
    for (size_t r = 0; r < group_->offers.size() && bytes; ++r)
      std::memcpy(static_cast<std::byte*>(all) + r * bytes, group_->offers[r].data, bytes);
    group_->meet(rank_);
  }

  void allToAll(const void* mine, void* all, size_t bytes) override {
    meetWith("all_to_all of " + std::to_string(bytes) + " bytes", mine);
    for (size_t r = 0; r < group_->offers.size() && bytes; ++r)
      std::memcpy(static_cast<std::byte*>(all) + r * bytes,
                  static_cast<const std::byte*>(group_->offers[r].data) + size_t(rank_) * bytes,
                  bytes);
    group_->meet(rank_);
  }

  void broadcast(void* data, size_t bytes) override {
    meetWith("broadcast of " + std::to_string(bytes) + " bytes", data, rank_ != 0);
    if (rank_ != 0 && bytes) std::memcpy(data, group_->offers[0].data, bytes);
    group_->meet(rank_);
  }

  void send(int to, const void* data, size_t bytes) override {
    group_->send(rank_, to, data, bytes);
  }
  void receive(int from, void* data, size_t bytes, bool isPatient) override {
    group_->receive(from, rank_, data, bytes, isPatient);
  }

  void abort(const std::string& why) noexcept override { group_->end(why); }

  std::chrono::milliseconds deadline() const override { return group_->deadline(); }
  void throwIfEnded() const override { group_->check(); }

 private:
  // Lays the buffer open, and waits for the others. Offers stay until all have met again.
  void meetWith(std::string what, const void* data, bool patient = false) {
    group_->check();  // of a job that has failed others may look at the offers still
    group_->offers[size_t(rank_)] = {std::move(what), const_cast<void*>(data)};
    group_->meet(rank_, patient);
    group_->checkOffers(rank_);
  }

  std::shared_ptr<Group> group_;
  int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> threadRanks(int count,
                                                       std::chrono::milliseconds deadline) {
  if (count < 1)
    throw Error(ErrorCode::InvalidArgument,
                "threadRanks: expected at least one rank, got " + std::to_string(count));
  auto group = std::make_shared<Group>(count, deadline);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(std::make_shared<ThreadRank>(group, r));
  return ranks;
}

}  // namespace lathe
