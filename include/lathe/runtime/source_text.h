// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text that an encoder-decoder reads before it writes another.
#include <cstdint>
#include <span>
#include <vector>

#include "lathe/runtime/session.h"

namespace lathe {

/// Whether generators of this program go on from a source: it has the entry point `encode`.
bool readsSource(const Program& program);

/// Runs `encode` on a source for each row, padded to the longest: input_ids and attention_mask
/// i64 [rows, source]. What it leaves in the session's states is what `prefill` and `decode` of a
/// Generator or a BatchGenerator of so many rows go on from, once or several times. Throws
/// Error(InvalidArgument) for a program whose `encode` has other inputs, for an empty source, for
/// one that is longer than the program takes, and for ids outside of [0, vocab).
void encodeSources(Session& session, std::span<const std::vector<int>> sources, int64_t vocab,
                   int64_t padId);

}  // namespace lathe
