// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of an MPI job. MPI waits for ever for a rank that does not come, and
// need not notice that two ranks call different things: deadlines and, on demand, the comparison of
// calls are ours. Sums are made of an exchange of pieces, the joining of one's own piece in the
// order of the ranks, and an exchange of the results: MPI promises no order for its own sums, and
// has no bf16.
#include <array>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/error.h"
#include "runtime/join_ranks.h"
#include "runtime/rank_messages.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

// MPI begins and ends together with all ranks, and waits for them as long as it takes. There is no
// call that would end such a wait: the process does, and mpirun the job.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds deadline, const char* what)
      : thread_([this, deadline, what] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, deadline, [&] { return isDone_; })) return;
          std::fprintf(stderr,
                       "lathe: %s: another rank has not come within %lld ms "
                       "(LATHE_RANKS_TIMEOUT, in seconds)\n",
                       what, static_cast<long long>(deadline.count()));
          std::fflush(stderr);
          std::_Exit(3);  // as for every error of the system
        }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      isDone_ = true;
    }
    done_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool isDone_ = false;
  std::thread thread_;  // last: it begins when all else is there
};

// Whether other processes compute on this core. Who gives way to one gets the core back a time
// slice later, however soon the message is there; who sleeps gets it when he wakes. Sleeping takes
// longer than giving way where nobody computes, so a crowd is expected for a while after one was
// seen, and for twice as long each time when it is still there.
class Crowd {
 public:
  // What passes between two looks at a message only if another process had the core.
  static constexpr std::chrono::microseconds kSlice{300};

  void seen(Clock::time_point now) {
    const bool isStillThere = now - until_ < kRemembered;
    length_ = isStillThere ? std::min(2 * length_, kLongest) : kShortest;
    until_ = now + length_;
  }
  bool isExpected(Clock::time_point now) const { return now < until_; }

 private:
  // How long a crowd is expected, and how long after that one is the same.
  static constexpr Clock::duration kShortest = std::chrono::milliseconds(10),
                                   kLongest = std::chrono::seconds(1),
                                   kRemembered = std::chrono::milliseconds(50);
  Clock::time_point until_{};
  Clock::duration length_ = kShortest;
};

// Returns when it is over.
Clock::time_point nap(std::chrono::nanoseconds time) {
  const timespec rest{0, long(time.count())};
  nanosleep(&rest, nullptr);
  return Clock::now();
}

class MpiRank final : public Communicator {
 public:
  MpiRank(std::chrono::milliseconds deadline, bool compares)
      : deadline_(deadline), compares_(compares) {
    int isRunning = 0;
    MPI_Initialized(&isRunning);
    if (!isRunning) {
      int level = 0;
      // More ranks than CPUs would give way inside of every call of Open MPI's; wait() does that.
      setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
      const Watchdog watchdog(deadline, "the beginning of the job");
      // One thread at a time: that of a server's steps is not the one that begins here.
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
      owns_ = true;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &all_);
    // Also on the world: some errors are raised there, whatever the communicator.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(all_, &rank_);
    MPI_Comm_size(all_, &size_);
  }
  ~MpiRank() override {
    int isOver = 0;
    MPI_Finalized(&isOver);
    try {
      for (auto& [to, sent] : sent_)
        while (!isOver && !sent.empty()) waitForOldest(sent);
    } catch (const Error&) {
      // Whoever should have received them is gone.
    }
    if (!owns_) return;
    // Rank 0 may have work left while the others wait for it here.
    std::optional<Watchdog> watchdog;
    if (rank_ == 0) watchdog.emplace(deadline_, "the end of the job");
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void allReduce(void* data, size_t count, DType dtype, Combine combine) override {
    const std::string what = "all_reduce " + std::string(nameOf(combine)) + " of " +
                             std::to_string(count) + " " + std::string(nameOf(dtype));
    compare(what);
    const size_t element = sizeOf(dtype), n = size_t(size_);
    std::vector<int> sizes(n), starts(n);
    for (size_t r = 0; r < n; ++r) {
      starts[r] = bytesAt(count * r / n, element);
      sizes[r] = bytesAt(count * (r + 1) / n, element) - starts[r];
    }
    auto* own = static_cast<std::byte*>(data) + starts[size_t(rank_)];
    joinOwnPiece(data, sizes, starts, own, dtype, combine, what);
    MPI_Request request;
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, sizes.data(), starts.data(), MPI_BYTE,
                          all_, &request),
          what);
    wait(request, what);
  }

  void reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                     Combine combine) override {
    const std::string what = "reduce_scatter " + std::string(nameOf(combine)) + " of " +
                             std::to_string(count) + " " + std::string(nameOf(dtype));
    compare(what);
    const size_t n = size_t(size_);
    std::vector<int> sizes(n, bytesAt(count, sizeOf(dtype))), starts(n);
    for (size_t r = 0; r < n; ++r) starts[r] = bytesAt(count * r, sizeOf(dtype));
    joinOwnPiece(all, sizes, starts, mine, dtype, combine, what);
  }

  void allGather(const void* mine, void* all, size_t bytes) override {
    const std::string what = "all_gather of " + std::to_string(bytes) + " bytes";
    compare(what);
    gather(mine, all, bytes, what);
  }

  void allToAll(const void* mine, void* all, size_t bytes) override {
    const std::string what = "all_to_all of " + std::to_string(bytes) + " bytes";
    compare(what);
    MPI_Request request;
    check(MPI_Ialltoall(mine, bytesAt(bytes, 1), MPI_BYTE, all, bytesAt(bytes, 1), MPI_BYTE, all_,
                        &request),
          what);
    wait(request, what);
  }

  void broadcast(void* data, size_t bytes) override {
    const std::string what = "broadcast of " + std::to_string(bytes) + " bytes";
    MPI_Request request;
    check(MPI_Ibcast(data, bytesAt(bytes, 1), MPI_BYTE, 0, all_, &request), what);
    wait(request, what, rank_ != 0);
  }

  void send(int to, const void* data, size_t bytes) override {
    expectRank("send", to, size_t(size_));
    const std::string what =
        "send of " + std::to_string(bytes) + " bytes to rank " + std::to_string(to);
    // MPI reads what is sent until it says so.
    if (compares_) put(to, labelOf(++sentTo_[to], bytes), what);
    const auto* begin = static_cast<const std::byte*>(data);
    put(to, {begin, begin + bytes}, what);
  }

  void receive(int from, void* data, size_t bytes, bool isPatient) override {
    expectRank("receive", from, size_t(size_));
    const std::string what =
        "receive of " + std::to_string(bytes) + " bytes from rank " + std::to_string(from);
    if (compares_) {
      const std::vector<std::byte> expected = labelOf(++receivedFrom_[from], bytes);
      std::vector<std::byte> said(expected.size());
      take(from, said.data(), said.size(), isPatient, what);
      if (said != expected)
        throw Error(ErrorCode::InvalidArgument,
                    "the ranks have parted: rank " + std::to_string(rank_) + " expects " +
                        textOf(expected) + ", rank " + std::to_string(from) + " sends " +
                        textOf(said));
    }
    take(from, data, bytes, isPatient, what);
  }

  void advance() override {
    for (auto& [to, sent] : sent_)
      while (!sent.empty() && isDone(sent.front())) sent.pop_front();
  }

  void abort(const std::string& why) noexcept override {
    std::fprintf(stderr, "lathe: rank %d ends the job: %s\n", rank_, why.c_str());
    std::fflush(nullptr);
#ifdef OPEN_MPI
    // mpirun ends the job of a process that leaves so; other launchers need not. Of several that
    // call MPI_Abort at once mpirun may hear one and wait for the others without end (4.1.4).
    if (byMpirun_) std::_Exit(1);
#endif
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  std::chrono::milliseconds deadline() const override { return deadline_; }
  void throwIfEnded() const override {}  // then mpirun ends this process

 private:
  // MPI counts in int.
  static int bytesAt(size_t count, size_t element) {
    if (count > size_t(INT32_MAX) / element)
      throw Error(ErrorCode::Unsupported, "ranks exchange at most 2147483647 bytes at once, got " +
                                              std::to_string(count * element) +
                                              "; take shorter inputs");
    return int(count * element);
  }

  void check(int status, const std::string& what) const {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(status, text, &length);
    throw Error(ErrorCode::Io, what + " of rank " + std::to_string(rank_) + ": " + text);
  }

  //===--- messages -------------------------------------------------------------------------===//

  // One that MPI may still read.
  struct Sent {
    std::string what;
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  bool isDone(Sent& sent) const {
    int done = 0;
    check(MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE), sent.what);
    return done != 0;
  }
  void waitForOldest(std::deque<Sent>& sent) const {
    wait(sent.front().request, sent.front().what);
    sent.pop_front();
  }
  void put(int to, std::vector<std::byte> bytes, const std::string& what) {
    advance();
    std::deque<Sent>& sent = sent_[to];
    while (sent.size() >= kMostOnTheWay) waitForOldest(sent);
    Sent& message = sent.emplace_back(Sent{what, std::move(bytes)});
    check(MPI_Isend(message.bytes.data(), bytesAt(message.bytes.size(), 1), MPI_BYTE, to, 0, all_,
                    &message.request),
          what);
  }
  void take(int from, void* data, size_t bytes, bool isPatient, const std::string& what) {
    MPI_Request request;
    MPI_Status status;
    check(MPI_Irecv(data, bytesAt(bytes, 1), MPI_BYTE, from, 0, all_, &request), what);
    wait(request, what, isPatient, &status);
    int count = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &count), what);
    if (size_t(count) != bytes)
      throw Error(ErrorCode::InvalidArgument, "the ranks have parted: " + what + " of rank " +
                                                  std::to_string(rank_) + ", which sent " +
                                                  std::to_string(count));
  }
  // With LATHE_RANKS_CHECK each message has one in front of it.
  static std::vector<std::byte> labelOf(uint64_t number, size_t bytes) {
    std::vector<std::byte> label(64);
    std::snprintf(reinterpret_cast<char*>(label.data()), label.size(), "message %llu of %llu bytes",
                  static_cast<unsigned long long>(number), static_cast<unsigned long long>(bytes));
    return label;
  }
  static std::string textOf(const std::vector<std::byte>& label) {
    return {reinterpret_cast<const char*>(label.data()),
            strnlen(reinterpret_cast<const char*>(label.data()), label.size())};
  }

  // `patient`: rank 0 may take as long as it likes. Then the core is left to others soon.
  void wait(MPI_Request& request, const std::string& what, bool patient = false,
            MPI_Status* status = MPI_STATUS_IGNORE) const {
    const auto start = Clock::now();
    auto last = start;  // when this process last had the core, and did not sleep
    for (int tries = 0;; ++tries) {
      int done = 0;
      check(MPI_Test(&request, &done, status), what);
      if (done) return;
      const auto now = Clock::now();
      if (now - last > Crowd::kSlice) crowd_.seen(now);
      last = now;
      if (patient && now - start > std::chrono::seconds(1)) {
        last = nap(std::chrono::microseconds(200));
      } else if (crowd_.isExpected(now)) {
        last = nap(std::chrono::microseconds(20));
      } else if (tries >= 64) {
        sched_yield();
      }
      if (!patient && now - start > deadline_)
        throw Error(ErrorCode::Io,
                    what + " of rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                        ": another rank has not come within " + std::to_string(deadline_.count()) +
                        " ms (LATHE_RANKS_TIMEOUT, in seconds)");
    }
  }

  // Exchanges the pieces of `all`, of which rank r has the one at starts[r], and joins one's own.
  void joinOwnPiece(const void* all, const std::vector<int>& sizes, const std::vector<int>& starts,
                    void* to, DType dtype, Combine combine, const std::string& what) {
    const size_t n = size_t(size_), own = size_t(sizes[size_t(rank_)]);
    parts_.resize(own * n);
    std::vector<int> mine(n, int(own)), places(n);
    for (size_t r = 0; r < n; ++r) places[r] = bytesAt(own * r, 1);
    MPI_Request request;
    check(MPI_Ialltoallv(all, sizes.data(), starts.data(), MPI_BYTE, parts_.data(), mine.data(),
                         places.data(), MPI_BYTE, all_, &request),
          what);
    wait(request, what);
    std::vector<const void*> parts;
    for (size_t r = 0; r < n; ++r) parts.push_back(parts_.data() + own * r);
    joinRanks(parts, to, own / sizeOf(dtype), dtype, combine);
  }

  void gather(const void* mine, void* all, size_t bytes, const std::string& what) {
    MPI_Request request;
    check(MPI_Iallgather(mine, bytesAt(bytes, 1), MPI_BYTE, all, bytesAt(bytes, 1), MPI_BYTE, all_,
                         &request),
          what);
    wait(request, what);
  }

  // With LATHE_RANKS_CHECK: ranks that parted are told by name, before numbers are wrong.
  void compare(const std::string& what) {
    ++calls_;
    if (!compares_) return;
    std::array<char, 128> own{};
    std::snprintf(own.data(), own.size(), "%s", what.c_str());
    std::vector<std::array<char, 128>> said(static_cast<size_t>(size_));
    gather(own.data(), said.data(), own.size(),
           "comparison of collective " + std::to_string(calls_));
    for (int r = 0; r < size_; ++r)
      if (said[size_t(r)] != own)
        throw Error(ErrorCode::InvalidArgument, "collective " + std::to_string(calls_) + " is " +
                                                    what + " on rank " + std::to_string(rank_) +
                                                    " and " + said[size_t(r)].data() + " on rank " +
                                                    std::to_string(r));
  }

  MPI_Comm all_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool owns_ = false;
  // Read before MPI begins, which may set the variable itself.
  const bool byMpirun_ = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  std::chrono::milliseconds deadline_;
  mutable Crowd crowd_;
  bool compares_;
  uint64_t calls_ = 0;
  std::map<int, std::deque<Sent>> sent_;           // by receiver, the oldest first
  std::map<int, uint64_t> sentTo_, receivedFrom_;  // how many, of those that are compared
  std::vector<std::byte> parts_;                   // of all ranks, of this one's share of a sum
};

}  // namespace
}  // namespace lathe

extern "C" lathe::Communicator* lathe_open_ranks(int64_t deadlineMilliseconds, bool compares) {
  return new lathe::MpiRank(std::chrono::milliseconds(deadlineMilliseconds), compares);
}
