// SPDX-License-Identifier: Apache-2.0
// A family that a user adds, as docs/families.md shows it.
#include <gtest/gtest.h>

#include "lathe/frontend/families/causal_lm.h"
#include "lathe/lathe.h"
#include "tests/closeness.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

class Mine : public DecoderLm {
 public:
  using DecoderLm::DecoderLm;
  Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context) const override {
    const std::string path = layerPath(index);
    Tensor y = x + attention(path + ".self_attn", attentionOptions())(
                       norm(path + ".input_layernorm")(x), context);
    return y + mlp(path + ".mlp")(norm(path + ".post_attention_layernorm")(y));
  }
};

constexpr const char* kSizes = R"("vocab_size": 11, "hidden_size": 16, "intermediate_size": 12,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2})";

JsonValue configOf(const std::string& architecture) {
  return JsonValue::parse("{\"architectures\": [\"" + architecture + "\"], " + kSizes,
                          "config.json");
}

Array logitsOf(const std::string& architecture) {
  Session session(compile(buildFromConfig(configOf(architecture)), {.backend = "reference"}));
  session.bindRandomWeights(7);
  Array ids(DType::I64, {1, 5});
  for (int64_t i = 0; i < 5; ++i) ids.set(i, double(3 * i % 11));
  return session.run("forward", {{"input_ids", ids}}).at("logits");
}

TEST(RegisterFamily, AModelOfItsPartsIsLlama) {
  test::expectError(ErrorCode::Unsupported, "got \"MineForCausalLM\"",
                    [] { buildFromConfig(configOf("MineForCausalLM")); });
  registerFamily({"MineForCausalLM", "mine", ModelTask::Generate,
                  [](ConfigReader& config, const FamilyOptions& options) {
                    const DecoderConfig c = readDecoder(config, options);
                    return recordFamily<Mine>("mine", c, options);
                  }});
  const Array mine = logitsOf("MineForCausalLM"), llama = logitsOf("LlamaForCausalLM");
  EXPECT_GT(largestValue(llama), 0.01);
  EXPECT_LE(largestError(mine, llama), 1e-6);
}

TEST(RegisterFamily, TheLatestOfOneArchitectureCounts) {
  registerFamily({"TwiceForCausalLM", "twice", ModelTask::Generate,
                  [](ConfigReader&, const FamilyOptions&) { return Graph("first"); }});
  registerFamily({"TwiceForCausalLM", "twice", ModelTask::Generate,
                  [](ConfigReader& config, const FamilyOptions&) {
                    config.size("vocab_size", kMaxVocabulary);
                    return Graph("second");
                  }});
  // It leaves most fields unread.
  test::expectError(ErrorCode::Unsupported, "hidden_size: not supported by TwiceForCausalLM",
                    [] { buildFromConfig(configOf("TwiceForCausalLM")); });
}

}  // namespace
}  // namespace lathe
