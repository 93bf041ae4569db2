// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/generator.h"

#include <algorithm>
#include <string>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {

constexpr const char *kIds = "input_ids", *kPositions = "positions", *kLogits = "logits";
constexpr const char* kCache = "cache";

Error misfit(const EntryPoint& entry, const std::string& message) {
  return Error(ErrorCode::InvalidArgument,
               "entry point '" + entry.name + "' cannot generate text: " + message);
}

// Where `input_ids` is among the two inputs.
size_t findInputs(const EntryPoint& entry) {
  if (entry.inputs.size() == 2)
    for (size_t ids : {0, 1}) {
      const Port &first = entry.inputs[ids], &second = entry.inputs[1 - ids];
      auto fits = [&](const Port& port, const char* name, size_t rank) {
        const Slot& slot = entry.slots[size_t(port.slot)];
        return port.name == name && slot.dtype == DType::I64 && slot.shape.size() == rank;
      };
      if (fits(first, kIds, 2) && fits(second, kPositions, 1)) return ids;
    }
  throw misfit(entry, "expected the inputs input_ids i64 [batch, seq] and positions i64 [batch]");
}

void checkLogits(const EntryPoint& entry, int64_t vocab) {
  if (entry.outputs.size() != 1 || entry.outputs[0].name != kLogits)
    throw misfit(entry, "expected the one output logits");
  const Slot& slot = entry.slots[size_t(entry.outputs[0].slot)];
  if (slot.dtype != DType::F32 || slot.shape.size() != 2)
    throw misfit(entry, "expected logits to be f32 [batch, vocab]");
  if (slot.shape[1] != DimExpr(vocab))
    throw misfit(entry, "it has logits for " + slot.shape[1].text() + " tokens, the model has " +
                            std::to_string(vocab));
}

}  // namespace

Generator::Generator(Session& session, const GeneratorLimits& limits)
    : session_(session), limits_(limits) {
  const Program& program = session.program();
  const EntryPoint &prefill = program.entry("prefill"), &decode = program.entry("decode");
  prefillEntry_ = session.entryIndex("prefill");
  decodeEntry_ = session.entryIndex("decode");
  prefillIds_ = findInputs(prefill);
  decodeIds_ = findInputs(decode);
  checkLogits(prefill, limits.vocab);
  checkLogits(decode, limits.vocab);

  if (limits.maxPositions < 1)
    throw Error(ErrorCode::InvalidArgument,
                "Generator: expected at least 1 of the model's positions, got " +
                    std::to_string(limits.maxPositions));
  maxPositions_ = limits.maxPositions;
  const DimExpr& tokens = prefill.slots[size_t(prefill.inputs[prefillIds_].slot)].shape[1];
  bool hasCache = false;
  for (const SymbolInfo& s : program.symbols) {
    if (DimExpr::symbol(s.name) == tokens) chunk_ = std::min(chunk_, s.hi);
    if (s.name != kCache) continue;
    hasCache = true;
    maxPositions_ = std::min(maxPositions_, s.hi);
    cacheStep_ = s.multiple;
  }
  if (!hasCache) throw misfit(prefill, "the program has no symbol 'cache'");

  prefillInputs_.resize(2);
  prefillInputs_[1 - prefillIds_] = Array(DType::I64, {1});
  decodeInputs_.resize(2);
  decodeInputs_[decodeIds_] = Array(DType::I64, {1, 1});
  decodeInputs_[1 - decodeIds_] = Array(DType::I64, {1});
}

void Generator::reserve(int64_t positions) {
  if (positions < 1 || positions > maxPositions_)
    throw Error(ErrorCode::InvalidArgument, "expected from 1 to " + std::to_string(maxPositions_) +
                                                " positions, the model's maximum, got " +
                                                std::to_string(positions));
  int64_t step = kCapacityStep % cacheStep_ == 0 ? kCapacityStep : cacheStep_;
  int64_t rounded = (positions + step - 1) / step * step;
  int64_t most = maxPositions_ / cacheStep_ * cacheStep_;
  int64_t capacity = std::min(rounded, most);
  if (capacity < positions)
    throw Error(ErrorCode::InvalidArgument, "expected at most " + std::to_string(most) +
                                                " positions, got " + std::to_string(positions));
  session_.setSymbol(kCache, capacity);
  capacity_ = capacity;
  position_ = 0;
}

void Generator::check(std::span<const int> ids) const {
  if (ids.empty()) throw Error(ErrorCode::InvalidArgument, "expected at least one token, got none");
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= limits_.vocab)
      throw Error(ErrorCode::InvalidArgument,
                  "token " + std::to_string(i) + ": expected an id from 0 to " +
                      std::to_string(limits_.vocab - 1) + ", got " + std::to_string(ids[i]));
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

std::span<const float> Generator::prefill(std::span<const int> ids) {
  check(ids);
  while (!ids.empty()) {
    const size_t count = std::min(ids.size(), size_t(chunk_));
    Array& chunk = prefillInputs_[prefillIds_];
    if (chunk.shape() != Shape{1, int64_t(count)}) chunk = Array(DType::I64, {1, int64_t(count)});
    std::copy_n(ids.begin(), count, chunk.as<int64_t>().begin());
    prefillInputs_[1 - prefillIds_].as<int64_t>()[0] = position_;
    session_.run(prefillEntry_, prefillInputs_, prefillOutputs_);
    position_ += int64_t(count);
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
  return logits(decodeOutputs_);
}

}  // namespace lathe
