// SPDX-License-Identifier: Apache-2.0
// DiT: patches of a noisy image, blocks whose norms are shifted, scaled and gated by the timestep
// and the label (adaLN-Zero), and the image back: noise and variance.
#include "run_seed.h"

using namespace lathe;

namespace {

Graph buildModel() {
  Graph g("dit");
  Dim batch = g.dim("batch", 1, 4);
  nn::DiT model(g, "",
                {.image = {8, 12},
                 .channels = 4,
                 .patch = 2,
                 .dModel = 48,
                 .layers = 2,
                 .heads = 4,
                 .labels = 11});
  Tensor image = g.input("image", DType::F32, {batch, 4, 8, 12});
  Tensor timesteps = g.input("timesteps", DType::F32, {batch});
  Tensor labels = g.input("labels", DType::I64, {batch});
  g.output("out", model(image, timesteps, labels));
  return g;
}

}  // namespace

int main() {
  const float steps[] = {3, 777};
  return runSeed(buildModel, {{"forward",
                               {{"image", waves({2, 4, 8, 12})},
                                {"timesteps", Array::fromFloats(steps, {2})},
                                {"labels", tokenIds({2}, 11)}}}});
}
