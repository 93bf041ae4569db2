// SPDX-License-Identifier: Apache-2.0
// Small random encoder-decoders (scripts/make_family_goldens.py) against transformers: one full
// pass, the same text token by token over caches, what they write, and what the fusions find.
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/inspect/why_not.h"
#include "lathe/lathe.h"
#include "lathe/runtime/beam_search.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/safetensors.h"
#include "lathe/runtime/source_text.h"
#include "lathe/runtime/text_generation.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

struct Goldens {
  explicit Goldens(const std::string& architecture)
      : file(SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + architecture +
                                   ".safetensors")),
        cases(JsonValue::parse(file.metadata().at("cases"), architecture)) {}

  JsonValue config(size_t i) const { return cases.at(i).at("config"); }
  Array array(size_t i, const std::string& name) const {
    return file.array(std::to_string(i) + "." + name);
  }
  Session session(size_t i, const std::string& backend) const {
    auto program =
        std::make_shared<const Program>(compile(buildFromConfig(config(i)), {.backend = backend}));
    Session s(program, {.device = "host"});
    s.bindWeights(goldenWeights(*program, cases.at(i).at("seed").asUint()));
    return s;
  }
  // An entry point on the golden's inputs.
  Array run(Session& s, size_t i, const char* entry, const char* output) const {
    Arrays inputs;
    for (const Port& port : s.program().entry(entry).inputs)
      inputs.emplace(port.name, array(i, port.name));
    return s.run(entry, inputs).at(output);
  }

  SafetensorsFile file;
  JsonValue cases;
};

class FamilyWriters : public ::testing::TestWithParam<FamilyParameter> {};

TEST_P(FamilyWriters, DecodingOverCachesEqualsOneFullPassAtEveryPosition) {
  const Goldens goldens(GetParam().architecture);
  ASSERT_GE(goldens.cases.size(), 20u);
  for (size_t i : configsToRun(goldens.cases.size(), GetParam().backend)) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Array ids = goldens.array(i, "decoder_input_ids"), truth = goldens.array(i, "logits");
    const double bound = kFamilyTolerance * rangeOf(truth);
    Session s = goldens.session(i, GetParam().backend);
    EXPECT_LE(largestError(goldens.run(s, i, "forward", "logits"), truth), bound);

    const int64_t batch = ids.shape()[0], seq = ids.shape()[1], vocab = truth.shape()[2];
    s.setSymbol("cache", seq + 3);
    for (const SymbolInfo& symbol : s.program().symbols)
      if (symbol.name == "source")
        s.setSymbol("source", goldens.array(i, "attention_mask").shape()[1]);
    const Array encoded = goldens.array(i, "encoder_hidden_states");
    EXPECT_LE(largestError(goldens.run(s, i, "encode", "encoder_hidden_states"), encoded),
              kFamilyTolerance * rangeOf(encoded));
    const int64_t prompt = 2;
    for (int64_t at = prompt - 1; at < seq; ++at) {
      const bool first = at == prompt - 1;
      const int64_t begin = first ? 0 : at, count = first ? prompt : 1;
      Array some(DType::I64, {batch, count}), positions(DType::I64, {batch});
      for (int64_t b = 0; b < batch; ++b) {
        positions.set(b, double(begin));
        for (int64_t j = 0; j < count; ++j) some.set(b * count + j, ids.at(b * seq + begin + j));
      }
      const Array logits =
          s.run(first ? "prefill" : "decode", {{"input_ids", some}, {"positions", positions}})
              .at("logits");
      for (int64_t b = 0; b < batch; ++b)
        EXPECT_LE(largestError(elements(logits, b * vocab, vocab),
                               elements(truth, (b * seq + at) * vocab, vocab)),
                  bound)
            << "row " << b << " position " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, FamilyWriters,
                         ::testing::ValuesIn(familiesOnBackends({ModelTask::Rewrite})), nameOfCase);

// --- what they write ---

class FamilyTexts : public ::testing::TestWithParam<std::string> {};

struct Written {
  std::vector<std::vector<int>> sources;
  std::vector<int> start;
  std::vector<int64_t> excluded;
  ModelConfig config;
  int64_t newTokens = 0;
};

Written writtenBy(const Goldens& goldens, size_t i, const std::string& architecture) {
  Written w;
  w.config = readModelConfig(goldens.config(i));
  const Array ids = goldens.array(i, "input_ids"), mask = goldens.array(i, "attention_mask");
  const int64_t length = ids.shape()[1];
  for (int64_t b = 0; b < ids.shape()[0]; ++b) {
    w.sources.emplace_back();
    for (int64_t j = 0; j < length; ++j)
      if (mask.at(b * length + j) != 0) w.sources.back().push_back(int(ids.at(b * length + j)));
  }
  // Defaults of transformers that a config.json leaves out.
  const bool isBart = architecture == "BartForConditionalGeneration";
  w.start = {int(w.config.decoderStartId.value_or(isBart ? 2 : 0))};
  if (w.config.forcedBosId) w.start.push_back(int(*w.config.forcedBosId));
  if (architecture == "MarianMTModel") w.excluded = {*w.config.padId};
  if (w.config.eosIds.empty()) w.config.eosIds = {isBart ? 2 : 1};
  w.newTokens = 8 - (int64_t(w.start.size()) - 1);
  return w;
}

// A row of the golden up to its end token.
std::vector<int> rowOf(const Array& ids, int64_t row, int64_t endId) {
  std::vector<int> text;
  for (int64_t i = 0; i < ids.shape()[1]; ++i) {
    text.push_back(int(ids.at(row * ids.shape()[1] + i)));
    if (text.back() == endId) break;
  }
  return text;
}

TEST_P(FamilyTexts, AreThoseOfTransformersGreedyAndByBeams) {
  const Goldens goldens(GetParam());
  for (size_t i : configsToRun(goldens.cases.size(), "cpu")) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Written w = writtenBy(goldens, i, GetParam());
    Session s = goldens.session(i, "cpu");
    BatchGenerator generator(
        s, {w.config.targetVocabSize, w.config.maxPositions ? w.config.maxPositions : 512});
    auto whole = [&](std::vector<int> ids) {
      ids.insert(ids.begin(), w.start.begin() + 1, w.start.end());
      return ids;
    };
    encodeSources(s, w.sources, w.config.vocabSize, w.config.padId.value_or(0));
    TextGenerationOptions options{.newTokens = w.newTokens, .endIds = w.config.eosIds};
    options.sampling.excluded = w.excluded;
    const std::vector<std::vector<int>> starts(w.sources.size(), w.start);
    const std::vector<TextGeneration> texts =
        generateTexts(generator, std::nullopt, starts, options);
    const Array greedy = goldens.array(i, "greedy"), beams = goldens.array(i, "beams");
    for (size_t row = 0; row < w.sources.size(); ++row) {
      EXPECT_EQ(whole(texts[row].ids()), rowOf(greedy, int64_t(row), w.config.eosIds[0]));
      encodeSources(s, std::vector(3, w.sources[row]), w.config.vocabSize, 0);
      const std::vector<BeamText> found = beamSearch(generator, w.start,
                                                     {.beams = 3,
                                                      .newTokens = w.newTokens,
                                                      .endIds = w.config.eosIds,
                                                      .excluded = w.excluded,
                                                      .forcedTokens = int64_t(w.start.size()) - 1});
      EXPECT_EQ(whole(found.at(0).ids), rowOf(beams, int64_t(row), w.config.eosIds[0]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, FamilyTexts,
                         ::testing::Values("T5ForConditionalGeneration",
                                           "MT5ForConditionalGeneration",
                                           "BartForConditionalGeneration", "MarianMTModel"),
                         [](const auto& info) { return info.param; });

// --- what is found ---

class WriterFusions : public ::testing::TestWithParam<std::string> {};

int countOf(const std::string& text, const std::string& pattern) {
  const std::regex line(pattern);
  return int(std::distance(std::sregex_iterator(text.begin(), text.end(), line), {}));
}

int64_t field(const JsonValue& config, const char* key, int64_t otherwise) {
  auto value = config.find(key);
  return value ? value->asInt() : otherwise;
}

// Of the encoder one attention for each layer, of the decoder two.
TEST_P(WriterFusions, EveryAttentionAndGateIsFoundAndNoElementaryRest) {
  const Goldens goldens(GetParam());
  for (size_t i : configsToRun(goldens.cases.size(), "reference")) {
    SCOPED_TRACE("case " + std::to_string(i));
    const JsonValue config = goldens.config(i);
    const bool isT5 = GetParam().ends_with("T5ForConditionalGeneration");
    const int64_t encoder =
        isT5 ? config.at("num_layers").asInt() : config.at("encoder_layers").asInt();
    const int64_t decoder =
        isT5 ? field(config, "num_decoder_layers", encoder) : config.at("decoder_layers").asInt();
    const std::string text = irAt(buildFromConfig(config), "fused");
    // forward and encode; forward, prefill and decode.
    EXPECT_EQ(countOf(text, "lathe\\.attention "), 2 * encoder + 3 * 2 * decoder);
    EXPECT_EQ(countOf(text, "lathe\\.(softmax|matmul|sigmoid|rsqrt|reduce_mean) "), 0);
    // The activations of Whisper's convolutions are of no product: two in forward and in encode.
    const bool isWhisper = GetParam() == "WhisperForConditionalGeneration";
    EXPECT_EQ(countOf(text, "lathe\\.erf "), isWhisper ? 4 : 0);
    for (const CompileRecord::Miss& miss : whyNot(buildFromConfig(config)))
      EXPECT_FALSE(miss.meant) << miss.pattern << " at " << miss.op << ": " << miss.reason;
  }
}

std::vector<std::string> everyWriter() {
  std::vector<std::string> all;
  for (const Family& family : families())
    if (family.task == ModelTask::Rewrite) all.push_back(family.architecture);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Transformers, WriterFusions, ::testing::ValuesIn(everyWriter()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe
