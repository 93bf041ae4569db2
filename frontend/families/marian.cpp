// SPDX-License-Identifier: Apache-2.0
// Marian: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++", 2018, whose
// models translate between some thousand pairs of languages (OPUS-MT). BART's layers; places are
// sines and cosines, and the two languages may have tables of their own.
#include <cmath>

#include "frontend/families/bart.h"
#include "frontend/families/builders.h"
#include "lathe/frontend/nn/positions.h"

namespace lathe {
namespace {

struct MarianConfig : BartConfig {
  bool sharesTables = true, tiedHead = true;
};

class Marian : public BartModel {
 public:
  Marian(Graph& graph, const MarianConfig& config, const FamilyOptions& options)
      : BartModel(graph, config, options), own_(config) {}

 protected:
  Tensor embedSide(const std::string& side, const Tensor& ids, const Tensor& where) const override {
    const nn::SinePositions places(graph_, side + "embed_positions", c_.hiddenSize, c_.maxPositions,
                                   nn::SineOrder::Halves);
    return places(scaled(tokens(side)(ids)), where);
  }
  Tensor unembed(const Tensor& x) const override {
    const nn::Linear head(graph_, "lm_head", c_.hiddenSize, c_.targetVocabSize,
                          {.bias = false, .weightDType = options_.weightDType});
    return own_.tiedHead ? tokens("model.decoder.").unembed(x) : head(x);
  }

 private:
  nn::Embedding tokens(const std::string& side) const {
    if (own_.sharesTables) return table("model.shared", c_.vocabSize);
    return table(side + "embed_tokens",
                 side == "model.decoder." ? c_.targetVocabSize : c_.vocabSize);
  }
  const MarianConfig own_;
};

}  // namespace

Graph builders::marian(ConfigReader& config, const FamilyOptions& options) {
  MarianConfig c{readBart(config, options)};
  c.targetVocabSize = config.size("decoder_vocab_size", kMaxVocabulary, c.vocabSize);
  c.sharesTables = config.flag("share_encoder_decoder_embeddings", true);
  c.tiedHead = config.flag("tie_word_embeddings", true);
  if (c.sharesTables && c.targetVocabSize != c.vocabSize)
    throw config.at("decoder_vocab_size")
        .error("expected the vocab_size " + std::to_string(c.vocabSize) +
               " where both sides share a table, got " + std::to_string(c.targetVocabSize));
  // What every checkpoint has: sines, norms behind the sums, none of the embeddings.
  for (const char* key : {"normalize_before", "normalize_embedding", "add_final_layer_norm"})
    if (config.flag(key, false))
      throw config.at(key).error("not supported: expected false", ErrorCode::Unsupported);
  config.ignore({"static_position_embeddings", "add_bias_logits", "bad_words_ids"});
  Graph g("marian");
  Marian(g, c, options).record();
  return g;
}

}  // namespace lathe
