// SPDX-License-Identifier: Apache-2.0
// BERT: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
// Understanding", 2019; MiniLM: Wang et al., 2020, whose checkpoints are of the same class.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/encoder.h"

namespace lathe {
namespace {

// The entry point's inputs, and what comes out of the layers.
Tensor encode(Graph& g, const BertEncoder& encoder, const Dim& batch, const Dim& seq,
              Tensor& mask) {
  Tensor ids = g.input("input_ids", DType::I64, {batch, seq});
  mask = g.input("attention_mask", DType::I64, {batch, seq});
  Tensor types = g.input("token_type_ids", DType::I64, {batch, seq});
  return encoder(ids, types, iota(ids, {seq}, 0), mask);
}

// The prefix of a checkpoint of the bare model, or of one with a head.
std::string rootOf(const FamilyOptions& options, const std::string& usual) {
  if (!options.hasWeight) return usual;
  return options.hasWeight("embeddings.word_embeddings.weight") ? "" : "bert.";
}

struct Symbols {
  Dim batch, seq;
};
Symbols declare(Graph& g, const EncoderConfig& c, const FamilyOptions& options) {
  return {g.dim("batch", 1, options.maxBatch),
          g.dim("seq", 1, sequenceLimit(options.maxSeq, c.maxPositions, "maxSeq"))};
}

}  // namespace

// forward: input_ids, attention_mask, token_type_ids i64 [batch, seq] -> last_hidden_state [batch,
// seq, hidden] and pooler_output [batch, hidden]; embed: the same -> embeddings f32 [batch,
// hidden].
Graph builders::bert(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readEncoder(config, options, bertDefaults());
  Graph g("bert");
  const Symbols dims = declare(g, c, options);
  const BertEncoder encoder(g, rootOf(options, ""), c, options);
  Tensor mask;
  g.entry("forward");
  Tensor x = encode(g, encoder, dims.batch, dims.seq, mask);
  g.output("last_hidden_state", x);
  if (encoder.hasPooler()) g.output("pooler_output", encoder.pooled(x));
  g.entry("embed");
  x = encode(g, encoder, dims.batch, dims.seq, mask);
  g.output("embeddings", pooledText(x, mask, options.pooling));
  return g;
}

// forward: input_ids, attention_mask, token_type_ids i64 [batch, seq] -> logits f32 [batch, seq,
// vocab] of the token at each place.
Graph builders::bertMaskedLm(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readEncoder(config, options, bertDefaults());
  Graph g("bert");
  const Symbols dims = declare(g, c, options);
  const BertEncoder encoder(g, "bert.", c, options);
  Tensor mask;
  g.entry("forward");
  Tensor x = encode(g, encoder, dims.batch, dims.seq, mask);
  const std::string head = "cls.predictions.";
  x = encoder.linear(head + "transform.dense", c.hiddenSize, c.hiddenSize)(x);
  x = encoder.norm(head + "transform.LayerNorm")(nn::activate(x, c.activation));
  if (c.tiedHead)
    x = encoder.table("bert.embeddings.word_embeddings", c.vocabSize).unembed(x) +
        nn::castTo(g.weight(head + "bias", options.weightDType, {c.vocabSize}), options.dtype);
  else
    x = encoder.linear(head + "decoder", c.hiddenSize, c.vocabSize)(x);
  g.output("logits", nn::castTo(x, DType::F32));
  return g;
}

}  // namespace lathe
