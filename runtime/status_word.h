// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a generated kernel tells of an index out of range: in a 64-bit word that is 0 otherwise. A
// negative index is the word itself. Any other has bit 62 turned round, so that no word of one is
// 0; of 2^62 it would be, and that one is told as its neighbour.
#include <cstdint>

namespace lathe {

/// The index that a word which is not 0 tells of.
constexpr int64_t indexOfStatus(int64_t word) { return word < 0 ? word : word ^ int64_t(1) << 62; }

}  // namespace lathe
