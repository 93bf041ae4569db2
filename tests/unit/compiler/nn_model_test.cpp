// SPDX-License-Identifier: Apache-2.0
// What SwiGLU, blocks, whole models and the Llama family record.
#include <map>

#include "examples/seeds/presets.h"
#include "lathe/frontend/families/llama.h"
#include "tests/unit/compiler/nn_recording.h"

namespace lathe {
namespace {

using nn::SigmoidForm;

LATHE_NN_DTYPES(NnModel);

TEST_P(NnModel, SwiGluOfEachSeed) {
  struct Case {
    nn::SwiGLUOptions options;
    std::string gate, up, down;
  };
  const std::vector<Case> cases = {
      {nn::SwiGLUOptions::llama(), "gate_proj.weight", "up_proj.weight", "down_proj.weight"},
      {seeds::modern::swiglu(), "w1.weight", "w3.weight", "w2.weight"},
      {seeds::cs336::swiglu(), "W1.W", "W3.W", "W2.W"},
      {seeds::cs190c::swiglu(), "linear_w1.linear_matrix", "linear_w3.linear_matrix",
       "linear_w2.linear_matrix"}};
  for (const Case& c : cases) {
    Recording r(GetParam());
    std::string t = r.text(nn::SwiGLU(r.g, "mlp", 64, 172, c.options)(r.x));
    for (const std::string& name : {c.gate, c.up, c.down})
      EXPECT_TRUE(has(t, "\"mlp." + name + "\"")) << t;
    EXPECT_EQ(ops(t, "matmul"), 3);
    EXPECT_EQ(ops(t, "sigmoid"), c.options.sigmoid == SigmoidForm::Op);
    EXPECT_EQ(ops(t, "glu"), 0);
  }
}

TEST(NnSwiGlu, HiddenSizesOfTheSeeds) {
  EXPECT_EQ(seeds::cs190c::hiddenSize(512), 1365);
  EXPECT_EQ(seeds::cs336::hiddenSize(512), 1344);
  EXPECT_EQ(seeds::cs336::hiddenSize(64), 192);
}

TEST_P(NnModel, BlockAddsTwoResiduals) {
  Recording r(GetParam());
  nn::BlockOptions o{.attention = {.dModel = 64, .heads = 4}, .dHidden = 172};
  Tensor y = nn::TransformerBlock(r.g, "layers.3", o)(r.x);
  EXPECT_EQ(y.shape(), r.x.shape());
  std::string t = r.text(y);
  EXPECT_TRUE(has(t, "\"layers.3.input_layernorm.weight\""));
  EXPECT_TRUE(has(t, "\"layers.3.post_attention_layernorm.weight\""));
  EXPECT_TRUE(has(t, "\"layers.3.self_attn.o_proj.weight\""));
  EXPECT_TRUE(has(t, "\"layers.3.mlp.down_proj.weight\""));
}

TEST_P(NnModel, TheLayerInsideIsAsWideAsAskedOrFourTimesTheModel) {
  for (auto [asked, made] : {std::pair<int64_t, int64_t>{172, 172}, {0, 256}}) {
    Recording r(GetParam());
    nn::BlockOptions o{.attention = {.dModel = 64, .heads = 4}, .dHidden = asked};
    o.mlp = nn::FeedForwardOptions();
    const std::string t = r.text(nn::TransformerBlock(r.g, "layers.3", o)(r.x));
    EXPECT_TRUE(has(t, " : tensor<" + std::to_string(made) + "x64x")) << t;
    EXPECT_TRUE(has(t, " : tensor<64x" + std::to_string(made) + "x")) << t;
  }
}

std::string forwardText(const nn::TransformerLMOptions& options) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 128);
  nn::TransformerLM lm(g, "", options);
  Tensor logits = lm.forward(g.input("ids", DType::I64, {batch, seq}));
  EXPECT_EQ(logits.dtype(), DType::F32);
  EXPECT_EQ(logits.shape(), (Dims{batch, seq, 100}));
  g.output("logits", logits);
  return g.text();
}

TEST(NnTransformerLm, NamesOfLlama) {
  std::string t = forwardText(small(nn::ModelStyle::llama()));
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight",
                           "model.norm.weight", "lm_head.weight"})
    EXPECT_TRUE(has(t, std::string("\"") + name + "\"")) << name;
  EXPECT_EQ(ops(t, "weight"), 3 + 2 * 9);
  EXPECT_EQ(ops(t, "cos"), 1);  // one table for all layers
}

TEST(NnTransformerLm, NamesOfCs336AndItsSoftmax) {
  std::string t = forwardText(small(seeds::cs336::style()));
  for (const char* name : {"token_embeddings.embeddings", "layers.1.ln1.g", "layers.1.attn.W_q.W",
                           "layers.0.ffn.W2.W", "ln_f.g", "lm_head.W"})
    EXPECT_TRUE(has(t, std::string("\"") + name + "\"")) << name;
  EXPECT_EQ(ops(t, "is_nan"), 2);
  EXPECT_EQ(ops(t, "reduce_max"), 3);
}

TEST(NnTransformerLm, NamesOfCs190c) {
  std::string t = forwardText(small(seeds::cs190c::style()));
  for (const char* name : {"embeddings.embedding_matrix", "transformer_blocks.1.RMSNorm_Attn.g",
                           "transformer_blocks.0.Multihead_Attn.q_proj.linear_matrix",
                           "transformer_blocks.0.Feed_Forward.linear_w1.linear_matrix",
                           "final_norm.g", "final_layer.linear_matrix"})
    EXPECT_TRUE(has(t, std::string("\"") + name + "\"")) << name;
}

TEST(NnTransformerLm, LearntPositionsAndTiedHead) {
  nn::TransformerLMOptions o = small(nn::ModelStyle::llama());
  o.positions = nn::TransformerLMOptions::Positions::Learnt;
  o.tiedHead = true;
  o.dtype = DType::BF16;
  o.weightDType = DType::F32;
  std::string t = forwardText(o);
  EXPECT_TRUE(has(t, "\"model.embed_positions.weight\" : tensor<128x64xf32>"));
  EXPECT_FALSE(has(t, "lm_head"));
  EXPECT_EQ(ops(t, "cos"), 0);
}

// What the model's options say counts for every layer.
TEST(NnTransformerLm, OptionsReachTheLayers) {
  nn::TransformerLMOptions o = small(nn::ModelStyle::llama());
  o.qkvBias = o.outputBias = o.mlpBias = true;
  o.normEps = 0.125;
  o.ropeScaling = {.type = nn::RopeScalingOptions::Type::Linear, .factor = 2};
  const std::string t = forwardText(o);
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                           "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    EXPECT_EQ(countOf(t, std::string(name) + ".bias\""), 2) << name;
  EXPECT_EQ(countOf(t, "dense<1.250000e-01>"), 5) << "two norms a layer, and the last";
  EXPECT_TRUE(has(t, "dense<[5.000000e-01, ")) << "the first frequency, stretched";
}

TEST(NnTransformerLm, FusedOpsWhereAsked) {
  nn::TransformerLMOptions o = small(nn::ModelStyle::llama());
  o.useFused = true;
  std::string t = forwardText(o);
  EXPECT_EQ(ops(t, "attention"), 2);
  EXPECT_EQ(ops(t, "rms_norm"), 5);
  EXPECT_EQ(ops(t, "glu"), 2);
  EXPECT_EQ(ops(t, "linear"), 15);
  EXPECT_EQ(countOf(t, "lathe.rope "), 4);
  EXPECT_EQ(ops(t, "embedding"), 1);
  EXPECT_EQ(ops(t, "matmul"), 0);
}

TEST_P(NnModel, CachedStepsShareWeightsAndStates) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 128), cache = g.dim("cache", 1, 128);
  nn::TransformerLMOptions o = small(nn::ModelStyle::llama());
  o.kvHeads = 2;
  o.dtype = GetParam();
  nn::TransformerLM lm(g, "", o);
  lm.declareCache(batch, cache);
  for (const auto& [name, tokens] : std::map<std::string, Dim>{{"prefill", seq}, {"decode", 1}}) {
    g.entry(name);
    Tensor ids = g.input("ids", DType::I32, {batch, tokens});
    Tensor logits = lm.step(ids, g.input("positions", DType::I32, {batch}));
    EXPECT_EQ(logits.shape(), (Dims{batch, 100}));
    g.output("logits", logits);
  }
  g.entry("score");
  Tensor all = lm.stepAll(g.input("ids", DType::I64, {batch, seq}),
                          g.input("positions", DType::I64, {batch}));
  EXPECT_EQ(all.shape(), (Dims{batch, seq, 100}));
  g.output("logits", all);
  std::string t = g.text();
  EXPECT_EQ(countOf(t, "lathe.state @"), 4);
  EXPECT_EQ(ops(t, "update"), 3 * 4);
  EXPECT_EQ(Graph::parse(t).text(), t);
}

TEST(NnScopes, OpsCarryThePathAndTheUsersLine) {
  Recording r;
  nn::SwiGLU mlp(r.g, "blocks.3.mlp", 64, 172);
  const unsigned line = __LINE__ + 1;
  Tensor y = mlp(r.x);
  r.g.output("y", y);
  std::string t = r.g.text(/*withLocations=*/true);
  EXPECT_TRUE(has(t, "\"blocks.3.mlp.gate_proj\""));
  EXPECT_TRUE(has(t, "nn_model_test.cpp\":" + std::to_string(line) + ":"));
  EXPECT_FALSE(has(t, "mlp.cpp")) << "a line of the library instead of the user's";
}

LlamaConfig tinyConfig() {
  LlamaConfig config;
  config.vocabSize = 100;
  config.hiddenSize = 64;
  config.intermediateSize = 172;
  config.layers = 2;
  config.heads = 4;
  config.kvHeads = 2;
  config.headDim = 16;
  config.maxPositions = 128;
  return config;
}

TEST_P(NnModel, LlamaHasThreeEntryPoints) {
  std::string t =
      buildLlama(tinyConfig(), {.dtype = GetParam(), .weightDType = DType::BF16}).text();
  EXPECT_EQ(Graph::parse(t).text(), t);
  for (const char* entry : {"@forward", "@prefill", "@decode"}) EXPECT_TRUE(has(t, entry));
  EXPECT_TRUE(has(t, "\"model.layers.1.mlp.down_proj.weight\" : tensor<64x172xbf16>"));
  EXPECT_TRUE(has(t, "#lathe.dims<batch, 2, cache, 16>"));
  EXPECT_TRUE(has(t, "tensor<?x1xi64, #lathe.dims<batch, 1>> {lathe.name = \"input_ids\"}"));
  EXPECT_EQ(countOf(t, "{lathe.name = \"logits\"}"), 3);
}

TEST(NnLlama, OptionsOfTheConfigAreHonoured) {
  LlamaConfig config = tinyConfig();
  config.tieWordEmbeddings = config.attentionBias = config.mlpBias = true;
  config.ropeScaling = {.type = nn::RopeScalingOptions::Type::Linear, .factor = 2};
  std::string t = buildLlama(config, {.maxSeq = 32, .cacheCapacity = 64}).text();
  EXPECT_FALSE(has(t, "lm_head"));
  EXPECT_TRUE(has(t, "self_attn.o_proj.bias"));
  EXPECT_TRUE(has(t, "mlp.up_proj.bias"));
  EXPECT_TRUE(has(t, "lathe.dim @seq 1 to 32"));
  EXPECT_TRUE(has(t, "lathe.dim @cache 1 to 64"));
  EXPECT_TRUE(has(t, "lathe.iota <64, 1>")) << "the table has a row for every reachable position";
  EXPECT_TRUE(has(t, "dense<[5.000000e-01, ")) << "the first frequency, stretched";
}

// Dynamic scaling lengthens what a model takes; the others were lengthened in the config.
TEST(NnLlama, LengthsFollowTheScaling) {
  using Type = nn::RopeScalingOptions::Type;
  for (auto [type, longest] : {std::pair{Type::Default, 128},
                               {Type::Linear, 128},
                               {Type::Dynamic, 256},
                               {Type::Yarn, 128}}) {
    LlamaConfig config = tinyConfig();
    config.ropeScaling = {.type = type, .factor = 2, .originalMaxPositions = 128};
    const std::string t = buildLlama(config).text();
    EXPECT_TRUE(has(t, "lathe.dim @seq 1 to " + std::to_string(longest) + "\n"))
        << t.substr(0, 300);
    EXPECT_TRUE(has(t, "lathe.dim @cache 1 to " + std::to_string(longest) + "\n"));
    buildLlama(config, {.maxSeq = longest});
    expectError([&] { buildLlama(config, {.maxSeq = longest + 1}); },
                "positions, got " + std::to_string(longest + 1));
  }
}

TEST(NnLlama, LengthsBeyondTheModelAreRefused) {
  expectError([&] { buildLlama(tinyConfig(), {.maxSeq = 129}); },
              "expected maxSeq from 1 to the model's 128 positions, got 129; without it, it is all "
              "of them");
  expectError([&] { buildLlama(tinyConfig(), {.cacheCapacity = -1}); }, "expected cacheCapacity");
}

}  // namespace
}  // namespace lathe
