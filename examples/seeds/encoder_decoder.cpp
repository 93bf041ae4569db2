// SPDX-License-Identifier: Apache-2.0
// The encoder-decoder of "Attention Is All You Need": LayerNorm after each residual sum, sine
// positions, cross attention, and masks made of the padding id 0.
#include "presets.h"
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("encoder_decoder");
  Dim batch = g.dim("batch", 1, 4), s = g.dim("source", 1, 64), t = g.dim("target", 1, 64);
  nn::EncoderDecoderOptions options = seeds::rice::encoderDecoder();
  options.sourceVocab = 96;
  options.targetVocab = 80;
  options.layers = 2;
  options.maxPositions = 64;
  options.layer.attention.dModel = 48;
  options.layer.attention.heads = 4;
  options.layer.dHidden = 100;
  nn::EncoderDecoder model(g, "", options);

  Tensor source = g.input("source", DType::I64, {batch, s});
  Tensor target = g.input("target", DType::I64, {batch, t});
  Tensor sourceMask = nn::paddingMask(source, 0), targetMask = nn::targetMask(target, 0);
  g.output("out", model.forward(source, target, sourceMask, targetMask));
  return g;
}

}  // namespace

int main() {
  Array source = tokenIds({2, 7}, 96), target = tokenIds({2, 5}, 80);
  for (int64_t i : {11, 12, 13}) source.set(i, 0);
  for (int64_t i : {3, 4}) target.set(i, 0);
  return runSeed(buildModel, {{"forward", {{"source", source}, {"target", target}}}});
}
