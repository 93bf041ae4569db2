// SPDX-License-Identifier: Apache-2.0
// Models of checkpoints and diffusion transformers.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kBillion = 1000000000;

void llama(const std::function<void(LlamaConfig&, FamilyOptions&)>& set) {
  LlamaConfig config;
  config.vocabSize = 8;
  config.hiddenSize = 8;
  config.intermediateSize = 16;
  config.layers = 1;
  config.heads = config.kvHeads = 2;
  config.headDim = 4;
  config.maxPositions = 16;
  FamilyOptions options;
  set(config, options);
  buildLlama(config, options);
}

void modelOf(const std::string& fields, const FamilyOptions& options) {
  buildFromConfig(JsonValue::parse(R"({"model_type": "qwen2", "vocab_size": 8, "hidden_size": 8,
      "intermediate_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, )" +
                                       fields + "}",
                                   "config.json"),
                  options);
}

}  // namespace

// A config.json is to blame, or what was asked of it: the message names the file.
static Table ofConfigs() {
  return blamingNobody({
      {"llama_of_more_layers_than_it_has",
       [] { modelOf(R"("num_hidden_layers": 2)", {.layers = 3}); },
       kArgument,
       {"expected 1 to 2 layers, got 3"}},
      {"model_of_a_longer_cache",
       [] { modelOf(R"("num_hidden_layers": 2)", {.cacheCapacity = 40000}); },
       kArgument,
       {"cacheCapacity", "32768 positions, got 40000"}},
      {"model_of_blocks_longer_than_it_is",
       [] { modelOf(R"("num_hidden_layers": 2)", {.cacheBlock = 40000}); },
       kArgument,
       {"expected cacheBlock from 1 to the model's 32768 positions, got 40000; 0: a row for each"}},
      {"model_of_negative_blocks",
       [] { modelOf(R"("num_hidden_layers": 2)", {.cacheBlock = -16}); },
       kArgument,
       {"cacheBlock", "got -16; 0: a row for each text"}},
      {"encoder_of_blocks",
       [] {
         buildFromConfig(JsonValue::parse(R"({"architectures": ["BertModel"]})", "config.json"),
                         {.cacheBlock = 16});
       },
       kUnsupported,
       {"BertModel", "cacheBlock: caches in blocks are of decoders"}},
      {"model_of_blocks_that_goes_on_by_itself",
       [] { modelOf(R"("num_hidden_layers": 2)", {.cacheBlock = 16, .greedy = true}); },
       kArgument,
       {"expected `greedy` or `cacheBlock`, got both"}},
      {"model_of_no_batch",
       [] { modelOf(R"("num_hidden_layers": 2)", {.maxBatch = 0}); },
       kArgument,
       {"maxBatch", "got 0"}},
      {"model_without_layers",
       [] { modelOf(R"("num_hidden_layers": null)", {}); },
       kFile,
       {"num_hidden_layers"}},
      {"family_of_nothing",
       [] { registerFamily({}); },
       kArgument,
       {"registerFamily", "architecture"}},
      {"family_without_a_function",
       [] { registerFamily({"NoneForCausalLM", "none", ModelTask::Generate, {}}); },
       kArgument,
       {"registerFamily", "a function that builds it"}},
  });
}

Table families() {
  Table rows = {
      {"llama_of_nothing", [] { buildLlama({}); }, kArgument, {"got 0"}},
      {"llama_of_a_billion_layers",
       [] { llama([](LlamaConfig& c, FamilyOptions&) { c.layers = kBillion; }); },
       kArgument,
       {"layers", "at most 10000"}},
      {"llama_of_the_most_positions",
       [] { llama([](LlamaConfig& c, FamilyOptions&) { c.maxPositions = kMost; }); },
       kArgument,
       {"maxPositions", "at most 2147483647"}},
      {"llama_of_no_positions",
       [] { llama([](LlamaConfig& c, FamilyOptions&) { c.maxPositions = 0; }); },
       kArgument,
       {"maxPositions", "got 0"}},
      {"llama_of_no_batch",
       [] { llama([](LlamaConfig&, FamilyOptions& o) { o.maxBatch = 0; }); },
       kArgument,
       {"maxBatch", "got 0"}},
      {"llama_of_a_longer_cache",
       [] { llama([](LlamaConfig&, FamilyOptions& o) { o.cacheCapacity = 17; }); },
       kArgument,
       {"cacheCapacity", "16 positions, got 17"}},
      {"llama_of_longer_calls",
       [] { llama([](LlamaConfig&, FamilyOptions& o) { o.maxSeq = 17; }); },
       kArgument,
       {"maxSeq", "got 17"}},
      {"llama_of_another_activation",
       [] { llama([](LlamaConfig& c, FamilyOptions&) { c.activation = Activation(9); }); },
       kArgument,
       {"9 is no activation"}},
      {"llama_of_integers",
       [] { llama([](LlamaConfig&, FamilyOptions& o) { o.dtype = DType::I64; }); },
       kArgument,
       {"float dtype", "i64"}},
      {"llama_of_no_dtype",
       [] { llama([](LlamaConfig&, FamilyOptions& o) { o.weightDType = DType(50); }); },
       kArgument,
       {"50 is no dtype"}},
  };
  for (auto& row : ofConfigs()) rows.push_back(row);
  return rows;
}

Table diffusion() {
  using Dit = nn::DiTOptions;
  auto dit = [](auto set) {
    Graph g;
    Dit options{.image = {4, 4}, .channels = 1, .dModel = 8, .layers = 1, .heads = 2};
    set(options);
    nn::DiT(g, "", options);
  };
  return {
      {"dit_of_no_layers",
       [=] { dit([](Dit& o) { o.layers = 0; }); },
       kArgument,
       {"DiT '', layers", "got 0"}},
      {"dit_of_a_billion_layers",
       [=] { dit([](Dit& o) { o.layers = kBillion; }); },
       kArgument,
       {"DiT '', layers", "at most 10000"}},
      {"dit_of_no_labels",
       [=] { dit([](Dit& o) { o.labels = 0; }); },
       kArgument,
       {"DiT '', labels", "got 0"}},
      {"dit_of_no_patch",
       [=] { dit([](Dit& o) { o.patch = 0; }); },
       kArgument,
       {"DiT '', patch", "got 0"}},
      {"dit_of_an_image_that_patches_do_not_tile",
       [=] { dit([](Dit& o) { o.image = {5, 4}; }); },
       kArgument,
       {"5 x 4", "patches of 2"}},
      {"dit_of_an_image_whose_width_patches_do_not_tile",
       [=] { dit([](Dit& o) { o.image = {4, 5}; }); },
       kArgument,
       {"4 x 5", "patches of 2"}},
      {"dit_of_an_endless_image",
       [=] { dit([](Dit& o) { o.image = {kMost - 1, kMost - 1}; }); },
       kArgument,
       {"DiT ''", "at most"}},
      {"dit_of_integers",
       [=] { dit([](Dit& o) { o.dtype = DType::I16; }); },
       kArgument,
       {"float dtype", "i16"}},
      {"dit_of_odd_frequencies",
       [=] { dit([](Dit& o) { o.timestep.frequencies = 7; }); },
       kArgument,
       {"even number of frequencies", "got 7"}},
      {"dit_of_endless_frequencies",
       [=] { dit([](Dit& o) { o.timestep.frequencies = kMost - 1; }); },
       kArgument,
       {"frequencies", "at most"}},
      {"dit_of_no_period",
       [=] { dit([](Dit& o) { o.timestep.maxPeriod = -1; }); },
       kArgument,
       {"positive maxPeriod"}},
      {"timestep_frequencies_below_zero",
       [] { nn::timestepFrequencies({.frequencies = -2}); },
       kArgument,
       {"timestepFrequencies", "got -2"}},
      {"timestep_frequencies_that_end_where_they_begin",
       [] { nn::timestepFrequencies({.frequencies = 2, .endsAtPeriod = true}); },
       kArgument,
       {"timestepFrequencies", "at least 4 frequencies with endsAtPeriod, got 2"}},
      {"timesteps_that_are_true_or_false",
       [] {
         Model m;
         nn::TimestepEmbedding(m.g, "t", 8)(m.g.input("t", DType::Bool, {m.batch}), DType::F32);
       },
       kArgument,
       {"TimestepEmbedding 't': expected timesteps [batch], got bool[batch]"}},
      {"timesteps_of_integers_as_a_dtype",
       [] {
         Model m;
         nn::TimestepEmbedding(m.g, "t", 8)(m.g.input("t", DType::F32, {m.batch}), DType::I64);
       },
       kArgument,
       {"TimestepEmbedding 't'", "i64"}},
      {"timesteps_of_rank_2",
       [] {
         Model m;
         nn::TimestepEmbedding(m.g, "t", 8)(m.x, DType::F32);
       },
       kArgument,
       {"TimestepEmbedding 't'", "f32[batch, 4]"}},
      {"patches_of_a_matrix",
       [] {
         Model m;
         nn::PatchEmbedding(m.g, "p", 1, 2, 8)(m.x);
       },
       kArgument,
       {"PatchEmbedding 'p'", "[batch, 1, height, width]"}},
      {"patches_of_no_size",
       [] {
         Graph g;
         nn::PatchEmbedding(g, "p", 1, 0, 8);
       },
       kArgument,
       {"PatchEmbedding 'p', patch", "got 0"}},
      {"unpatchify_of_another_count",
       [] {
         Graph g;
         nn::unpatchify(g.input("x", DType::F32, {1, 5, 4}), 2, 2, 2);
       },
       kArgument,
       {"unpatchify", "2 * 2"}},
      {"unpatchify_of_products_that_wrap",
       [] {
         Graph g;
         nn::unpatchify(g.input("x", DType::F32, {1, 4, 4}), int64_t(1) << 62, int64_t(1) << 62, 2);
       },
       kArgument,
       {"unpatchify", "at most"}},
      {"unpatchify_of_endless_patches",
       [] {
         Graph g;
         nn::unpatchify(g.input("x", DType::F32, {1, 4, 4}), 2, 2, int64_t(1) << 40);
       },
       kArgument,
       {"unpatchify", "at most"}},
      {"modulate_of_a_matrix",
       [] {
         Model m;
         nn::modulate(m.x, m.x, m.x);
       },
       kArgument,
       {"modulate", "f32[batch, 4]"}},
      {"modulate_by_another_width",
       [] {
         Heads m;
         nn::modulate(m.tokens, m.x, m.x);
       },
       kArgument,
       {"modulate", "f32[batch, 3, 8] and f32[batch, 4]"}},
      {"modulation_of_a_sequence",
       [] {
         Heads m;
         nn::Modulation(m.g, "m", 8, 2)(m.tokens);
       },
       kArgument,
       {"Modulation 'm': expected a condition [batch, 8], got f32[batch, 3, 8]"}},
      {"modulation_of_no_vectors",
       [] {
         Graph g;
         nn::Modulation(g, "m", 4, 0);
       },
       kArgument,
       {"Modulation 'm'", "got 0"}},
      {"modulation_of_more_vectors_than_are_recorded",
       [] {
         Model m;
         nn::Modulation(m.g, "m", 1, 2000000000)(m.g.input("c", DType::F32, {2, 1}));
       },
       kArgument,
       {"Modulation 'm', count", "at most 10000"}},
      {"modulation_of_endless_vectors",
       [] {
         Graph g;
         nn::Modulation(g, "m", 4, kMost);
       },
       kArgument,
       {"Modulation 'm'", "at most"}},
  };
}

}  // namespace lathe::misuse
