// SPDX-License-Identifier: Apache-2.0
#include "runtime/stage_ranks.h"

#include <cstring>

#include "runtime/join_ranks.h"

namespace lathe {
namespace {

void copy(void* to, const void* from, size_t bytes) {
  if (bytes) std::memcpy(to, from, bytes);
}

}  // namespace

// Messages to all first, so that nobody waits for one who waits for him.
void StageRanks::exchange(const std::byte* mine, const std::vector<size_t>& starts,
                          std::byte* all) {
  const auto own = size_t(rank());
  for (size_t r = 0; r < size_t(ranks_); ++r)
    if (r != own) all_->send(peer(int(r)), mine + starts[r], starts[r + 1] - starts[r]);
  const size_t bytes = starts[own + 1] - starts[own];
  for (size_t r = 0; r < size_t(ranks_); ++r)
    if (r == own)
      copy(all + r * bytes, mine + starts[r], bytes);
    else
      all_->receive(peer(int(r)), all + r * bytes, bytes);
}

void StageRanks::joinOwn(const void* all, const std::vector<size_t>& starts, void* mine,
                         DType dtype, Combine combine) {
  const auto own = size_t(rank());
  const size_t bytes = starts[own + 1] - starts[own];
  parts_.resize(bytes * size_t(ranks_));
  exchange(static_cast<const std::byte*>(all), starts, parts_.data());
  std::vector<const void*> parts;
  for (size_t r = 0; r < size_t(ranks_); ++r) parts.push_back(parts_.data() + r * bytes);
  joinRanks(parts, mine, bytes / sizeOf(dtype), dtype, combine);
}

void StageRanks::allReduce(void* data, size_t count, DType dtype, Combine combine) {
  std::vector<size_t> starts;
  for (size_t r = 0; r <= size_t(ranks_); ++r)
    starts.push_back(count * r / size_t(ranks_) * sizeOf(dtype));
  auto* bytes = static_cast<std::byte*>(data);
  const auto own = size_t(rank());
  joinOwn(data, starts, bytes + starts[own], dtype, combine);
  for (size_t r = 0; r < size_t(ranks_); ++r)
    if (r != own) all_->send(peer(int(r)), bytes + starts[own], starts[own + 1] - starts[own]);
  for (size_t r = 0; r < size_t(ranks_); ++r)
    if (r != own) all_->receive(peer(int(r)), bytes + starts[r], starts[r + 1] - starts[r]);
}

void StageRanks::reduceScatter(const void* all, void* mine, size_t count, DType dtype,
                               Combine combine) {
  std::vector<size_t> starts;
  for (size_t r = 0; r <= size_t(ranks_); ++r) starts.push_back(count * r * sizeOf(dtype));
  joinOwn(all, starts, mine, dtype, combine);
}

void StageRanks::allGather(const void* mine, void* all, size_t bytes) {
  for (int r = 0; r < ranks_; ++r)
    if (r != rank()) all_->send(peer(r), mine, bytes);
  for (int r = 0; r < ranks_; ++r) {
    std::byte* to = static_cast<std::byte*>(all) + size_t(r) * bytes;
    if (r == rank())
      copy(to, mine, bytes);
    else
      all_->receive(peer(r), to, bytes);
  }
}

void StageRanks::allToAll(const void* mine, void* all, size_t bytes) {
  std::vector<size_t> starts;
  for (size_t r = 0; r <= size_t(ranks_); ++r) starts.push_back(r * bytes);
  exchange(static_cast<const std::byte*>(mine), starts, static_cast<std::byte*>(all));
}

void StageRanks::broadcast(void* data, size_t bytes) {
  if (rank() != 0) return all_->receive(peer(0), data, bytes, true);
  for (int r = 1; r < ranks_; ++r) all_->send(peer(r), data, bytes);
}

}  // namespace lathe
