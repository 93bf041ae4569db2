// SPDX-License-Identifier: Apache-2.0
// Small random models of every family (scripts/make_family_goldens.py) against the logits of
// transformers: one full pass, decoding token by token, and what the fusions find.
#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/inspect/why_not.h"
#include "lathe/lathe.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

std::string goldenPath(const std::string& architecture) {
  return LATHE_TEST_DATA "/golden/families/" + architecture + ".safetensors";
}

// ids [batch, seq] -> columns first..first + count.
Array columns(const Array& ids, int64_t first, int64_t count) {
  const int64_t batch = ids.shape()[0], seq = ids.shape()[1];
  Array part(DType::I64, {batch, count});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < count; ++i) part.set(b * count + i, ids.at(b * seq + first + i));
  return part;
}

class Families : public ::testing::TestWithParam<FamilyParameter> {
 protected:
  Families()
      : file_(SafetensorsFile::open(goldenPath(GetParam().architecture))),
        cases_(JsonValue::parse(file_.metadata().at("cases"), GetParam().architecture)) {}

  JsonValue config(size_t i) const { return cases_.at(i).at("config"); }
  Array array(size_t i, const std::string& name) const {
    return file_.array(std::to_string(i) + "." + name);
  }
  Session session(size_t i) const {
    auto program = std::make_shared<const Program>(
        compile(buildFromConfig(config(i), {.verify = true}), {.backend = GetParam().backend}));
    Session s(program, {.device = "host"});
    s.bindWeights(goldenWeights(*program, cases_.at(i).at("seed").asUint()));
    return s;
  }

  SafetensorsFile file_;
  JsonValue cases_;
};

// One pass over the whole text, the same text token by token over a cache, and its end in one call
// that gives what each token alone gave, as speculative decoding asks.
TEST_P(Families, LogitsEqualThoseOfTransformersAtEveryPosition) {
  ASSERT_GE(cases_.size(), 20u);
  for (size_t i : configsToRun(cases_.size(), GetParam().backend)) {
    SCOPED_TRACE("case " + std::to_string(i) + ": " + config(i).show());
    const Array ids = array(i, "input_ids"), truth = array(i, "logits");
    const double bound = kFamilyTolerance * rangeOf(truth);
    Session s = session(i);
    EXPECT_LE(largestError(s.run("forward", {{"input_ids", ids}}).at("logits"), truth), bound);
    // Rotations that follow the length give others when they learn of a text's end step by step.
    const bool decodes = cases_.at(i).at("decodes").asBool();
    const int64_t batch = ids.shape()[0], seq = ids.shape()[1], vocab = truth.shape()[2];
    const int64_t prompt = 3;
    s.setSymbol("cache", decodes ? seq + 3 : seq);
    Array steps(DType::F32, {batch, seq, vocab});
    for (int64_t at = prompt - 1; at < seq; ++at) {
      const bool first = at == prompt - 1;
      Array positions(DType::I64, {batch});
      for (int64_t b = 0; b < batch; ++b) positions.set(b, first ? 0 : double(at));
      const Array logits =
          s.run(first ? "prefill" : "decode",
                {{"input_ids", first ? columns(ids, 0, prompt) : columns(ids, at, 1)},
                 {"positions", positions}})
              .at("logits");
      for (int64_t b = 0; b < batch; ++b) {
        const Array row = elements(logits, b * vocab, vocab);
        const int64_t begin = (b * seq + at) * vocab;
        for (int64_t k = 0; k < vocab; ++k) steps.set(begin + k, row.at(k));
        if (decodes)
          EXPECT_LE(largestError(row, elements(truth, begin, vocab)), bound)
              << "row " << b << " position " << at;
      }
    }
    if (seq == prompt) continue;
    Array positions(DType::I64, {batch});
    for (int64_t b = 0; b < batch; ++b) positions.set(b, double(prompt));
    const Array together = s.run("verify", {{"input_ids", columns(ids, prompt, seq - prompt)},
                                            {"positions", positions}})
                               .at("logits");
    for (int64_t b = 0; b < batch; ++b)
      EXPECT_LE(largestError(elements(together, b * (seq - prompt) * vocab, (seq - prompt) * vocab),
                             elements(steps, (b * seq + prompt) * vocab, (seq - prompt) * vocab)),
                bound)
          << "row " << b;
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, Families,
                         ::testing::ValuesIn(familiesOnBackends({ModelTask::Generate})),
                         nameOfCase);

// --- what is found ---

class FamilyFusions : public ::testing::TestWithParam<std::string> {};

int countOf(const std::string& text, const std::string& pattern) {
  const std::regex line(pattern);
  return int(std::distance(std::sregex_iterator(text.begin(), text.end(), line), {}));
}

const std::set<std::string> kWithoutGates = {
    "GPT2LMHeadModel", "GPTNeoXForCausalLM", "PhiForCausalLM",   "OPTForCausalLM",
    "GPTJForCausalLM", "FalconForCausalLM",  "BloomForCausalLM", "Starcoder2ForCausalLM"};
const std::set<std::string> kWithMixtures = {"MixtralForCausalLM", "Qwen3MoeForCausalLM",
                                             "Qwen2MoeForCausalLM"};

// Layers with a mixture: all that the config does not name as plain.
int64_t mixtures(const std::string& architecture, const JsonValue& config, int64_t layers) {
  if (!kWithMixtures.contains(architecture)) return 0;
  const auto step = config.find("decoder_sparse_step");
  std::set<int64_t> plain;
  for (int64_t i = 0; step && i < layers; ++i)
    if ((i + 1) % step->asInt()) plain.insert(i);
  if (auto named = config.find("mlp_only_layers"))
    for (size_t i = 0; i < named->size(); ++i)
      if (named->at(i).asInt() < layers) plain.insert(named->at(i).asInt());
  return layers - int64_t(plain.size());
}

TEST_P(FamilyFusions, OneAttentionAndOneGatePerLayerAndNoElementaryRest) {
  const SafetensorsFile file = SafetensorsFile::open(goldenPath(GetParam()));
  const JsonValue cases = JsonValue::parse(file.metadata().at("cases"), GetParam());
  for (size_t i : configsToRun(cases.size(), "reference")) {
    const JsonValue config = cases.at(i).at("config");
    SCOPED_TRACE("case " + std::to_string(i));
    const int64_t layers = readModelConfig(config).layers;
    const std::string text = irAt(buildFromConfig(config), "fused");
    // Three entry points.
    EXPECT_EQ(countOf(text, "lathe\\.attention "), 3 * layers);
    EXPECT_EQ(countOf(text, "lathe\\.(erf|rsqrt|reduce_mean) "), 0);
    const int64_t mixed = mixtures(GetParam(), config, layers);
    EXPECT_EQ(countOf(text, "lathe\\.matmul "), 0);
    // A mixture has a router, and products with the weights that a token chooses.
    EXPECT_EQ(countOf(text, "lathe\\.softmax "), 3 * mixed);
    EXPECT_EQ(countOf(text, "lathe\\.grouped_linear "), 3 * 3 * mixed);
    // Of Qwen 2 the expert that all tokens take has a gate of its own, and a share.
    const int64_t shared = GetParam() == "Qwen2MoeForCausalLM" ? mixed : 0;
    EXPECT_EQ(countOf(text, "lathe\\.sigmoid "), 3 * shared);
    EXPECT_EQ(countOf(text, "lathe\\.glu "),
              kWithoutGates.contains(GetParam()) ? 0 : 3 * (layers + shared));
    for (const CompileRecord::Miss& miss : whyNot(buildFromConfig(config)))
      EXPECT_FALSE(miss.meant) << miss.pattern << " at " << miss.op << ": " << miss.reason;
  }
}

std::vector<std::string> everyArchitecture() {
  std::vector<std::string> all;
  for (const Family& family : families())
    if (family.task == ModelTask::Generate) all.push_back(family.architecture);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Transformers, FamilyFusions, ::testing::ValuesIn(everyArchitecture()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe
