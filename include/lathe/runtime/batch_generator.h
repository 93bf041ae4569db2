// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several texts at once: the entry points `prefill` and `decode` with a row for each.
#include <cstdint>
#include <span>
#include <vector>

#include "lathe/runtime/generator.h"

namespace lathe {

/// Texts of a batch, each at its own length. The program is that of Generator, with rows up to the
/// largest value of the symbol that `input_ids` has first. The session must outlive it.
class BatchGenerator {
 public:
  /// Throws Error(InvalidArgument) as Generator does.
  BatchGenerator(Session& session, const GeneratorLimits& limits);

  int64_t maxPositions() const { return maxPositions_; }
  int64_t maxRows() const { return maxRows_; }
  /// Makes room for `rows` texts of `positions` tokens each and starts anew. Throws
  /// Error(InvalidArgument) beyond maxRows() and maxPositions().
  void reserve(int64_t rows, int64_t positions);
  int64_t rows() const { return int64_t(positions_.size()); }
  /// Tokens in the cache of a row.
  int64_t position(int64_t row) const { return positions_.at(size_t(row)); }

  /// After reserve(): a prompt (at least one id) for each row, of any lengths. Gives the logits
  /// after the last id of each, f32 [rows, vocab], valid until the next call. Shorter ones are
  /// padded behind their end: what that leaves in the cache is written over before a token sees it.
  std::span<const float> prefill(std::span<const std::vector<int>> prompts);
  /// The next token of each row, or kRest for a row that has ended: its logits mean nothing then.
  std::span<const float> next(std::span<const int> ids);
  static constexpr int kRest = -1;

  /// Row i goes on with the text of row `rows[i]`.
  void gather(std::span<const int64_t> rows);

 private:
  std::span<const float> run(size_t entry, size_t idsInput, std::span<const int64_t> ids,
                             std::span<const int64_t> positions, bool wantsLogits = true);
  void checkRoom(int64_t row, int64_t tokens) const;

  Session& session_;
  int64_t vocab_ = 0, maxPositions_ = 0, cacheStep_ = 1, chunk_ = 0, maxRows_ = 1, capacity_ = 0;
  size_t prefillEntry_ = 0, decodeEntry_ = 0, prefillIds_ = 0, decodeIds_ = 0;
  std::string rowsSymbol_;
  std::vector<int64_t> positions_;
  std::vector<Array> outputs_;
};

}  // namespace lathe
