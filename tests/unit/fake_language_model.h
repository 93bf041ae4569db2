// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model that is a function of its cache: what it says next depends on the last tokens
// that the cache holds, so that a row that was not written, or not taken back, shows.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/device.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/program.h"
#include "lathe/runtime/sampler.h"

namespace lathe::test {

inline constexpr int64_t kFakeVocab = 7;

/// Logits of what follows `text`, by its last three tokens. `sharpness` scales them.
inline std::vector<float> fakeLogits(std::span<const int> text, uint64_t seed, double sharpness) {
  uint64_t state = seed + 1;
  for (size_t i = text.size() < 3 ? 0 : text.size() - 3; i < text.size(); ++i)
    state = (state ^ uint64_t(text[i] + 1)) * 0x9e3779b97f4a7c15u;
  std::vector<float> logits;
  for (int64_t id = 0; id < kFakeVocab; ++id) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    logits.push_back(float(sharpness * double(state >> 40) * 0x1p-24));
  }
  return logits;
}

struct FakeModel {
  uint64_t seed = 1;
  double sharpness = 4;
  int64_t maxPositions = 256;
  bool verify = true;
  bool greedy = false;
  int64_t strangeAt = -1;       // the logits of this position are NaN
  int64_t block = 0;            // tokens of a block of the cache; 0: a row for each text
  bool positionsFirst = false;  // of the inputs
};

// Operands: ids [batch, tokens], positions [batch], state [batch, cache]; or in front of the state
// the table [batch, entries], and then the state is [blocks, 1, tokens of a block, 1]. The result
// is [batch, vocab] or [batch, tokens, vocab].
class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(FakeModel model, bool all) : model_(model), all_(all) {}
  size_t bind(const KernelShapes& shapes) override {
    batch_ = shapes.shapes[0][0];
    tokens_ = shapes.shapes[0][1];
    if (model_.block > 0) entries_ = shapes.shapes[2][1];
    capacity_ = model_.block > 0 ? entries_ * model_.block : shapes.shapes[2][1];
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    auto* ids = static_cast<const int64_t*>(pointers[0]);
    auto* positions = static_cast<const int64_t*>(pointers[1]);
    const bool paged = model_.block > 0;
    auto* table = paged ? static_cast<const int64_t*>(pointers[2]) : nullptr;
    auto* cache = static_cast<float*>(pointers[paged ? 3 : 2]);
    auto* logits = static_cast<float*>(pointers[paged ? 4 : 3]);
    auto at = [&](int64_t row, int64_t place) -> float& {
      if (!paged) return cache[row * capacity_ + place];
      const int64_t block = table[row * entries_ + place / model_.block];
      return cache[block * model_.block + place % model_.block];
    };
    for (int64_t row = 0; row < batch_; ++row)
      for (int64_t i = 0; i < tokens_; ++i) {
        const int64_t place = positions[row] + i;
        at(row, place) = float(ids[row * tokens_ + i]);
        if (!all_ && i + 1 < tokens_) continue;
        std::vector<int> last;
        for (int64_t p = std::max<int64_t>(0, place - 2); p <= place; ++p)
          last.push_back(int(at(row, p)));
        for (float logit : fakeLogits(last, model_.seed, model_.sharpness))
          *logits++ = place == model_.strangeAt ? std::numeric_limits<float>::quiet_NaN() : logit;
      }
  }

 private:
  FakeModel model_;
  bool all_;
  int64_t batch_ = 0, tokens_ = 0, capacity_ = 0, entries_ = 0;
};

// Operands: the states of GreedyStates, and the state [batch, cache].
class FakeGreedyKernel final : public Kernel {
 public:
  explicit FakeGreedyKernel(FakeModel model) : model_(model) {}
  size_t bind(const KernelShapes& shapes) override {
    const Shape batch{shapes.shapes[1]};
    step_ = std::make_unique<FakeKernel>(model_, false);
    KernelShapes inner{{shapes.shapes[0], batch, shapes.shapes[3], {batch[0], kFakeVocab}}};
    logits_.resize(size_t(batch[0] * kFakeVocab));
    return step_->bind(inner);
  }
  void run(void* const* pointers, std::byte* scratch) override {
    void* const inner[] = {pointers[0], pointers[1], pointers[3], logits_.data()};
    step_->run(inner, scratch);
    auto* ids = static_cast<int64_t*>(pointers[0]);
    auto* positions = static_cast<int64_t*>(pointers[1]);
    auto* chosen = static_cast<int64_t*>(pointers[2]);
    const size_t batch = logits_.size() / size_t(kFakeVocab);
    for (size_t row = 0; row < batch; ++row) {
      const int64_t best = indexOfLargest({&logits_[row * size_t(kFakeVocab)], size_t(kFakeVocab)});
      chosen[size_t(positions[row]++ % GreedyStates::kSteps) * batch + row] = best;
      ids[row] = std::max<int64_t>(best, 0);
    }
  }

 private:
  FakeModel model_;
  std::unique_ptr<FakeKernel> step_;
  std::vector<float> logits_;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeModel model) : model_(model) {}
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call&) override {
    if (entry.name == "greedy") return std::make_unique<FakeGreedyKernel>(model_);
    return std::make_unique<FakeKernel>(model_, entry.name == "verify");
  }

 private:
  FakeModel model_;
};

/// Registers a device "fake-..." once and gives a program for it.
inline Program fakeProgram(const FakeModel& model) {
  Program p;
  p.backend = "fake-" + std::to_string(model.seed) + "-" + std::to_string(model.sharpness) + "-" +
              std::to_string(model.strangeAt) + "-" + std::to_string(model.block);
  auto open = [model](std::shared_ptr<const Program>, const DeviceOptions&) {
    return std::make_unique<FakeDevice>(model);
  };
  if (!hasDevice(p.backend)) registerDevice(p.backend, open);
  const DimExpr batch = DimExpr::symbol("batch"), seq = DimExpr::symbol("seq"),
                cache = DimExpr::symbol("cache");
  p.symbols = {{"batch", 1, 8, 1}, {"seq", 1, 64, 1}, {"cache", 1, model.maxPositions, 1}};
  p.states = {{"k", DType::F32, {batch, cache}}};
  const DimExpr blocks = DimExpr::symbol("blocks"), entries = DimExpr::symbol("entries");
  if (model.block > 0) {
    const int64_t most = (model.maxPositions + model.block - 1) / model.block;
    p.symbols.pop_back();
    p.symbols.push_back({"blocks", 1, 8 * most, 1});
    p.symbols.push_back({"entries", 1, most, 1});
    p.states = {{"k", DType::F32, {blocks, DimExpr(1), DimExpr(model.block), DimExpr(1)}}};
  }
  auto add = [&](const char* name, const DimExpr& tokens, bool all) {
    EntryPoint e;
    e.name = name;
    std::vector<DimExpr> logits{batch, DimExpr(kFakeVocab)};
    if (all) logits.insert(logits.begin() + 1, tokens);
    e.slots = {{SlotKind::Argument, DType::I64, {batch, tokens}, 0, -1},
               {SlotKind::Argument, DType::I64, {batch}, 1, -1},
               {SlotKind::State, DType::F32, {batch, cache}, 0, -1},
               {SlotKind::Result, DType::F32, logits, 0, -1}};
    e.inputs = {{"input_ids", 0}, {"positions", 1}};
    if (model.positionsFirst) {
      std::swap(e.inputs[0], e.inputs[1]);
      std::swap(e.slots[0].index, e.slots[1].index);
    }
    e.outputs = {{"logits", 3}};
    e.statesIn = e.statesOut = {{"k", 2}};
    e.calls = {{"fake", "", "{}", {0, 1, 2}, {3}, "test"}};
    if (model.block > 0) {
      e.slots[2].shape = p.states[0].shape;
      e.slots.push_back({SlotKind::Argument, DType::I64, {batch, entries}, 2, -1});
      e.inputs.push_back({"block_table", 4});
      e.calls[0].operands = {0, 1, 4, 2};
    }
    p.entries.push_back(std::move(e));
  };
  add("prefill", seq, false);
  add("decode", DimExpr(1), false);
  if (model.verify) add("verify", seq, true);
  if (!model.greedy) return p;
  p.states.push_back({GreedyStates::kIds, DType::I64, {batch, DimExpr(1)}});
  p.states.push_back({GreedyStates::kPositions, DType::I64, {batch}});
  p.states.push_back({GreedyStates::kChosen, DType::I64, {DimExpr(GreedyStates::kSteps), batch}});
  EntryPoint e;
  e.name = "greedy";
  for (int i : {1, 2, 3, 0}) {
    const TensorInfo& state = p.states[size_t(i)];
    e.statesIn.push_back({state.name, int(e.slots.size())});
    e.slots.push_back({SlotKind::State, state.dtype, state.shape, i, -1});
  }
  e.statesOut = e.statesIn;
  e.calls = {{"fake", "", "{}", {0, 1, 2, 3}, {}, "test"}};
  p.entries.push_back(std::move(e));
  return p;
}

}  // namespace lathe::test
