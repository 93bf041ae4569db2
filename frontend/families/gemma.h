// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the three Gemmas share: gains of 1 + w, embeddings times sqrt(hidden); and what the later
// two do: a norm on either side of each part, a soft cap of the logits.
#include "lathe/frontend/families/causal_lm.h"

namespace lathe {

class GemmaLm : public DecoderLm {
 public:
  GemmaLm(Graph& graph, const DecoderConfig& config, const FamilyOptions& options);
  Tensor embed(const Tensor& ids, const Tensor& where) const override;

 protected:
  /// x + norm(attention(norm(x))), then the same with the MLP.
  Tensor sandwich(int64_t index, const Tensor& x, const nn::SelfAttentionOptions& o,
                  const nn::LayerContext& context) const;
  /// cap tanh(logits / cap); 0: no cap.
  Tensor cappedLogits(const Tensor& x, double cap) const;
};

}  // namespace lathe
