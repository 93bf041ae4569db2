// SPDX-License-Identifier: Apache-2.0
// Names of tensors that lack the prefix of a language model, or have one too many.
#include <gtest/gtest.h>

#include "runtime/stored_weight.h"

namespace lathe {
namespace {

// The names afterwards, each with the one that its tensor had.
std::map<std::string, std::string> mended(const std::vector<std::string>& names) {
  StoredWeights weights;
  for (const std::string& name : names) {
    StoredWeight w;
    w.tensor.name = name;
    w.tensor.shape = {int64_t(name.size())};  // which tensor it is
    weights[name] = w;
  }
  mendPrefixes(weights);
  std::map<std::string, std::string> after;
  for (auto& [name, w] : weights) {
    EXPECT_EQ(w.tensor.name, name);
    for (const std::string& was : names)
      if (int64_t(was.size()) == w.tensor.shape.at(0)) after[name] = was;
  }
  return after;
}
using Names = std::map<std::string, std::string>;

TEST(WeightNames, GetTheirPrefixOnce) {
  EXPECT_EQ(mended({"layers.0.a", "embed_tokens.weight", "norm.w", "lm_head.weight", "other"}),
            (Names{{"model.layers.0.a", "layers.0.a"},
                   {"model.embed_tokens.weight", "embed_tokens.weight"},
                   {"model.norm.w", "norm.w"},
                   {"lm_head.weight", "lm_head.weight"},
                   {"other", "other"}}));
  EXPECT_EQ(mended({"model.model.layers.0.a", "model.lm_head.weight"}),
            (Names{{"model.layers.0.a", "model.model.layers.0.a"},
                   {"lm_head.weight", "model.lm_head.weight"}}));
  EXPECT_EQ(mended({"_orig_mod.layers.0.a", "_orig_mod.model.layers.0.bc"}),
            (Names{{"model.layers.0.a", "_orig_mod.layers.0.a"},
                   {"model.layers.0.bc", "_orig_mod.model.layers.0.bc"}}));
  EXPECT_EQ(mended({"bert.encoder.a.LayerNorm.gamma", "b.LayerNorm.beta", "gamma"}),
            (Names{{"bert.encoder.a.LayerNorm.weight", "bert.encoder.a.LayerNorm.gamma"},
                   {"b.LayerNorm.bias", "b.LayerNorm.beta"},
                   {"gamma", "gamma"}}));
  EXPECT_EQ(mended({"model.layers.0.a"}), (Names{{"model.layers.0.a", "model.layers.0.a"}}));
}

// Which of the two is meant cannot be told: none is renamed.
TEST(WeightNames, OfTwoTensorsForOneNameNoneIsTaken) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"layers.0.a", "model.layers.0.a", "norm.w"},
        {"layers.0.a", "model.model.layers.0.a"},
        {"_orig_mod.layers.0.a", "model.layers.0.a"},
        {"lm_head.weight", "model.lm_head.weight", "layers.0.abc"}}) {
    Names same;
    for (const std::string& name : names) same[name] = name;
    EXPECT_EQ(mended(names), same) << names[0] << ", " << names[1];
  }
}

}  // namespace
}  // namespace lathe
