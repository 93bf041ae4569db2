// SPDX-License-Identifier: Apache-2.0
// GPT-2 under Hugging Face's names: TransformerLM with LayerNorm, a plain MLP, learnt positions and
// one weight for q, k and v. Its linear weights are [in, out].
#include "run_golden.h"

using namespace lathe;

int main(int argc, char** argv) {
  nn::ModelStyle style = nn::ModelStyle::gpt();
  style.attention.linear.layout = WeightLayout::in_out;
  std::get<nn::FeedForwardOptions>(style.mlp).linear.layout = WeightLayout::in_out;

  Graph g("gpt2");
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 16);
  nn::TransformerLM model(g, "transformer",
                          {.vocabSize = 50,
                           .dModel = 24,
                           .layers = 2,
                           .heads = 3,
                           .maxPositions = 16,
                           .positions = nn::TransformerLMOptions::Positions::Learnt,
                           .tiedHead = true,
                           .style = style});
  g.output("out", model.forward(g.input("ids", DType::I64, {batch, seq})));
  return runGolden(argc, argv, g);
}
