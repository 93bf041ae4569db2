// SPDX-License-Identifier: Apache-2.0
// FamilyOptions::layers: fewer layers of a model than its config.json says, on both sides of those
// that have two.
#include <gtest/gtest.h>

#include <string>

#include "lathe/lathe.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

constexpr const char* kT5 = R"({"architectures": ["T5ForConditionalGeneration"], "vocab_size": 11,
    "d_model": 16, "d_kv": 4, "num_heads": 4, "d_ff": 12, "num_layers": 3,
    "num_decoder_layers": 2, "model_type": "t5"})";

// The layers of a side that have weights.
int64_t layersOf(const std::string& text, const std::string& side) {
  int64_t layers = 0;
  while (text.find("\"" + side + ".block." + std::to_string(layers) + ".") != text.npos) ++layers;
  return layers;
}

TEST(FamilyLayers, OfT5AreThoseOfBothSides) {
  const JsonValue config = JsonValue::parse(kT5, "config.json");
  for (auto [asked, encoder, decoder] :
       {std::tuple{0, 3, 2}, std::tuple{1, 1, 1}, std::tuple{2, 2, 2}, std::tuple{3, 3, 2}}) {
    const std::string text = buildFromConfig(config, {.layers = asked}).text();
    EXPECT_EQ(layersOf(text, "encoder"), encoder) << asked;
    EXPECT_EQ(layersOf(text, "decoder"), decoder) << asked;
  }
  test::expectError(ErrorCode::InvalidArgument, "expected 1 to 3 layers, got 4",
                    [&] { buildFromConfig(config, {.layers = 4}); });
}

}  // namespace
}  // namespace lathe
