// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks whose kernels run on this CPU: collectives take their turn among launches, and are recorded
// with them.
#include <functional>
#include <memory>
#include <utility>

#include "lathe/runtime/communicator.h"

namespace lathe::cuda {

/// A collective: `run` reads `fromBytes` bytes, and writes `toBytes` before it returns.
struct HostCollective {
  const void* from = nullptr;
  size_t fromBytes = 0;
  void* to = nullptr;
  size_t toBytes = 0;
  std::function<void()> run;
};

class HostRanks final : public Communicator {
 public:
  /// `ranks` work on the host's memory; `put` runs a collective, or records it.
  HostRanks(std::shared_ptr<Communicator> ranks, std::function<void(HostCollective)> put)
      : ranks_(std::move(ranks)), put_(std::move(put)) {}

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  void allReduce(void* data, size_t count, DType dtype, Combine combine) override {
    const size_t bytes = count * sizeOf(dtype);
    put_({data, bytes, data, bytes, [=, this] { ranks_->allReduce(data, count, dtype, combine); }});
  }
  void reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                     Combine combine) override {
    const size_t bytes = count * sizeOf(dtype);
    put_({all, bytes * size_t(size()), mine, bytes,
          [=, this] { ranks_->reduceScatter(all, mine, count, dtype, combine); }});
  }
  void allGather(const void* mine, void* all, size_t bytes) override {
    put_({mine, bytes, all, bytes * size_t(size()),
          [=, this] { ranks_->allGather(mine, all, bytes); }});
  }
  void allToAll(const void* mine, void* all, size_t bytes) override {
    put_({mine, bytes * size_t(size()), all, bytes * size_t(size()),
          [=, this] { ranks_->allToAll(mine, all, bytes); }});
  }
  void broadcast(void* data, size_t bytes) override { ranks_->broadcast(data, bytes); }
  void send(int to, const void* data, size_t bytes) override {
    put_({data, bytes, const_cast<void*>(data), 0, [=, this] { ranks_->send(to, data, bytes); }});
  }
  void receive(int from, void* data, size_t bytes, bool isPatient) override {
    put_({data, 0, data, bytes, [=, this] { ranks_->receive(from, data, bytes, isPatient); }});
  }
  void advance() override { ranks_->advance(); }
  void abort(const std::string& why) noexcept override { ranks_->abort(why); }
  std::chrono::milliseconds deadline() const override { return ranks_->deadline(); }
  void throwIfEnded() const override { ranks_->throwIfEnded(); }

 private:
  std::shared_ptr<Communicator> ranks_;
  std::function<void(HostCollective)> put_;
};

}  // namespace lathe::cuda
