// SPDX-License-Identifier: Apache-2.0
// DistilBERT: Sanh et al., "DistilBERT, a distilled version of BERT: smaller, faster, cheaper and
// lighter", 2019. BERT's layers under names of their own, without types of tokens and a pooler.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/encoder.h"

namespace lathe {
namespace {

class DistilBert {
 public:
  DistilBert(Graph& graph, std::string root, const EncoderConfig& config,
             const FamilyOptions& options)
      : graph_(graph), root_(std::move(root)), c_(config), options_(options) {}

  /// Declares input_ids and attention_mask, i64 [batch, seq]. Returns [batch, seq, hidden].
  Tensor operator()(Tensor& mask) const {
    const Dim batch = graph_.dim("batch", 1, options_.maxBatch);
    const Dim seq = graph_.dim("seq", 1, sequenceLimit(options_.maxSeq, c_.maxPositions, "maxSeq"));
    const Tensor ids = graph_.input("input_ids", DType::I64, {batch, seq});
    mask = graph_.input("attention_mask", DType::I64, {batch, seq});
    Tensor x = words()(ids) +
               table("embeddings.position_embeddings", c_.maxPositions)(iota(ids, {seq}, 0));
    x = norm(root_ + "embeddings.LayerNorm")(x);
    const Tensor visible = reshape(mask, {batch, 1, 1, seq}) != 0;
    for (int64_t i = 0; i < c_.layers; ++i) x = layer(i)(x, visible);
    return x;
  }

  nn::Embedding words() const { return table("embeddings.word_embeddings", c_.vocabSize); }
  nn::LayerNorm norm(const std::string& path) const {
    return nn::LayerNorm(graph_, path, c_.hiddenSize,
                         {.eps = c_.normEps, .weightDType = options_.weightDType});
  }
  nn::Linear linear(const std::string& path, int64_t out) const {
    return nn::Linear(graph_, path, c_.hiddenSize, out, {.weightDType = options_.weightDType});
  }

 private:
  nn::Embedding table(const std::string& name, int64_t rows) const {
    return nn::Embedding(graph_, root_ + name, rows, c_.hiddenSize,
                         {.dtype = options_.dtype, .weightDType = options_.weightDType});
  }
  nn::EncoderLayer layer(int64_t index) const {
    const nn::LinearOptions linear{.weightDType = options_.weightDType};
    return nn::EncoderLayer(
        graph_, root_ + "transformer.layer." + std::to_string(index),
        {.attention = {.dModel = c_.hiddenSize,
                       .heads = c_.heads,
                       .linear = linear,
                       .names = {.q = "q_lin", .k = "k_lin", .v = "v_lin", .o = "out_lin"}},
         .dHidden = c_.intermediateSize,
         .feedForward =
             {.in = "lin1", .out = "lin2", .activation = c_.activation, .linear = linear},
         .norm = {.eps = c_.normEps, .weightDType = options_.weightDType},
         .names = {.selfAttention = "attention",
                   .feedForward = "ffn",
                   .norm1 = "sa_layer_norm",
                   .norm2 = "output_layer_norm"}});
  }

  Graph& graph_;
  const std::string root_;
  const EncoderConfig c_;
  const FamilyOptions options_;
};

EncoderConfig readDistilBert(ConfigReader& config, const FamilyOptions& options) {
  EncoderConfig c;
  c.vocabSize = config.size("vocab_size", kMaxVocabulary);
  c.hiddenSize = config.size("dim", kMaxHidden);
  c.intermediateSize = config.size("hidden_dim", kMaxIntermediate);
  c.layers = readLayers(config, "n_layers", options);
  readEqualHeads(config, "n_heads", c);
  c.maxPositions = config.size("max_position_embeddings", kMaxPositions, 512);
  c.normEps = 1e-12;
  c.activation = readActivation(config, "activation", "gelu");
  c.tiedHead = config.flag("tie_word_embeddings", true);
  // Dropout of classifiers; where the table of places came from, and an older name.
  config.ignore({"qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_"});
  return c;
}

// A checkpoint of the bare model, or of one with a head.
std::string rootOf(const FamilyOptions& options) {
  const bool isBare = !options.hasWeight || options.hasWeight("embeddings.word_embeddings.weight");
  return isBare ? "" : "distilbert.";
}

}  // namespace

// forward: input_ids, attention_mask i64 [batch, seq] -> last_hidden_state [batch, seq, hidden];
// embed: the same -> embeddings f32 [batch, hidden].
Graph builders::distilBert(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readDistilBert(config, options);
  Graph g("distilbert");
  const DistilBert encoder(g, rootOf(options), c, options);
  Tensor mask;
  g.entry("forward");
  g.output("last_hidden_state", encoder(mask));
  g.entry("embed");
  const Tensor x = encoder(mask);
  g.output("embeddings", pooledText(x, mask, options.pooling));
  return g;
}

// forward: input_ids, attention_mask i64 [batch, seq] -> logits f32 [batch, seq, vocab].
Graph builders::distilBertMaskedLm(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readDistilBert(config, options);
  Graph g("distilbert");
  const DistilBert encoder(g, "distilbert.", c, options);
  Tensor mask;
  g.entry("forward");
  Tensor x = encoder.linear("vocab_transform", c.hiddenSize)(encoder(mask));
  x = encoder.norm("vocab_layer_norm")(nn::activate(x, c.activation));
  if (c.tiedHead)
    x = encoder.words().unembed(x) +
        nn::castTo(g.weight("vocab_projector.bias", options.weightDType, {c.vocabSize}),
                   options.dtype);
  else
    x = encoder.linear("vocab_projector", c.vocabSize)(x);
  g.output("logits", nn::castTo(x, DType::F32));
  return g;
}

// forward: input_ids, attention_mask i64 [batch, seq] -> logits f32 [batch, labels] of the text.
Graph builders::distilBertClassifier(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readDistilBert(config, options);
  int64_t labels = config.size("num_labels", kMaxVocabulary, 2);
  if (auto named = config.find("id2label")) labels = int64_t(named->size());
  Graph g("distilbert");
  const DistilBert encoder(g, "distilbert.", c, options);
  Tensor mask;
  g.entry("forward");
  const Tensor first = squeeze(sliceAxis(encoder(mask), 1, 0, 1), 1);
  const Tensor x = nn::relu(encoder.linear("pre_classifier", c.hiddenSize)(first));
  g.output("logits", nn::castTo(encoder.linear("classifier", labels)(x), DType::F32));
  return g;
}

}  // namespace lathe
