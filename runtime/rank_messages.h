// SPDX-License-Identifier: Apache-2.0
#pragma once
// What messages between two ranks have in common, whatever carries them.
#include <cstddef>
#include <string>

#include "lathe/runtime/error.h"

namespace lathe {

/// So many messages from one rank to another may be on their way; then the sender waits.
constexpr size_t kMostOnTheWay = 16;

/// Throws Error (InvalidArgument) where `rank`, of `call`, is none of `count`.
inline void expectRank(const char* call, int rank, size_t count) {
  if (rank < 0 || size_t(rank) >= count)
    throw Error(ErrorCode::InvalidArgument, std::string(call) + ": rank " + std::to_string(rank) +
                                                " is none of " + std::to_string(count));
}

}  // namespace lathe
