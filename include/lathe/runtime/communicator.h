// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ranks of a mesh tell each other while they run one program together.
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lathe/runtime/dtype.h"
#include "lathe/runtime/enums.h"

namespace lathe {

/// One rank's end. All ranks make the same calls in the same order, each from one thread, but for
/// send() and receive(), which are between two of them; a call returns when its result is there.
/// Each throws Error when another rank has not come within the deadline, came with something else,
/// or has ended the job.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// From 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// In place: `count` elements joined over all ranks. All get the same bits.
  virtual void allReduce(void* data, size_t count, DType dtype, Combine combine) = 0;
  /// `mine` gets the elements of this rank's share: of size() times `count` elements at `all`,
  /// joined over all ranks, those from rank() times `count` on. `all` is left as it is.
  virtual void reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                             Combine combine) = 0;
  /// `all` has room for size() times `bytes`: what every rank gave, in their order.
  virtual void allGather(const void* mine, void* all, size_t bytes) = 0;
  /// `mine` and `all` are size() pieces of `bytes`: piece r of `mine` is for rank r, and piece r of
  /// `all` came from it.
  virtual void allToAll(const void* mine, void* all, size_t bytes) = 0;
  /// What rank 0 gives. The others wait for it as long as it takes.
  virtual void broadcast(void* data, size_t bytes) = 0;
  /// `bytes` go to another rank. What one rank sends to another arrives in the order in which it
  /// was sent. `data` may be written again at once: nobody waits for the other to come, unless many
  /// messages to it are on their way.
  virtual void send(int to, const void* data, size_t bytes) = 0;
  /// The next message of another rank, which has so many bytes. `isPatient`: waits for it as long
  /// as it takes.
  virtual void receive(int from, void* data, size_t bytes, bool isPatient = false) = 0;
  /// Helps along what is on its way, and waits for nothing: between calls that take long.
  virtual void advance() {}
  /// The job has failed: whoever waits in a call, or makes one later, gets an Error with `why`.
  virtual void abort(const std::string& why) noexcept = 0;

  /// How long a call waits for another rank.
  virtual std::chrono::milliseconds deadline() const = 0;
  /// For those who wait for other ranks elsewhere than in a call: throws Error (Io) with its words
  /// when the job has failed.
  virtual void throwIfEnded() const = 0;
};

/// The ends of `count` ranks that are threads of this process, with a deadline for every call.
/// Throws Error (InvalidArgument) for fewer than one.
std::vector<std::shared_ptr<Communicator>> threadRanks(
    int count, std::chrono::milliseconds deadline = std::chrono::minutes(5));

/// This process's end of a job that mpirun started, by a plug-in that stands beside the runtime
/// library. LATHE_RANKS_TIMEOUT is the deadline in seconds (300); with LATHE_RANKS_CHECK=1 ranks
/// tell each other what they call before they do. Throws Error (Unsupported) naming the package
/// where the plug-in or MPI is missing.
std::shared_ptr<Communicator> processRanks();
/// Whether mpirun started this process.
bool isRankProcess();

}  // namespace lathe
