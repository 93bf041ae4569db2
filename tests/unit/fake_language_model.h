// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model that is a function of its cache: what it says next depends on the last tokens
// that the cache holds, so that a row that was not written, or not taken back, shows.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/runtime/device.h"
#include "lathe/runtime/program.h"

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
};

// Operands: ids [batch, tokens], positions [batch], state [batch, cache]; the result is
// [batch, vocab] or [batch, tokens, vocab].
class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(FakeModel model, bool all) : model_(model), all_(all) {}
  size_t bind(const KernelShapes& shapes) override {
    batch_ = shapes.shapes[0][0];
    tokens_ = shapes.shapes[0][1];
    capacity_ = shapes.shapes[2][1];
    return 0;
  }
  void run(void* const* pointers, std::byte*) override {
    auto* ids = static_cast<const int64_t*>(pointers[0]);
    auto* positions = static_cast<const int64_t*>(pointers[1]);
    auto* cache = static_cast<float*>(pointers[2]);
    auto* logits = static_cast<float*>(pointers[3]);
    for (int64_t row = 0; row < batch_; ++row)
      for (int64_t i = 0; i < tokens_; ++i) {
        const int64_t place = positions[row] + i;
        float* text = cache + row * capacity_;
        text[place] = float(ids[row * tokens_ + i]);
        if (!all_ && i + 1 < tokens_) continue;
        std::vector<int> last(text + std::max<int64_t>(0, place - 2), text + place + 1);
        for (float logit : fakeLogits(last, model_.seed, model_.sharpness)) *logits++ = logit;
      }
  }

 private:
  FakeModel model_;
  bool all_;
  int64_t batch_ = 0, tokens_ = 0, capacity_ = 0;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeModel model) : model_(model) {}
  std::unique_ptr<Kernel> makeKernel(const Program&, const EntryPoint& entry,
                                     const Call&) override {
    return std::make_unique<FakeKernel>(model_, entry.name == "verify");
  }

 private:
  FakeModel model_;
};

/// Registers the device "fake-<seed>-<sharpness>" once and gives a program for it.
inline Program fakeProgram(const FakeModel& model) {
  Program p;
  p.backend = "fake-" + std::to_string(model.seed) + "-" + std::to_string(model.sharpness);
  auto open = [model](std::shared_ptr<const Program>, const DeviceOptions&) {
    return std::make_unique<FakeDevice>(model);
  };
  if (!hasDevice(p.backend)) registerDevice(p.backend, open);
  const DimExpr batch = DimExpr::symbol("batch"), seq = DimExpr::symbol("seq"),
                cache = DimExpr::symbol("cache");
  p.symbols = {{"batch", 1, 8, 1}, {"seq", 1, 64, 1}, {"cache", 1, model.maxPositions, 1}};
  p.states = {{"k", DType::F32, {batch, cache}}};
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
    e.outputs = {{"logits", 3}};
    e.statesIn = e.statesOut = {{"k", 2}};
    e.calls = {{"fake", "", "{}", {0, 1, 2}, {3}, "test"}};
    p.entries.push_back(std::move(e));
  };
  add("prefill", seq, false);
  add("decode", DimExpr(1), false);
  if (model.verify) add("verify", seq, true);
  return p;
}

}  // namespace lathe::test
