// SPDX-License-Identifier: Apache-2.0
// Names of GGUF's tensors as Hugging Face's, of every architecture, and what is done to their rows.
#include <gtest/gtest.h>

#include <tuple>

#include "runtime/gguf_architecture.h"
#include "tests/unit/gguf_models.h"

namespace lathe {
namespace {

using test::Counts;
using test::messageOf;
using Model = test::GgufModel;

// The only weight that the tensor is.
GgufWeight weightOf(Model model, const std::string& name, std::vector<uint64_t> dims) {
  model.tensor(name, std::move(dims));
  const std::vector<GgufFile> parts = model.parts();
  const std::vector<GgufWeight> weights = weightsIn(*parts[0].tensor(name), parts);
  EXPECT_EQ(weights.size(), 1u) << name;
  return weights.at(0);
}

const char* const kArchitectures[] = {"llama",  "qwen2",  "qwen3", "qwen3moe", "gemma",
                                      "gemma2", "gemma3", "phi3",  "olmo2",    "granite"};

TEST(GgufNames, AreHuggingFaces) {
  const std::pair<const char*, const char*> names[] = {
      {"output_norm", "model.norm"},
      {"output", "lm_head"},
      {"blk.17.attn_norm", "model.layers.17.input_layernorm"},
      {"blk.17.attn_q", "model.layers.17.self_attn.q_proj"},
      {"blk.17.attn_k", "model.layers.17.self_attn.k_proj"},
      {"blk.17.attn_v", "model.layers.17.self_attn.v_proj"},
      {"blk.17.attn_qkv", "model.layers.17.self_attn.qkv_proj"},
      {"blk.17.attn_output", "model.layers.17.self_attn.o_proj"},
      {"blk.17.attn_q_norm", "model.layers.17.self_attn.q_norm"},
      {"blk.17.attn_k_norm", "model.layers.17.self_attn.k_norm"},
      {"blk.17.post_attention_norm", "model.layers.17.post_attention_layernorm"},
      {"blk.17.post_ffw_norm", "model.layers.17.post_feedforward_layernorm"},
      {"blk.17.ffn_gate", "model.layers.17.mlp.gate_proj"},
      {"blk.17.ffn_down", "model.layers.17.mlp.down_proj"},
      // Names that nobody knows stay as they are, and are told as unexpected.
      {"blk.17.ffn_gate_exps", "blk.17.ffn_gate_exps"},
      {"blk.17.novel", "blk.17.novel"},
      {"novel", "novel"}};
  for (const char* architecture : kArchitectures)
    for (const auto& [theirs, ours] : names)
      EXPECT_EQ(weightOf(Model(architecture), theirs + std::string(".weight"), {64, 64}).name,
                ours + std::string(".weight"))
          << architecture;
  EXPECT_EQ(weightOf(Model("qwen2"), "blk.3.attn_q.bias", {64}).name,
            "model.layers.3.self_attn.q_proj.bias");
  EXPECT_EQ(weightOf(Model("llama"), "blk.3", {64}).name, "blk.3");
  EXPECT_EQ(weightOf(Model("llama"), "novel", {64}).name, "novel");
}

// Which tensors an architecture names in its own way.
TEST(GgufNames, OfTheirArchitecture) {
  for (const std::string a : kArchitectures) {
    SCOPED_TRACE(a);
    const bool isGemma2 = a == "gemma2" || a == "gemma3";
    EXPECT_EQ(weightOf(Model(a), "blk.0.ffn_norm.weight", {64}).name,
              isGemma2 ? "model.layers.0.pre_feedforward_layernorm.weight"
                       : "model.layers.0.post_attention_layernorm.weight");
    EXPECT_EQ(weightOf(Model(a), "blk.0.ffn_up.weight", {64, 96}).name,
              a == "phi3" ? "model.layers.0.mlp.gate_up_proj.weight"
                          : "model.layers.0.mlp.up_proj.weight");
    EXPECT_EQ(weightOf(Model(a), "blk.0.ffn_gate_inp.weight", {64, 4}).name,
              a == "llama" ? "model.layers.0.block_sparse_moe.gate.weight"
                           : "model.layers.0.mlp.gate.weight");
    const bool addsOne = a.starts_with("gemma");
    for (const char* norm : {"output_norm.weight", "blk.0.attn_norm.weight",
                             "blk.0.ffn_norm.weight", "blk.0.attn_q_norm.weight",
                             "blk.0.post_attention_norm.weight", "blk.0.post_ffw_norm.weight"})
      EXPECT_EQ(weightOf(Model(a), norm, {64}).lessOne, addsOne) << norm;
    for (const char* other : {"output.weight", "blk.0.attn_v.weight", "blk.0.ffn_down.weight"})
      EXPECT_FALSE(weightOf(Model(a), other, {64, 64}).lessOne) << other;
  }
}

TEST(GgufNames, ArchitecturesAreFamilies) {
  const std::tuple<const char*, const char*, const char*> families[] = {
      {"llama", "LlamaForCausalLM", "llama"},
      {"qwen2", "Qwen2ForCausalLM", "qwen2"},
      {"qwen3", "Qwen3ForCausalLM", "qwen3"},
      {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe"},
      {"gemma", "GemmaForCausalLM", "gemma"},
      {"gemma2", "Gemma2ForCausalLM", "gemma2"},
      {"gemma3", "Gemma3ForCausalLM", "gemma3_text"},
      {"phi3", "Phi3ForCausalLM", "phi3"},
      {"olmo2", "Olmo2ForCausalLM", "olmo2"},
      {"granite", "GraniteForCausalLM", "granite"}};
  for (const auto& [name, architecture, type] : families) {
    const GgufArchitecture& a = architectureOf(Model(name).parts()[0]);
    EXPECT_EQ(a.architecture, architecture);
    EXPECT_EQ(a.type, type);
  }
  const std::vector<GgufFile> other = Model("gpt2").parts();
  EXPECT_EQ(messageOf([&] { architectureOf(other[0]); }),
            other[0].path() +
                ": general.architecture: expected one of llama, qwen2, qwen3, qwen3moe, gemma, "
                "gemma2, gemma3, phi3, olmo2, granite, got \"gpt2\"");
}

// [experts, rows, columns] are a matrix for each expert, one behind the other.
TEST(GgufNames, ExpertsAreCutApart) {
  const std::tuple<const char*, const char*, const char*> names[] = {
      {"ffn_gate_exps", "w1", "gate_proj"},
      {"ffn_up_exps", "w3", "up_proj"},
      {"ffn_down_exps", "w2", "down_proj"}};
  for (const std::string a : {"llama", "qwen3moe"})
    for (const auto& [theirs, mixtral, other] : names) {
      const std::string name = "blk.5." + std::string(theirs) + ".weight";
      Model model(a);
      model.with("expert_count", 3u).tensor(name, {8, 4, 3});
      const std::vector<GgufFile> parts = model.parts();
      const std::vector<GgufWeight> weights = weightsIn(*parts[0].tensor(name), parts);
      ASSERT_EQ(weights.size(), 3u);
      for (int64_t e = 0; e < 3; ++e) {
        const std::string of = ".experts." + std::to_string(e) + ".";
        EXPECT_EQ(weights[size_t(e)].name,
                  a == "llama" ? "model.layers.5.block_sparse_moe" + of + mixtral + ".weight"
                               : "model.layers.5.mlp" + of + other + ".weight");
        EXPECT_EQ(weights[size_t(e)].first, 4 * e);
        EXPECT_EQ(weights[size_t(e)].shape, (Shape{4, 8}));
      }
      Model flat(a);
      flat.with("expert_count", 3u).tensor(name, {8, 4});
      const std::vector<GgufFile> bad = flat.parts();
      EXPECT_EQ(messageOf([&] { weightsIn(*bad[0].tensor(name), bad); }),
                bad[0].path() + ": tensor \"" + name +
                    "\": expected [experts, rows, columns], got F32[4, 8]");
    }
  EXPECT_TRUE(isMixture(Model("llama").with("expert_count", 1u).parts()[0]));
  EXPECT_FALSE(isMixture(Model("llama").with("expert_count", 0u).parts()[0]));
  EXPECT_FALSE(isMixture(Model("llama").parts()[0]));
}

TEST(GgufNames, FactorsOfRotationsAreNoWeights) {
  for (const char* name :
       {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}) {
    const std::vector<GgufFile> parts = Model("llama").tensor(name, {8}).parts();
    EXPECT_TRUE(weightsIn(*parts[0].tensor(name), parts).empty()) << name;
  }
}

TEST(GgufNames, RotatedRowsFillTheirHeads) {
  auto with = [](uint32_t heads, std::optional<uint32_t> kv) {
    Model model("llama");
    model.with("attention.head_count", heads);
    if (kv) model.with("attention.head_count_kv", *kv);
    return model;
  };
  EXPECT_EQ(weightOf(with(4, 2), "blk.0.attn_q.weight", {64, 24}).rotatedHeads, 4);
  EXPECT_EQ(weightOf(with(4, 2), "blk.0.attn_k.weight", {64, 12}).rotatedHeads, 2);
  EXPECT_EQ(weightOf(with(4, {}), "blk.0.attn_k.weight", {64, 24}).rotatedHeads, 4);
  EXPECT_EQ(weightOf(with(4, 2), "blk.0.attn_q.bias", {24}).rotatedHeads, 4);
  EXPECT_EQ(weightOf(with(4, 2), "blk.0.attn_v.weight", {64, 12}).rotatedHeads, 0);
  auto refusal = [&](std::vector<uint64_t> dims) {
    Model model = with(4, 2);
    model.tensor("blk.0.attn_q.weight", std::move(dims));
    const std::vector<GgufFile> parts = model.parts();
    std::string said =
        messageOf([&] { weightsIn(*parts[0].tensor("blk.0.attn_q.weight"), parts); });
    return said.substr(std::min(said.size(), parts[0].path().size()));
  };
  EXPECT_EQ(refusal({64, 8}), "");
  EXPECT_EQ(refusal({64, 12}),
            ": tensor \"blk.0.attn_q.weight\": expected rows of 4 heads of even "
            "size, got F32[12, 64]");
  EXPECT_EQ(refusal({2, 4, 8}),
            ": tensor \"blk.0.attn_q.weight\": expected rows of 4 heads of "
            "even size, got F32[8, 4, 2]");
}

// Elements of a vector are rows, which no block holds several of.
TEST(GgufNames, RotatedVectorsAreNotInBlocks) {
  test::TemporaryFolder folder;
  test::GgufWriter w;
  w.begin(1, 2).key("general.architecture", GgufType::String).text("llama");
  w.key("llama.attention.head_count", GgufType::U32).number<uint32_t>(4);
  w.tensor("blk.0.attn_q.bias", {64}, 8, 0).data(2 * 34);
  const std::string path = folder.write("m.gguf", w.bytes());
  EXPECT_EQ(messageOf([&] { readGgufWeights(path); }),
            path +
                ": tensor \"blk.0.attn_q.bias\": expected rows of 4 heads of even size, got "
                "Q8_0[64]");
}

TEST(GgufNames, CountsOfLayersAreOneCount) {
  auto count = [](test::Value value) {
    const GgufFile file = Model("llama").with("n", std::move(value)).parts()[0];
    return uniformCount(file.at("llama.n"), 9);
  };
  EXPECT_EQ(count(9u), 9);
  EXPECT_EQ(count(Counts{1, 1, 1}), 1);
  auto refusal = [&](test::Value value) {
    const std::string said = messageOf([&] { count(value); });
    return said.substr(said.find("llama.n"));
  };
  EXPECT_EQ(refusal(10u), "llama.n: expected an integer from 1 to 9, got 10");
  EXPECT_EQ(refusal(Counts{}),
            "llama.n: expected the same number for all layers, got an array of 0 values of u32");
  EXPECT_EQ(refusal(Counts{3, 3, 4}),
            "llama.n: expected the same number for all layers, got an array of 3 values of u32");
}

// Values, element by element: 1 + w of norms, pairs of rotated rows, transposed experts.
TEST(GgufWeights, LieAsTheFamilyReadsThem) {
  test::TemporaryFolder folder;
  test::GgufWriter w;
  w.begin(4, 3).key("general.architecture", GgufType::String).text("llama");
  w.key("llama.attention.head_count", GgufType::U32).number<uint32_t>(2);
  w.key("llama.expert_count", GgufType::U32).number<uint32_t>(2);
  w.tensor("blk.0.attn_q.weight", {1, 8}, 0, 0).tensor("blk.0.attn_q.bias", {8}, 0, 32);
  w.tensor("blk.0.ffn_up_exps.weight", {2, 3, 2}, 0, 64)
      .tensor("blk.0.attn_v.weight", {1, 8}, 0, 128);
  w.data(0);
  std::string bytes = w.bytes();
  for (int i = 0; i < 40; ++i) {
    const float value = float(i);
    bytes.append(reinterpret_cast<const char*>(&value), 4);
  }
  const StoredWeights weights = readGgufWeights(folder.write("m.gguf", bytes));
  auto values = [&](const char* name) {
    const Array a = weights.at(name).read();
    std::vector<double> all;
    for (int64_t i = 0; i < a.size(); ++i) all.push_back(double(a.at(i)));
    return all;
  };
  // Of each head's four rows 0 1 2 3 the pairs (0, 1) and (2, 3) come apart: 0 2 1 3.
  EXPECT_EQ(values("model.layers.0.self_attn.q_proj.weight"),
            (std::vector<double>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(values("model.layers.0.self_attn.q_proj.bias"),
            (std::vector<double>{8, 10, 9, 11, 12, 14, 13, 15}));
  EXPECT_EQ(values("model.layers.0.self_attn.v_proj.weight"),
            (std::vector<double>{32, 33, 34, 35, 36, 37, 38, 39}));
  EXPECT_EQ(values("model.layers.0.block_sparse_moe.experts.0.w3.weight"),
            (std::vector<double>{16, 17, 18, 19, 20, 21}));
  EXPECT_EQ(values("model.layers.0.block_sparse_moe.experts.1.w3.weight"),
            (std::vector<double>{22, 23, 24, 25, 26, 27}));
}

}  // namespace
}  // namespace lathe
