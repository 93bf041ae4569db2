// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/generator.h"

#include <algorithm>
#include <array>
#include <string>

#include "lathe/runtime/error.h"
#include "runtime/language_program.h"

namespace lathe {

Generator::Generator(Session& session, const GeneratorLimits& limits)
    : session_(session), limits_(limits) {
  const LanguageEntry prefill = languageEntry(session, "prefill", limits.vocab);
  const LanguageEntry decode = languageEntry(session, "decode", limits.vocab);
  prefillEntry_ = prefill.index;
  prefillIds_ = prefill.ids;
  decodeEntry_ = decode.index;
  decodeIds_ = decode.ids;
  for (const EntryPoint& entry : session.program().entries) {
    if (entry.name == "greedy" && session.program().allRanks() == 1) {
      checkGreedy(session.program(), entry);
      greedyEntry_ = session.entryIndex(entry.name);
    }
    if (entry.name != "verify") continue;
    const LanguageEntry verify =
        languageEntry(session, entry.name, limits.vocab, /*ofEveryToken=*/true);
    verifyEntry_ = verify.index;
    verifyIds_ = verify.ids;
    verifyInputs_.resize(2);
    verifyInputs_[verify.positions()] = Array(DType::I64, {1});
  }
  const LanguageSizes sizes = languageSizes(session.program(), prefill, limits);
  maxPositions_ = sizes.maxPositions;
  cacheStep_ = sizes.cacheStep;
  chunk_ = sizes.chunk;

  prefillInputs_.resize(2);
  prefillInputs_[1 - prefillIds_] = Array(DType::I64, {1});
  decodeInputs_.resize(2);
  decodeInputs_[decodeIds_] = Array(DType::I64, {1, 1});
  decodeInputs_[1 - decodeIds_] = Array(DType::I64, {1});
}

void Generator::reserve(int64_t positions) {
  const int64_t capacity = capacityFor(positions, maxPositions_, cacheStep_);
  session_.setSymbol(kCacheSymbol, capacity);
  capacity_ = capacity;
  position_ = 0;
  ids_.clear();
  ids_.reserve(size_t(capacity));
}

void Generator::resume(std::span<const int> prompt, int64_t positions) {
  if (positions > capacity_ || prompt.empty()) return reserve(positions);
  const auto differs = std::ranges::mismatch(ids_, prompt).in1;
  rewind(std::min(int64_t(differs - ids_.begin()), int64_t(prompt.size()) - 1));
}

void Generator::check(std::span<const int> ids) const {
  if (ids.empty()) throw Error(ErrorCode::InvalidArgument, "expected at least one token, got none");
  checkIds(ids, limits_.vocab);
  if (position_ + int64_t(ids.size()) > capacity_)
    throw Error(ErrorCode::InvalidArgument, std::to_string(ids.size()) + " tokens at position " +
                                                std::to_string(position_) + " end past the " +
                                                std::to_string(capacity_) +
                                                " positions that were reserved (the model has " +
                                                std::to_string(maxPositions_) + ")");
}

std::span<const float> Generator::logits(const std::vector<Array>& outputs) const {
  return outputs[0].as<float>();
}

void Generator::put(Array& input, std::span<const int> ids) {
  const int64_t count = int64_t(ids.size());
  if (!input.defined() || input.shape() != Shape{1, count}) input = Array(DType::I64, {1, count});
  std::copy(ids.begin(), ids.end(), input.as<int64_t>().begin());
}

std::span<const float> Generator::prefill(std::span<const int> ids) {
  check(ids);
  while (!ids.empty()) {
    const size_t count = std::min(ids.size(), size_t(chunk_));
    put(prefillInputs_[prefillIds_], ids.first(count));
    prefillInputs_[1 - prefillIds_].as<int64_t>()[0] = position_;
    const bool isLast = count == ids.size();
    isLast ? session_.run(prefillEntry_, prefillInputs_, prefillOutputs_)
           : session_.runAhead(prefillEntry_, prefillInputs_, prefillOutputs_);
    position_ += int64_t(count);
    ids_.insert(ids_.end(), ids.begin(), ids.begin() + int64_t(count));
    ids = ids.subspan(count);
  }
  return logits(prefillOutputs_);
}

std::span<const float> Generator::next(int id) {
  check({&id, 1});
  decodeInputs_[decodeIds_].as<int64_t>()[0] = id;
  decodeInputs_[1 - decodeIds_].as<int64_t>()[0] = position_;
  session_.run(decodeEntry_, decodeInputs_, decodeOutputs_);
  ++position_;
  ids_.push_back(id);
  return logits(decodeOutputs_);
}

std::span<const int> Generator::choose(int id, int64_t count) {
  if (!greedyEntry_)
    throw Error(ErrorCode::InvalidArgument,
                "the program has no entry point 'greedy', which chooses tokens; compile it with "
                "FamilyOptions::greedy (`lathe compile --greedy`), for one rank");
  check({&id, 1});
  count = std::clamp<int64_t>(count, 1, std::min(GreedyStates::kSteps, capacity_ - position_));
  chosen_.assign(1, id);
  greedyIds_.as<int64_t>()[0] = id;
  greedyPositions_.as<int64_t>()[0] = position_;
  session_.setState(GreedyStates::kIds, greedyIds_);
  session_.setState(GreedyStates::kPositions, greedyPositions_);
  session_.run(*greedyEntry_, {}, greedyOutputs_, count);
  const Array chosen = session_.state(GreedyStates::kChosen);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t next = chosen.as<int64_t>()[size_t((position_ + i) % GreedyStates::kSteps)];
    if (next < 0) break;
    checkIds(std::array{int(next)}, limits_.vocab);
    chosen_.push_back(int(next));
  }
  const auto taken = int64_t(chosen_.size()) - 1;
  ids_.insert(ids_.end(), chosen_.begin(), chosen_.begin() + taken);
  position_ += taken;
  return std::span(chosen_).subspan(1);
}

void Generator::requireVerify() const {
  if (!verifyEntry_)
    throw Error(
        ErrorCode::InvalidArgument,
        "the program has no entry point 'verify', which speculative decoding needs; compile "
        "it with FamilyOptions::verify (`lathe compile --verify`)");
}

std::span<const float> Generator::verify(std::span<const int> ids) {
  requireVerify();
  if (int64_t(ids.size()) > chunk_)
    throw Error(ErrorCode::InvalidArgument, "expected at most " + std::to_string(chunk_) +
                                                " tokens to verify, got " +
                                                std::to_string(ids.size()));
  check(ids);
  put(verifyInputs_[verifyIds_], ids);
  verifyInputs_[1 - verifyIds_].as<int64_t>()[0] = position_;
  session_.run(*verifyEntry_, verifyInputs_, verifyOutputs_);
  position_ += int64_t(ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  return logits(verifyOutputs_);
}

void Generator::rewind(int64_t position) {
  if (position < 0 || position > position_)
    throw Error(ErrorCode::InvalidArgument, "expected a position from 0 to " +
                                                std::to_string(position_) + ", got " +
                                                std::to_string(position));
  position_ = position;
  ids_.resize(size_t(position));
}

}  // namespace lathe
