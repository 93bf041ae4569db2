// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights as a program sees them: the checkpoint's tensors and what `load` derived from them.
#include <set>
#include <string>
#include <vector>

#include "lathe/runtime/session.h"

namespace lathe {

class BoundWeights {
 public:
  std::vector<Array> raw;      ///< in the order of Program::weights
  std::vector<Array> derived;  ///< in the order of Program::derived
};

/// Fetches every weight, whole, and checks dtype and shape; throws one Error that lists all
/// mistakes.
std::vector<Array> fetchWeights(const Program& program, const WeightSource& source);
/// The same check of what a checkpoint says that it holds: nothing is read.
void checkStoredWeights(const Program& program, const Checkpoint& checkpoint);
/// What a rank reads of a weight: all of it, or its piece.
Array ownPiece(const TensorInfo& info, Array whole, int64_t rank, int64_t ranks);
/// The same from a checkpoint: where its format allows, nothing is read but the piece.
Array readPiece(const TensorInfo& info, const Checkpoint& checkpoint, int64_t rank, int64_t ranks);
/// Part `part` of a weight that is cut as `piece` says: the leading axis as a view, others copied.
Array partOf(const Array& whole, const AxisPiece& piece, const std::string& name);
/// Keeps in the program's metadata which of the `declared` weights of its graph it does not read,
/// because rewrites found that no output depends on them.
void noteUnreadWeights(Program& program, const std::vector<std::string>& declared);
/// The names that noteUnreadWeights kept. Throws Error (InvalidFile) if they are no JSON list.
std::set<std::string> unreadWeights(const Program& program);
/// Deterministic values for one weight: uniform in +-1/sqrt(last dim) for matrices, near 1 for
/// vectors (norm gains). Of a weight that is read in pieces only the one of rank `rank` of `ranks`
/// is made, with the values that the whole has there. Values do not depend on the number of
/// threads, which share the work.
Array randomWeight(const TensorInfo& info, uint64_t seed, int64_t rank = 0, int64_t ranks = 1);

}  // namespace lathe
