// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives of ranks that have a GPU each, through NVIDIA's NCCL: it is opened when a session of
// several ranks is.
#include <functional>
#include <memory>
#include <string>

#include "backends/cuda/device/nccl_api.h"
#include "lathe/runtime/communicator.h"

namespace lathe::cuda {

/// The stream that collectives are put on, and what makes its context the calling thread's.
struct NcclStream {
  void* stream = nullptr;  ///< a CUstream; null in tests on host memory
  std::function<void()> enter = [] {};
};

/// One rank's end, on memory of its GPU. Collectives are put on the stream and return; while that
/// is captured they become nodes of the graph. What ranks say to each other on the host goes by the
/// communicator that it was opened with.
class NcclRanks final : public Communicator {
 public:
  /// All ranks call it at once; they are no stage of a pipeline with several of them, or Error
  /// (Unsupported) is thrown. LATHE_NCCL names the library; else the loader is asked for
  /// libnccl.so.2, and then installed CUDA toolkits. Throws Error (Unsupported) where it is not
  /// found or too old, saying what to install, and (Io) for what fails, such as a rank that does
  /// not come.
  static std::unique_ptr<NcclRanks> open(std::shared_ptr<Communicator> ranks, NcclStream stream);
  ~NcclRanks() override;
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  /// NCCL joins in its own order, 16-bit floats after each addition. Throws Error (Unsupported) for
  /// i16 and bool, and for the largest of floats, of which it drops NaN.
  void allReduce(void* data, size_t count, DType dtype, Combine combine) override;
  void reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                     Combine combine) override;
  void allGather(const void* mine, void* all, size_t bytes) override;
  void allToAll(const void* mine, void* all, size_t bytes) override;
  void broadcast(void* data, size_t bytes) override { ranks_->broadcast(data, bytes); }
  /// What is behind it on the stream waits for the other rank.
  void send(int to, const void* data, size_t bytes) override;
  void receive(int from, void* data, size_t bytes, bool isPatient) override;
  void abort(const std::string& why) noexcept override { ranks_->abort(why); }
  std::chrono::milliseconds deadline() const override { return ranks_->deadline(); }
  void throwIfEnded() const override { ranks_->throwIfEnded(); }

  /// Returns when `isDone` says so, which is asked again and again: the stream may wait for another
  /// rank. Throws Error (Io), and takes what is on the stream back, once the deadline is over, the
  /// job has ended or NCCL says that something failed. `what` is for the message.
  void await(const std::string& what, const std::function<bool()>& isDone);

  /// "NCCL 2.28.9, libnccl.so.2"
  const std::string& name() const { return name_; }

 private:
  NcclRanks(const nccl::Api& api, std::shared_ptr<Communicator> ranks, NcclStream stream);
  void connect();
  /// `put` is a call of NCCL's.
  void call(const std::string& what, const std::function<nccl::Result()>& put);
  bool isSettled() const;
  std::string describe(nccl::Result result) const;
  [[noreturn]] void fail(const std::string& why);

  nccl::Api api_;
  std::shared_ptr<Communicator> ranks_;
  NcclStream stream_;
  nccl::Handle handle_ = nullptr;
  std::string name_;
  std::string failure_;  // why nothing can be called any more
};

}  // namespace lathe::cuda
