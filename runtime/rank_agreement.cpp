// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_agreement.h"

#include "lathe/runtime/error.h"
#include "runtime/sha256.h"

namespace lathe {
namespace {

// The first rank whose text differs from this one's, which all have of one length; -1 for none.
int otherRank(Communicator& ranks, const std::string& mine) {
  const size_t count = size_t(ranks.size());
  std::string all(mine.size() * count, ' ');
  ranks.allGather(mine.data(), all.data(), mine.size());
  for (size_t r = 0; r < count; ++r)
    if (all.compare(r * mine.size(), mine.size(), mine) != 0) return int(r);
  return -1;
}

}  // namespace

void agreeOnProgram(Communicator& ranks, const Program& program) {
  if (const int other = otherRank(ranks, program.digest()); other >= 0)
    throw Error(ErrorCode::InvalidArgument,
                "rank " + std::to_string(other) + " has another program than rank " +
                    std::to_string(ranks.rank()) +
                    ", or code for another processor: give all ranks one file");
}

void WholeWeights::note(size_t index, const Array& values) {
  if (program_.weights[index].piece || !values.defined()) return;
  digests_[index] = sha256Hex({static_cast<const std::byte*>(values.data()), values.bytes()});
}

void WholeWeights::agree(Communicator& ranks) const {
  std::string all;
  for (const auto& [index, digest] : digests_) all += digest;
  if (otherRank(ranks, sha256Hex(std::as_bytes(std::span(all)))) < 0) return;
  for (const auto& [index, digest] : digests_)
    if (const int other = otherRank(ranks, digest); other >= 0)
      throw Error(ErrorCode::InvalidArgument,
                  "rank " + std::to_string(other) + " has other values of the weight '" +
                      program_.weights[index].source() + "' than rank " +
                      std::to_string(ranks.rank()) + ": give all ranks one checkpoint");
}

}  // namespace lathe
