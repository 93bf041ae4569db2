// SPDX-License-Identifier: Apache-2.0
// Language models and encoder-decoders of sizes that make none.
#include <limits>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kBillion = 1000000000;

using Lm = nn::TransformerLMOptions;
Lm smallLm() { return {.vocabSize = 8, .dModel = 4, .dHidden = 8, .layers = 1, .heads = 2}; }
void lm(const std::function<void(Lm&)>& set) {
  Model m;
  Lm options = smallLm();
  set(options);
  nn::TransformerLM(m.g, "", options).forward(m.ids);
}
using Pair = nn::EncoderDecoderOptions;
void pair(const std::function<void(Pair&)>& set) {
  Model m;
  Pair options{.sourceVocab = 8, .targetVocab = 8, .layers = 1};
  options.layer.attention.dModel = 4;
  options.layer.attention.heads = 2;
  options.layer.dHidden = 8;
  set(options);
  nn::EncoderDecoder model(m.g, "", options);
  model.forward(m.ids, m.ids, Tensor(), Tensor());
}

}  // namespace

Table models() {
  return {
      {"lm_of_no_tokens",
       [] { lm([](Lm& o) { o.vocabSize = 0; }); },
       kArgument,
       {"TransformerLM, vocabSize", "got 0"}},
      {"lm_of_no_width",
       [] { lm([](Lm& o) { o.dModel = -4; }); },
       kArgument,
       {"TransformerLM, dModel", "got -4"}},
      {"lm_of_no_layers",
       [] { lm([](Lm& o) { o.layers = 0; }); },
       kArgument,
       {"TransformerLM, layers", "got 0"}},
      {"lm_of_a_billion_layers",
       [] { lm([](Lm& o) { o.layers = kBillion; }); },
       kArgument,
       {"TransformerLM, layers", "at most 10000", "1000000000"}},
      {"lm_of_the_most_layers",
       [] { lm([](Lm& o) { o.layers = kMost; }); },
       kArgument,
       {"TransformerLM, layers", "at most 10000"}},
      {"lm_of_the_most_positions",
       [] { lm([](Lm& o) { o.maxPositions = kMost; }); },
       kArgument,
       {"maxPositions", "at most 2147483647"}},
      {"lm_of_no_positions",
       [] { lm([](Lm& o) { o.maxPositions = 0; }); },
       kArgument,
       {"TransformerLM, maxPositions", "got 0"}},
      {"lm_of_heads_that_do_not_divide",
       [] { lm([](Lm& o) { o.heads = 3; }); },
       kArgument,
       {"3 heads and dModel 4"}},
      {"lm_of_odd_head_size",
       [] { lm([](Lm& o) { o.heads = 4; }); },
       kArgument,
       {"even head size", "got 1"}},
      {"lm_of_integers",
       [] { lm([](Lm& o) { o.dtype = DType::I32; }); },
       kArgument,
       {"TransformerLM: expected a float dtype, got i32"}},
      {"lm_of_integer_weights",
       [] { lm([](Lm& o) { o.weightDType = DType::I64; }); },
       kArgument,
       {"weightDType", "i64"}},
      {"lm_of_theta_zero",
       [] { lm([](Lm& o) { o.ropeTheta = 0; }); },
       kArgument,
       {"positive theta"}},
      {"lm_of_negative_epsilon",
       [] { lm([](Lm& o) { o.normEps = -1; }); },
       kArgument,
       {"epsilon", "-1"}},
      {"lm_of_the_largest_width",
       [] { lm([](Lm& o) { o.dModel = kMost; }); },
       kArgument,
       {"dModel", "at most 2147483647"}},
      {"lm_given_floats",
       [] {
         Model m;
         nn::TransformerLM(m.g, "", smallLm()).forward(m.x);
       },
       kArgument,
       {"TransformerLM ''", "integer ids"}},
      {"lm_given_nothing",
       [] {
         Model m;
         nn::TransformerLM(m.g, "", smallLm()).forward(Tensor());
       },
       kArgument,
       {"TransformerLM ''", "empty handle"}},
      {"lm_step_without_positions",
       [] {
         Model m;
         nn::TransformerLM model(m.g, "", smallLm());
         model.declareCache(m.batch, 8);
         model.step(m.ids, Tensor());
       },
       kArgument,
       {"empty handle"}},
      {"lm_step_at_floats",
       [] {
         Model m;
         nn::TransformerLM model(m.g, "", smallLm());
         model.declareCache(m.batch, 8);
         model.step(m.ids, m.g.input("at", DType::F32, {m.batch}));
       },
       kArgument,
       {"positions", "integer"}},
      {"lm_cache_of_negative_size",
       [] {
         Model m;
         nn::TransformerLM(m.g, "", smallLm()).declareCache(m.batch, -8);
       },
       kArgument,
       {"negative dim -8"}},
      {"lm_of_a_plain_mlp_of_negative_size",
       [] {
         lm([](Lm& o) {
           o.style = nn::ModelStyle::gpt();
           o.dHidden = -1;
         });
       },
       kArgument,
       {"TransformerLM, dHidden", "got -1"}},
      {"encoder_decoder_of_no_layers",
       [] { pair([](Pair& o) { o.layers = 0; }); },
       kArgument,
       {"EncoderDecoder ''", "layers", "got 0"}},
      {"encoder_decoder_of_a_billion_layers",
       [] { pair([](Pair& o) { o.layers = kBillion; }); },
       kArgument,
       {"EncoderDecoder ''", "layers", "at most 10000"}},
      {"encoder_decoder_of_no_target",
       [] { pair([](Pair& o) { o.targetVocab = 0; }); },
       kArgument,
       {"targetVocab", "got 0"}},
      {"encoder_decoder_of_no_width",
       [] { pair([](Pair& o) { o.layer.attention.dModel = 0; }); },
       kArgument,
       {"dModel", "got 0"}},
      {"encoder_decoder_of_integers",
       [] { pair([](Pair& o) { o.dtype = DType::I8; }); },
       kArgument,
       {"float dtype", "i8"}},
      {"encoder_decoder_of_nan_scale",
       [] { pair([](Pair& o) { o.embeddingScale = std::numeric_limits<double>::quiet_NaN(); }); },
       kArgument,
       {"embeddingScale", "nan"}},
      {"encoder_given_nothing",
       [] {
         Model m;
         Pair o{.sourceVocab = 8, .targetVocab = 8, .layers = 1};
         o.layer.attention.dModel = 4;
         o.layer.attention.heads = 2;
         o.layer.dHidden = 8;
         nn::EncoderDecoder(m.g, "", o).encode(Tensor());
       },
       kArgument,
       {"source", "empty handle"}},
  };
}

}  // namespace lathe::misuse
