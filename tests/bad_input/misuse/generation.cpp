// SPDX-License-Identifier: Apache-2.0
// Tokenizers, configurations, sampling and generation.
#include <cmath>

#include "lathe/runtime/generator.h"
#include "lathe/runtime/model_config.h"
#include "lathe/runtime/sampler.h"
#include "lathe/runtime/tokenizer.h"
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

// Two tokens, "a" and "b".
Tokenizer tokenizer() {
  return Tokenizer::parse(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "decoder": {"type": "ByteLevel"}})",
      "tokenizer.json");
}
std::shared_ptr<const Program> languageModel() {
  LlamaConfig config;
  config.vocabSize = 8;
  config.hiddenSize = 8;
  config.intermediateSize = 16;
  config.layers = 1;
  config.heads = config.kvHeads = 2;
  config.headDim = 4;
  config.maxPositions = 64;
  return std::make_shared<const Program>(compile(buildLlama(config), {.backend = "reference"}));
}
// A generator of a model of 8 tokens and 64 positions.
struct Ready {
  Session session{languageModel()};
  Generator generator;
  Ready() : generator(bound(session), {.vocab = 8, .maxPositions = 64}) {}
  static Session& bound(Session& s) {
    s.bindRandomWeights(1);
    return s;
  }
};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
void sample(std::vector<float> logits, SamplingOptions options = {}) {
  Sampler(options).sample(logits);
}

}  // namespace

Table texts() {
  return blamingNobody({
      {"tokenizer_that_is_missing", [] { Tokenizer::load("/nonexistent"); }, kIo, {"/nonexistent"}},
      {"tokenizer_without_a_name", [] { Tokenizer::load(""); }, kIo, {"cannot open"}},
      {"tokenizer_of_nothing", [] { Tokenizer::parse("", "t.json"); }, kFile, {"t.json"}},
      {"tokenizer_of_words", [] { Tokenizer::parse("hello", "t.json"); }, kFile, {"t.json"}},
      {"tokenizer_of_an_empty_object",
       [] { Tokenizer::parse("{}", "t.json"); },
       kFile,
       {"t.json", "model"}},
      {"tokenizer_of_another_kind",
       [] { Tokenizer::parse(R"({"model": {"type": "Oracle"}})", "t.json"); },
       kUnsupported,
       {"Oracle"}},
      {"tokenizer_of_deep_json",
       [] { Tokenizer::parse(std::string(100000, '['), "t.json"); },
       kFile,
       {"t.json"}},
      {"encode_of_bytes", [] { tokenizer().encode("\xff"); }, kArgument, {"UTF-8"}},
      {"encode_of_a_cut_letter", [] { tokenizer().encode("\xc3"); }, kArgument, {"UTF-8"}},
      {"decode_below_zero", [] { tokenizer().decode(std::vector<int>{-1}); }, kArgument, {"-1"}},
      {"decode_past_the_end", [] { tokenizer().decode(std::vector<int>{2}); }, kArgument, {"2"}},
      {"token_below_zero", [] { tokenizer().idToToken(-1); }, kArgument, {"-1"}},
      {"token_past_the_end", [] { tokenizer().idToToken(1 << 30); }, kArgument, {"1073741824"}},
      {"special_past_the_end", [] { tokenizer().isSpecial(7); }, kArgument, {"7"}},
      {"stream_of_an_id_below_zero",
       [] { StreamDecoder(tokenizer()).push(-5); },
       kArgument,
       {"-5"}},
      {"stream_of_an_id_past_the_end",
       [] { StreamDecoder(tokenizer()).push(99); },
       kArgument,
       {"99"}},
      {"encode_of_a_moved_tokenizer",
       [] {
         Tokenizer t = tokenizer();
         Tokenizer other = std::move(t);
         t.encode("a");
       },
       kArgument,
       {"was moved from"}},
      {"size_of_a_moved_tokenizer",
       [] {
         Tokenizer t = tokenizer();
         Tokenizer other = std::move(t);
         t.vocabSize();
       },
       kArgument,
       {"was moved from"}},
      {"stream_of_a_moved_tokenizer",
       [] {
         Tokenizer t = tokenizer();
         Tokenizer other = std::move(t);
         StreamDecoder(t).push(0);
       },
       kArgument,
       {"was moved from"}},
      {"config_that_is_missing", [] { loadLlamaConfig("/nonexistent"); }, kIo, {"/nonexistent"}},
      {"config_of_nothing", [] { parseLlamaConfig("", "c.json"); }, kFile, {"c.json"}},
      {"config_of_an_empty_object", [] { parseLlamaConfig("{}", "c.json"); }, kFile, {"c.json"}},
  });
}

Table generation() {
  return blamingNobody({
      {"sample_of_nothing", [] { sample({}); }, kNumeric, {"logits"}},
      {"sample_of_nan", [] { sample({0, kNan}); }, kNumeric, {"NaN"}},
      {"sample_of_infinity", [] { sample({0, kInf}); }, kNumeric, {"inf"}},
      {"sample_of_nothing_to_choose", [] { sample({-kInf, -kInf}); }, kNumeric, {"-inf"}},
      {"warm_sample_of_nan", [] { sample({kNan, 0}, {.temperature = 1}); }, kNumeric, {"NaN"}},
      {"negative_temperature",
       [] { sample({0}, {.temperature = -1}); },
       kArgument,
       {"temperature"}},
      {"nan_temperature",
       [] { sample({0}, {.temperature = std::nan("")}); },
       kArgument,
       {"temperature"}},
      {"infinite_temperature",
       [] { sample({0}, {.temperature = double(kInf)}); },
       kArgument,
       {"temperature"}},
      {"negative_top_k", [] { sample({0}, {.topK = -1}); }, kArgument, {"top"}},
      {"top_p_below_zero", [] { sample({0}, {.topP = -0.1}); }, kArgument, {"top"}},
      {"top_p_above_one", [] { sample({0}, {.topP = 1.5}); }, kArgument, {"top"}},
      {"top_p_of_nan", [] { sample({0}, {.topP = std::nan("")}); }, kArgument, {"top"}},
      {"generator_of_a_linear",
       [] {
         Session s(linearProgram());
         Generator(s, {.vocab = 8, .maxPositions = 8});
       },
       kArgument,
       {"no entry point 'prefill'"}},
      {"generator_of_another_vocabulary",
       [] {
         Session s(languageModel());
         Generator(s, {.vocab = 9, .maxPositions = 64});
       },
       kArgument,
       {"logits for 8 tokens, the model has 9"}},
      {"generator_of_no_positions",
       [] {
         Session s(languageModel());
         Generator(s, {.vocab = 8, .maxPositions = 0});
       },
       kArgument,
       {"positions", "got 0"}},
      {"generator_of_a_moved_session",
       [] {
         Session s(languageModel());
         Session other = std::move(s);
         Generator(s, {.vocab = 8, .maxPositions = 64});
       },
       kArgument,
       {"was moved from"}},
      {"generator_without_weights",
       [] {
         Session s(languageModel());
         Generator g(s, {.vocab = 8, .maxPositions = 64});
         g.reserve(8);
         g.next(1);
       },
       kArgument,
       {"bindWeights"}},
      {"next_before_reserve", [] { Ready().generator.next(1); }, kArgument, {"reserve"}},
      {"reserve_of_too_many", [] { Ready().generator.reserve(65); }, kArgument, {"65", "64"}},
      {"reserve_of_none", [] { Ready().generator.reserve(0); }, kArgument, {"0"}},
      {"reserve_below_zero", [] { Ready().generator.reserve(-4); }, kArgument, {"-4"}},
      {"id_past_the_vocabulary",
       [] {
         Ready r;
         r.generator.reserve(8);
         r.generator.next(8);
       },
       kArgument,
       {"8"}},
      {"id_below_zero",
       [] {
         Ready r;
         r.generator.reserve(8);
         r.generator.next(-1);
       },
       kArgument,
       {"-1"}},
      {"prefill_of_nothing",
       [] {
         Ready r;
         r.generator.reserve(8);
         r.generator.prefill({});
       },
       kArgument,
       {"at least one"}},
      {"prefill_past_the_reserve",
       [] {
         Ready r;
         r.generator.reserve(64);
         r.generator.prefill(std::vector<int>(65, 1));
       },
       kArgument,
       {"65"}},
      {"prefill_past_the_vocabulary",
       [] {
         Ready r;
         r.generator.reserve(8);
         r.generator.prefill(std::vector<int>{1, 99});
       },
       kArgument,
       {"99"}},
  });
}

}  // namespace lathe::misuse
