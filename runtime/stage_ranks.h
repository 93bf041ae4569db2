// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks of one stage of a pipeline, which share its layers.
#include <memory>
#include <vector>

#include "lathe/runtime/communicator.h"

namespace lathe {

/// A rank's end among the `ranks` ranks of its stage, made of messages between ranks of the whole
/// job: rank r of stage s is rank s * ranks + r of that. Collectives are among the ranks of the
/// stage. Messages go to, and come from, the rank that has this one's place in another stage.
class StageRanks final : public Communicator {
 public:
  StageRanks(std::shared_ptr<Communicator> all, int ranks)
      : all_(std::move(all)), ranks_(ranks), stage_(all_->rank() / ranks) {}

  int rank() const override { return all_->rank() % ranks_; }
  int size() const override { return ranks_; }
  void allReduce(void* data, size_t count, DType dtype, Combine combine) override;
  void reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                     Combine combine) override;
  void allGather(const void* mine, void* all, size_t bytes) override;
  void allToAll(const void* mine, void* all, size_t bytes) override;
  void broadcast(void* data, size_t bytes) override;
  void send(int to, const void* data, size_t bytes) override {
    all_->send(to * ranks_ + rank(), data, bytes);
  }
  void receive(int from, void* data, size_t bytes, bool isPatient) override {
    all_->receive(from * ranks_ + rank(), data, bytes, isPatient);
  }
  void advance() override { all_->advance(); }
  void abort(const std::string& why) noexcept override { all_->abort(why); }
  std::chrono::milliseconds deadline() const override { return all_->deadline(); }
  void throwIfEnded() const override { all_->throwIfEnded(); }

 private:
  // Of the whole job.
  int peer(int rank) const { return stage_ * ranks_ + rank; }
  // `mine` is cut at `starts`, bytes, of which there is one more than ranks: each rank gets its
  // part from all, which lie one behind the other in `all`.
  void exchange(const std::byte* mine, const std::vector<size_t>& starts, std::byte* all);
  // This rank's part of an exchange of `all`, joined to `mine`.
  void joinOwn(const void* all, const std::vector<size_t>& starts, void* mine, DType dtype,
               Combine combine);

  std::shared_ptr<Communicator> all_;
  int ranks_, stage_;
  std::vector<std::byte> parts_;  // of all ranks, of this one's share of a sum
};

}  // namespace lathe
