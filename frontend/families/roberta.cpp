// SPDX-License-Identifier: Apache-2.0
// RoBERTa: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach", 2019. BERT's
// layers; places count the tokens that are no padding, from behind the padding's id.
#include "frontend/families/builders.h"
#include "lathe/frontend/families/encoder.h"

namespace lathe {
namespace {

Tensor encode(Graph& g, const BertEncoder& encoder, const EncoderConfig& c,
              const FamilyOptions& options, Tensor& mask) {
  const Dim batch = g.dim("batch", 1, options.maxBatch);
  // The table's first rows are of the padding and of what is before it.
  const Dim seq =
      g.dim("seq", 1, sequenceLimit(options.maxSeq, c.maxPositions - c.padId - 1, "maxSeq"));
  Tensor ids = g.input("input_ids", DType::I64, {batch, seq});
  mask = g.input("attention_mask", DType::I64, {batch, seq});
  Tensor isToken = cast(ids != double(c.padId), DType::I64);
  Tensor places = cumsum(isToken, 1) * isToken + double(c.padId);
  return encoder(ids, zerosLike(ids), places, mask);
}

}  // namespace

// forward: input_ids, attention_mask i64 [batch, seq] -> last_hidden_state [batch, seq, hidden] and
// pooler_output [batch, hidden]; embed: the same -> embeddings f32 [batch, hidden].
Graph builders::roberta(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readEncoder(config, options, robertaDefaults());
  Graph g("roberta");
  const bool isBare = !options.hasWeight || options.hasWeight("embeddings.word_embeddings.weight");
  const BertEncoder encoder(g, isBare ? "" : "roberta.", c, options);
  Tensor mask;
  g.entry("forward");
  Tensor x = encode(g, encoder, c, options, mask);
  g.output("last_hidden_state", x);
  if (encoder.hasPooler()) g.output("pooler_output", encoder.pooled(x));
  g.entry("embed");
  x = encode(g, encoder, c, options, mask);
  g.output("embeddings", pooledText(x, mask, options.pooling));
  return g;
}

// forward: input_ids, attention_mask i64 [batch, seq] -> logits f32 [batch, seq, vocab].
Graph builders::robertaMaskedLm(ConfigReader& config, const FamilyOptions& options) {
  const EncoderConfig c = readEncoder(config, options, robertaDefaults());
  Graph g("roberta");
  const BertEncoder encoder(g, "roberta.", c, options);
  Tensor mask;
  g.entry("forward");
  Tensor x = encode(g, encoder, c, options, mask);
  x = nn::gelu(encoder.linear("lm_head.dense", c.hiddenSize, c.hiddenSize)(x));
  x = encoder.norm("lm_head.layer_norm")(x);
  if (c.tiedHead)
    x = encoder.table("roberta.embeddings.word_embeddings", c.vocabSize).unembed(x) +
        nn::castTo(g.weight("lm_head.bias", options.weightDType, {c.vocabSize}), options.dtype);
  else
    x = encoder.linear("lm_head.decoder", c.hiddenSize, c.vocabSize)(x);
  g.output("logits", nn::castTo(x, DType::F32));
  return g;
}

}  // namespace lathe
