// SPDX-License-Identifier: Apache-2.0
#pragma once
// A decoder whose queries and keys have norms of their own (Qwen3), recorded op by op.
#include <string>

#include "lathe/frontend/nn/nn.h"

namespace lathe {

struct NormedDecoder {
  int64_t vocabulary = 64, hidden = 64, intermediate = 96, layers = 1;
  int64_t heads = 4, keyHeads = 2, headDim = 16, capacity = 32, maxBatch = 4, maxSeq = 24;
  DType dtype = DType::F32;
  bool normsHeads = true;
  bool transposedFirst = false;  ///< norms behind the transpose to heads, not in front of it
  bool normsValues = false;      ///< values have a norm, too, and no rotation behind it
  int64_t rotated = 0;           ///< elements of a head that are rotated; 0: all
  bool projectsOnly = false;     ///< ends with the first layer's queries, as output `q`
  nn::NormOptions norm = nn::NormOptions::llama();
  Pairing pairing = Pairing::half;

  /// Qwen3-0.6B's sizes, with a small vocabulary.
  static NormedDecoder qwen3() {
    return {.hidden = 1024,
            .intermediate = 3072,
            .layers = 2,
            .heads = 16,
            .keyHeads = 8,
            .headDim = 128,
            .capacity = 4096,
            .dtype = DType::BF16};
  }

  /// One entry `step`: ids [batch, seq], positions [batch] -> logits [batch, seq, vocabulary].
  Graph graph() const {
    Graph g("decoder");
    const Dim batch = g.dim("batch", 1, maxBatch), seq = g.dim("seq", 1, maxSeq);
    g.entry("step");
    const nn::Embedding embedding(g, "embed", vocabulary, hidden, {.dtype = dtype});
    Tensor x = embedding(g.input("ids", DType::I64, {batch, seq}));
    const Tensor positions = g.input("positions", DType::I64, {batch});
    const nn::RoPE rope(g, "rope",
                        {.headDim = headDim,
                         .rotaryDim = rotated,
                         .maxPositions = capacity + maxSeq,
                         .pairing = pairing});
    const nn::RopeAngles angles = rope.angles(nn::tokenPositions(positions, seq));
    for (int64_t i = 0; i < layers; ++i) {
      const std::string path = "layers." + std::to_string(i) + ".";
      auto linear = [&](const char* name, const Tensor& in, int64_t from, int64_t to) {
        return nn::Linear(g, path + name, from, to, {.bias = false})(in);
      };
      const Tensor in = nn::RMSNorm(g, path + "norm1", hidden, norm)(x);
      auto heads = [&](const char* name, int64_t count, bool isNormed) {
        Tensor y = reshape(linear(name, in, hidden, count * headDim), {batch, seq, count, headDim});
        const nn::RMSNorm own(g, path + name + "_norm", headDim, norm);
        const bool isFirst = isNormed && normsHeads && !transposedFirst;
        if (isFirst) y = own(y);
        y = transpose(y, {0, 2, 1, 3});
        return isNormed && normsHeads && transposedFirst ? own(y) : y;
      };
      auto append = [&](const std::string& name, const Tensor& value) {
        g.state(path + name, dtype, {batch, keyHeads, capacity, headDim});
        const Tensor all = update(g.readState(path + name), value, positions, 2);
        g.writeState(path + name, all);
        return all;
      };
      const Tensor q = rope(heads("q", this->heads, true), angles);
      const Tensor k = append("keys", rope(heads("k", keyHeads, true), angles));
      const Tensor v = append("values", heads("v", keyHeads, normsValues));
      if (projectsOnly) {
        g.output("q", q);
        return g;
      }
      nn::AttentionOptions attention = nn::AttentionOptions::llama();
      attention.positions = positions;
      const Tensor mixed = nn::mergeHeads(nn::attention(q, k, v, attention));
      x = x + linear("o", mixed, this->heads * headDim, hidden);
      const Tensor inner = nn::RMSNorm(g, path + "norm2", hidden, norm)(x);
      const nn::SwiGLU mlp(g, path + "mlp", hidden, intermediate);
      x = x + mlp(inner);
    }
    g.output("logits", nn::Linear(g, "head", hidden, vocabulary,
                                  {.bias = false})(nn::RMSNorm(g, "norm", hidden, norm)(x)));
    return g;
  }
};

}  // namespace lathe
