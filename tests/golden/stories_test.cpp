// SPDX-License-Identifier: Apache-2.0
// The trained model against PyTorch: logits, greedy text, teacher-forced bf16, cached decoding.
// scripts/make_model_goldens.py says what the files hold.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/text_generation.h"
#include "tests/closeness.h"

namespace lathe {
namespace {

const std::string kModel = LATHE_SOURCE_DIR "/examples/models/stories";
const std::string kGoldens = LATHE_TEST_DATA "/golden/stories";

// One compilation per dtype and backend serves every test of this program.
Session& session(DType dtype, const std::string& backend = "cpu") {
  static std::map<std::pair<DType, std::string>, std::unique_ptr<Session>> sessions;
  auto& s = sessions[{dtype, backend}];
  if (!s) {
    Checkpoint checkpoint = Checkpoint::open(kModel);
    s = std::make_unique<Session>(
        compile(buildLlama(loadLlamaConfig(kModel), {.dtype = dtype, .weightDType = DType::BF16}),
                {.backend = backend}),
        SessionOptions{.device = "host"});
    s->bindWeights([&](const std::string& name) {
      auto array = checkpoint.find(name);
      return array ? *array : Array();
    });
  }
  return *s;
}

Array forward(DType dtype, const Array& ids, const std::string& backend = "cpu") {
  return session(dtype, backend).run("forward", {{"input_ids", ids}}).at("logits");
}

int64_t argmax(const Array& a, int64_t begin, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i)
    if (a.at(begin + i) > a.at(begin + best)) best = i;
  return best;
}

TEST(Stories, F32LogitsEqualPyTorchs) {
  SafetensorsFile file = SafetensorsFile::open(kGoldens + "/logits.safetensors");
  Array logits = forward(DType::F32, file.array("prompt.0.ids"));
  EXPECT_LE(largestError(logits, file.array("prompt.0.logits.f32")), 1e-4);
  for (int prompt = 0; prompt < 4; ++prompt) {
    std::string key = "prompt." + std::to_string(prompt);
    Array ids = file.array(key + ".ids"), all = forward(DType::F32, ids), last(DType::F32, {768});
    for (int64_t i = 0; i < 768; ++i) last.set(i, all.at((ids.shape()[1] - 1) * 768 + i));
    EXPECT_LE(largestError(last, file.array(key + ".last.f32")), 1e-4) << key;
  }
}

// bf16 logits of `forced.ids` against float64, beside PyTorch's own bf16.
void expectAsExactAsPyTorch(const Array& logits, const SafetensorsFile& greedy) {
  const Array truth = greedy.array("forced.logits.f64"),
              theirs = greedy.array("forced.logits.bf16");
  EXPECT_LE(largestError(logits, truth), 1.5 * largestError(theirs, truth));
  EXPECT_LE(typicalError(logits, truth), 1.5 * typicalError(theirs, truth));
}

// Kernels of the CUDA backend, run on this CPU.
TEST(Stories, CudaLogitsEqualPyTorchsInF32AndBf16) {
  SafetensorsFile file = SafetensorsFile::open(kGoldens + "/logits.safetensors");
  const Array logits = forward(DType::F32, file.array("prompt.0.ids"), "cuda");
  EXPECT_LE(largestError(logits, file.array("prompt.0.logits.f32")), 1e-4);

  SafetensorsFile greedy = SafetensorsFile::open(kGoldens + "/greedy.safetensors");
  expectAsExactAsPyTorch(forward(DType::BF16, greedy.array("forced.ids"), "cuda"), greedy);
}

TEST(Stories, Bf16ErrorIsWithinOnePointFiveOfPyTorchsOwn) {
  SafetensorsFile file = SafetensorsFile::open(kGoldens + "/greedy.safetensors");
  expectAsExactAsPyTorch(forward(DType::BF16, file.array("forced.ids")), file);
}

TEST(Stories, Bf16TopOneIsEqualWhereTheGapExceedsTheError) {
  SafetensorsFile file = SafetensorsFile::open(kGoldens + "/greedy.safetensors");
  Array ids = file.array("forced.ids"), truth = file.array("forced.logits.f64");
  Array ours = forward(DType::BF16, ids);
  double error = largestError(ours, truth);
  int64_t checked = 0;
  for (int64_t at = 0; at < ids.size(); ++at) {
    int64_t best = argmax(truth, at * 768, 768);
    double second = -INFINITY;
    for (int64_t i = 0; i < 768; ++i)
      if (i != best) second = std::max(second, truth.at(at * 768 + i));
    if (truth.at(at * 768 + best) - second <= 2 * error) continue;
    ++checked;
    EXPECT_EQ(argmax(ours, at * 768, 768), best) << "position " << at;
  }
  EXPECT_GT(checked, ids.size() / 2);
}

struct GreedyCase {
  std::string backend;
  int prompts;
};
class StoriesGreedy : public ::testing::TestWithParam<GreedyCase> {};

TEST_P(StoriesGreedy, TextIsTokenIdenticalFor200TokensInF32) {
  SafetensorsFile goldens = SafetensorsFile::open(kGoldens + "/greedy.safetensors");
  SafetensorsFile logits = SafetensorsFile::open(kGoldens + "/logits.safetensors");
  Session& s = session(DType::F32, GetParam().backend);
  s.setSymbol("cache", 256);
  for (int prompt = 0; prompt < GetParam().prompts; ++prompt) {
    std::string key = "prompt." + std::to_string(prompt);
    Array ids = logits.array(key + ".ids"), wanted = goldens.array(key + ".greedy");
    ASSERT_EQ(wanted.size(), 200);
    s.resetStates();
    Array position(DType::I64, {1});
    Array row = s.run("prefill", {{"input_ids", ids}, {"positions", position}}).at("logits");
    int64_t length = ids.size();
    for (int64_t i = 0; i < wanted.size(); ++i) {
      int64_t token = argmax(row, 0, 768);
      ASSERT_EQ(token, int64_t(wanted.at(i))) << key << ", token " << i;
      Array next(DType::I64, {1, 1}), at(DType::I64, {1});
      next.set(0, double(token));
      at.set(0, double(length + i));
      row = s.run("decode", {{"input_ids", next}, {"positions", at}}).at("logits");
    }
  }
}

// The same tokens where each step takes its token from the one before, without the host.
TEST_P(StoriesGreedy, DeviceChoosesTheSameTokens) {
  const SafetensorsFile goldens = SafetensorsFile::open(kGoldens + "/greedy.safetensors");
  const SafetensorsFile logits = SafetensorsFile::open(kGoldens + "/logits.safetensors");
  const LlamaConfig config = loadLlamaConfig(kModel);
  const Checkpoint checkpoint = Checkpoint::open(kModel);
  const FamilyOptions options{.weightDType = DType::BF16, .greedy = true};
  Session s(compile(buildLlama(config, options), {.backend = GetParam().backend}),
            SessionOptions{.device = "host"});
  s.bindWeights([&](const std::string& name) { return checkpoint.find(name).value_or(Array()); });
  Generator generator(s, {config.vocabSize, config.maxPositions});
  const Array prompt = logits.array("prompt.0.ids"), wanted = goldens.array("prompt.0.greedy");
  std::vector<int> ids, expected;
  for (int64_t i = 0; i < prompt.size(); ++i) ids.push_back(int(prompt.at(i)));
  for (int64_t i = 0; i < wanted.size(); ++i) expected.push_back(int(wanted.at(i)));
  const int64_t count = GetParam().backend == "reference" ? 20 : wanted.size();
  expected.resize(size_t(count));
  EXPECT_EQ(generateText(generator, std::nullopt, ids, {.newTokens = count}).ids(), expected);
}

INSTANTIATE_TEST_SUITE_P(Backends, StoriesGreedy,
                         ::testing::Values(GreedyCase{"cpu", 4}, GreedyCase{"reference", 1},
                                           GreedyCase{"cuda", 1}),
                         [](const auto& info) { return info.param.backend; });

TEST(Stories, CachedDecodeEqualsTheFullPassAtEveryPosition) {
  SafetensorsFile file = SafetensorsFile::open(kGoldens + "/greedy.safetensors");
  Array ids = file.array("forced.ids"), full = forward(DType::F32, ids);
  ASSERT_TRUE(isFinite(full));
  Session& s = session(DType::F32);
  s.setSymbol("cache", 256);
  for (int64_t at = 0; at < ids.size(); ++at) {
    Array token(DType::I64, {1, 1}), position(DType::I64, {1});
    token.set(0, ids.at(at));
    position.set(0, double(at));
    Array row = s.run("decode", {{"input_ids", token}, {"positions", position}}).at("logits");
    ASSERT_LE(largestError(elements(row, 0, 768), elements(full, at * 768, 768)), 1e-4)
        << "position " << at;
  }
}

}  // namespace
}  // namespace lathe
