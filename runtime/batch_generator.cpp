// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/batch_generator.h"

#include <algorithm>
#include <string>

#include "lathe/runtime/error.h"
#include "runtime/language_program.h"

namespace lathe {

BatchGenerator::BatchGenerator(Session& session, const GeneratorLimits& limits)
    : session_(session), vocab_(limits.vocab) {
  const Program& program = session.program();
  const LanguageEntry prefill = languageEntry(session, "prefill", limits.vocab);
  const LanguageEntry decode = languageEntry(session, "decode", limits.vocab);
  prefillEntry_ = prefill.index;
  prefillIds_ = prefill.ids;
  decodeEntry_ = decode.index;
  decodeIds_ = decode.ids;
  const LanguageSizes sizes = languageSizes(program, prefill, limits);
  maxPositions_ = sizes.maxPositions;
  cacheStep_ = sizes.cacheStep;
  chunk_ = sizes.chunk;
  maxRows_ = sizes.maxRows;
  const EntryPoint& entry = program.entries[prefill.index];
  rowsSymbol_ = entry.slots[size_t(entry.inputs[prefill.ids].slot)].shape[0].text();
}

void BatchGenerator::reserve(int64_t rows, int64_t positions) {
  if (rows < 1 || rows > maxRows_)
    throw Error(ErrorCode::InvalidArgument, "expected from 1 to " + std::to_string(maxRows_) +
                                                " texts at once, got " + std::to_string(rows));
  capacity_ = capacityFor(positions, maxPositions_, cacheStep_);
  session_.setSymbol(kCacheSymbol, capacity_);
  positions_.assign(size_t(rows), 0);
}

void BatchGenerator::checkRoom(int64_t row, int64_t tokens) const {
  const int64_t position = positions_[size_t(row)];
  if (position + tokens > capacity_)
    throw Error(ErrorCode::InvalidArgument,
                "row " + std::to_string(row) + ": " + std::to_string(tokens) +
                    " tokens at position " + std::to_string(position) + " end past the " +
                    std::to_string(capacity_) + " positions that were reserved");
}

std::span<const float> BatchGenerator::run(size_t entry, size_t idsInput,
                                           std::span<const int64_t> ids,
                                           std::span<const int64_t> positions, bool wantsLogits) {
  std::vector<Array> inputs(2);
  inputs[idsInput] = Array(DType::I64, {rows(), int64_t(ids.size()) / rows()});
  std::ranges::copy(ids, inputs[idsInput].as<int64_t>().begin());
  inputs[1 - idsInput] = Array(DType::I64, {rows()});
  std::ranges::copy(positions, inputs[1 - idsInput].as<int64_t>().begin());
  wantsLogits ? session_.run(entry, inputs, outputs_) : session_.runAhead(entry, inputs, outputs_);
  return outputs_[0].as<float>();
}

std::span<const float> BatchGenerator::prefill(std::span<const std::vector<int>> prompts) {
  if (int64_t(prompts.size()) != rows())
    throw Error(ErrorCode::InvalidArgument, "expected a prompt for each of " +
                                                std::to_string(rows()) + " rows, got " +
                                                std::to_string(prompts.size()));
  if (std::ranges::any_of(positions_, [](int64_t position) { return position > 0; }))
    throw Error(ErrorCode::InvalidArgument,
                "expected texts at their beginning; call reserve() before another prefill");
  size_t longest = 0, shortest = SIZE_MAX;
  for (size_t row = 0; row < prompts.size(); ++row) {
    if (prompts[row].empty())
      throw Error(ErrorCode::InvalidArgument,
                  "row " + std::to_string(row) + ": expected at least one token, got none");
    checkIds(prompts[row], vocab_);
    checkRoom(int64_t(row), int64_t(prompts[row].size()));
    longest = std::max(longest, prompts[row].size());
    shortest = std::min(shortest, prompts[row].size());
  }
  // Where lengths differ, the last tokens go through `decode`, each where its own text ends; what
  // comes before runs in common chunks.
  const bool even = longest == shortest;
  const size_t common = even ? longest : longest - 1;
  std::span<const float> logits;
  const size_t chunk = size_t(chunkOfRows(chunk_, int64_t(prompts.size())));
  for (size_t done = 0; done < common; done += chunk) {
    const size_t count = std::min(common - done, chunk);
    std::vector<int64_t> ids;
    for (const std::vector<int>& prompt : prompts)
      for (size_t i = 0; i < count; ++i)
        ids.push_back(prompt[std::min(done + i, prompt.size() - 1)]);
    logits = run(prefillEntry_, prefillIds_, ids, std::vector(prompts.size(), int64_t(done)),
                 even && done + count == common);
  }
  std::vector<int64_t> last;
  for (size_t row = 0; row < prompts.size(); ++row) {
    positions_[row] = int64_t(prompts[row].size());
    last.push_back(prompts[row].back());
  }
  if (even) return logits;
  std::vector<int64_t> places = positions_;
  for (int64_t& place : places) --place;
  return run(decodeEntry_, decodeIds_, last, places);
}

std::span<const float> BatchGenerator::next(std::span<const int> ids) {
  if (int64_t(ids.size()) != rows())
    throw Error(ErrorCode::InvalidArgument, "expected a token for each of " +
                                                std::to_string(rows()) + " rows, got " +
                                                std::to_string(ids.size()));
  std::vector<int64_t> tokens, positions;
  for (int64_t row = 0; row < rows(); ++row) {
    const int id = ids[size_t(row)];
    if (id != kRest) {
      checkIds({&id, 1}, vocab_);
      checkRoom(row, 1);
    }
    tokens.push_back(std::max(id, 0));
    positions.push_back(std::min(positions_[size_t(row)], capacity_ - 1));
  }
  const std::span<const float> logits = run(decodeEntry_, decodeIds_, tokens, positions);
  for (int64_t row = 0; row < rows(); ++row) positions_[size_t(row)] += ids[size_t(row)] != kRest;
  return logits;
}

void BatchGenerator::gather(std::span<const int64_t> rows) {
  session_.gatherStateRows(rowsSymbol_, rows);
  std::vector<int64_t> positions;
  for (int64_t row : rows) positions.push_back(positions_.at(size_t(row)));
  positions_ = std::move(positions);
}

}  // namespace lathe
