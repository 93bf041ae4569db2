// SPDX-License-Identifier: Apache-2.0
// The diffusion transformer of nn:: and its parts against PyTorch: every file of
// tests/golden/seeds/dit, in f32 and bf16, on each backend.
#include "lathe/lathe.h"
#include "tests/golden/seed_golden.h"

namespace lathe::seeds {
namespace {

nn::MultiHeadAttentionOptions attention() {
  nn::MultiHeadAttentionOptions o = nn::MultiHeadAttentionOptions::dit();
  o.dModel = 24;
  o.heads = 3;
  return o;
}
Record timestepsOf(int64_t size, int64_t frequencies) {
  return [=](const Case& c) {
    return nn::TimestepEmbedding(c.g, "", size, {.frequencies = frequencies})(c.in("t"), c.dtype);
  };
}
Record modelOf(nn::DiTOptions o) {
  o.dModel = 24;
  o.layers = 2;
  o.heads = 3;
  o.dHidden = 50;
  o.labels = 11;
  o.timestep.frequencies = 16;
  return [=](const Case& c) mutable {
    o.dtype = c.dtype;
    return nn::DiT(c.g, "", o)(c.x(), c.in("t"), c.in("y"));
  };
}

const std::map<std::string, Record>& records() {
  static const std::map<std::string, Record> table = {
      {"patches",
       [](const Case& c) { return nn::PatchEmbedding(c.g, "", 3, 2, 24)(c.in("image")); }},
      {"timesteps", timestepsOf(24, 16)},
      {"timesteps_wide", timestepsOf(8, 256)},
      {"attention",
       [](const Case& c) { return nn::MultiHeadAttention(c.g, "", attention())(c.x()); }},
      {"block",
       [](const Case& c) {
         return nn::DiTBlock(c.g, "", {.attention = attention(), .dHidden = 50})(c.x(), c.in("c"));
       }},
      {"final_layer",
       [](const Case& c) { return nn::DiTFinalLayer(c.g, "", 24, 20)(c.x(), c.in("c")); }},
      {"model", modelOf({.image = {6, 14}, .channels = 3})},
      {"model_computed_positions", modelOf({.image = {9, 6},
                                            .channels = 1,
                                            .patch = 3,
                                            .learnSigma = false,
                                            .positions = nn::DiTOptions::Positions::Sine2d})},
  };
  return table;
}

class DiTSeeds : public ::testing::TestWithParam<Golden> {};
constexpr const char* kFolder = "seeds/dit";

TEST_P(DiTSeeds, F32EqualsPyTorch) {
  expectF32EqualsPyTorch(kFolder, GetParam(), records().at(GetParam().name));
}

TEST_P(DiTSeeds, Bf16IsAsExactAsPyTorch) {
  expectBf16IsAsExactAsPyTorch(kFolder, GetParam(), records().at(GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(PyTorch, DiTSeeds, ::testing::ValuesIn(goldensIn(kFolder)), testName);

}  // namespace
}  // namespace lathe::seeds
