// SPDX-License-Identifier: Apache-2.0
// MODEL and the flags of a compilation: which go with which kind, what they are in a command that
// is printed, and how tokens are chosen.
#include <gmock/gmock.h>

#include "tests/unit/cli/printed.h"
#include "tests/unit/test_files.h"
#include "tools/lathe/model.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/sampling_flags.h"
#include "tools/lathe/trial_flags.h"

namespace lathe::cli {
namespace {

using test::expectError;
using test::TemporaryFolder;
using ::testing::ElementsAre;

TEST(ModelFlags, WordsOfAShell) {
  for (auto [text, word] : {std::pair("a", "a"),
                            {"a/b-c_d.e:f,g=h@i%j+k^l", "a/b-c_d.e:f,g=h@i%j+k^l"},
                            {"", "''"},
                            {"a b", "'a b'"},
                            {"it's", "'it'\\''s'"}})
    EXPECT_EQ(shellWord(text), word);
  for (char c : std::string(" \t\n\"\\`$&|;<>(){}*?[]!#~"))
    EXPECT_EQ(shellWord(std::string("a") + c), "'a" + std::string(1, c) + "'");
}

TEST(ModelFlags, AllFlagsOfACompilationInTheirOrder) {
  CompileFlags flags;
  EXPECT_EQ(flagsText(flags), "");
  flags.compile.pipeline.mesh = {.ranks = 1, .stages = 1};
  EXPECT_EQ(flagsText(flags), "");
  flags.compile.backend = "cuda";
  flags.dtype = DType::BF16;
  flags.loras = {"l 1", "l2"};
  flags.constantSpecs = {"k=i64=1"};
  flags.mode = "fast";
  flags.weightFormats = "int8";
  flags.family.layers = 2;
  flags.family.cacheBlock = 16;
  flags.compile.pipeline.mesh = {.ranks = 6, .stages = 3};
  flags.compile.pipeline.patternFiles = {"p1", "p2"};
  flags.compile.pipeline.plugins = {"q"};
  flags.compile.pipeline.passes = "cse,dce";
  flags.compile.backendPlugins = {"b"};
  flags.compile.skipAttempt = 0;
  EXPECT_EQ(flagsText(flags),
            " --backend cuda --dtype bf16 --lora 'l 1' --lora l2 --constant k=i64=1 --mode fast"
            " --weight-format int8 --layers 2 --cache-block 16 --ranks 6 --stages 3 --patterns p1"
            " --patterns p2 --load-pass-plugin q --passes cse,dce --load-backend-plugin b"
            " --skip-attempt 0");
}

TEST(ModelFlags, AllFlagsOfATrialInTheirOrder) {
  TrialFlags flags;
  EXPECT_EQ(flagsText(flags), "");
  flags = {.sizes = {"a=1", "b=2"},
           .inputs = {"x=2xf32=1", "y=@a b.npy"},
           .weights = "w",
           .precision = "own",
           .entry = "e",
           .device = "host",
           .seed = 4,
           .tolerance = 0.125};
  EXPECT_EQ(flagsText(flags),
            " --set a=1 --set b=2 --input x=2xf32=1 --input 'y=@a b.npy' --weights w --seed 4"
            " --precision own --tolerance 0.125 --entry e --device host");
  EXPECT_EQ(sizesText({}), "no sizes to choose");
  EXPECT_EQ(sizesText({{"a", 1}, {"b", 20}}), "a = 1, b = 20");
  EXPECT_EQ(deviationJson({.absolute = 1,
                           .relative = HUGE_VAL,
                           .share = 3,
                           .ulps = 4,
                           .identical = false,
                           .within = false,
                           .beyond = 7,
                           .where = "w"})
                .dump(),
            R"({"absolute":1.0,"relative":"Infinity","ulps":4.0,"identical":false,)"
            R"("within_contract":false,"where":"w"})");
}

TEST(ModelFlags, TheFlagCountsBeforeTheEnvironment) {
  CompileFlags flags;
  unsetenv("LATHE_BACKEND");
  EXPECT_EQ(backendOf(flags), "cpu");
  setenv("LATHE_BACKEND", "", 1);
  EXPECT_EQ(backendOf(flags), "cpu");
  setenv("LATHE_BACKEND", "reference", 1);
  EXPECT_EQ(backendOf(flags), "reference");
  flags.compile.backend = "cuda";
  EXPECT_EQ(backendOf(flags), "cuda");
  unsetenv("LATHE_BACKEND");
}

TEST(ModelFlags, KindsByTheirEnding) {
  TemporaryFolder folder;
  for (auto [name, kind] : {std::pair("a.mlir", "mlir"), {"a.onnx", "onnx"}, {"a.json", "config"}})
    EXPECT_EQ(nameOf(openModel(folder.write(name, "{}")).kind), kind);
  folder.write("config.json", "{}");
  EXPECT_EQ(nameOf(openModel(folder.path()).kind), "folder");
  EXPECT_EQ(nameOf(ModelKind::Gguf), "gguf");
  EXPECT_EQ(nameOf(ModelKind::Artifact), "program");
  EXPECT_TRUE(lacksWeights(openModel(folder.path())));
  EXPECT_FALSE(hasOwnWeights(openModel(folder.path())));
  EXPECT_TRUE(lacksWeights(openModel(folder / "config.json")));
  EXPECT_FALSE(lacksWeights(openModel(folder / "a.mlir")));
  EXPECT_FALSE(hasOwnWeights(openModel(folder / "a.mlir")));
  EXPECT_TRUE(hasOwnWeights(openModel(folder / "a.onnx")));
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    folder.write(name, "");
    EXPECT_TRUE(hasOwnWeights(openModel(folder.path()))) << name;
    EXPECT_FALSE(lacksWeights(openModel(folder.path()))) << name;
    std::filesystem::remove(folder / name);
  }
  expectError(
      ErrorCode::InvalidArgument,
      "--lora: " + (folder / "a.mlir") + " has no weights that an adapter could be merged into",
      [&] { openModel(folder / "a.mlir", {"lora"}); });
  expectError(ErrorCode::InvalidArgument,
              "--lora: ", [&] { openModel(folder / "config.json", {"lora"}); });
}

Model modelOf(ModelKind kind) {
  Model model;
  model.path = "M";
  model.kind = kind;
  return model;
}
std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument) << e.what();
    return e.what();
  }
  return "";
}

TEST(ModelFlags, FlagsGoWithKindsOfModels) {
  using Set = void (*)(CompileFlags&);
  const Set dtype = [](CompileFlags& f) { f.dtype = DType::F32; },
            maxSeq = [](CompileFlags& f) { f.family.maxSeq = 3; },
            layers = [](CompileFlags& f) { f.family.layers = 3; },
            block = [](CompileFlags& f) { f.family.cacheBlock = 3; },
            constant = [](CompileFlags& f) { f.constantSpecs = {"k=i64=1"}; },
            random = [](CompileFlags& f) { f.randomWeights = true; },
            target = [](CompileFlags& f) { f.compile.backendOptions.target = "sm_90a"; },
            nothing = [](CompileFlags&) {};
  struct Case {
    ModelKind kind;
    Set set;
    const char* refusal;
  };
  using enum ModelKind;
  const char* const ofOnnx = "--constant: M is not an ONNX file";
  const char* const ofCuda = "--target is of the cuda backend, got backend cpu; add --backend cuda";
  for (const Case& c :
       {Case{Mlir, dtype, "--dtype: M is IR text, whose dtypes are written in it"},
        {Mlir, maxSeq, "--max-seq: M is IR text, whose ranges are written in it"},
        {Mlir, layers, "--layers: M is IR text, whose layers are written in it"},
        {Mlir, block, "--cache-block: M is IR text, whose caches are written in it"},
        {Mlir, constant, ofOnnx},
        {Mlir, target, ofCuda},
        {Mlir, nothing, ""},
        {Onnx, dtype, "--dtype: M is an ONNX file, whose dtypes are written in it"},
        {Onnx, maxSeq, ""},
        {Onnx, layers, "--layers: M is an ONNX file, whose layers are written in it"},
        {Onnx, block,
         "--cache-block: M is an ONNX file, whose inputs and outputs are written in it"},
        {Onnx, constant, ""},
        {Folder, dtype, ""},
        {Folder, maxSeq, ""},
        {Folder, layers, ""},
        {Folder, block, ""},
        {Folder, constant, ofOnnx},
        {Gguf, constant, ofOnnx},
        {BareConfig, nothing, "--random-weights: M is a bare config.json: the flag is needed"},
        {BareConfig, random, ""}}) {
    CompileFlags flags;
    c.set(flags);
    EXPECT_EQ(refusal([&] { requestFor(modelOf(c.kind), flags); }), c.refusal);
  }
}

TEST(ModelFlags, ARequestSaysWhoseWeightsAreMadeUp) {
  CompileFlags flags;
  for (auto kind : {ModelKind::Folder, ModelKind::Gguf, ModelKind::Mlir, ModelKind::Onnx})
    EXPECT_FALSE(requestFor(modelOf(kind), flags).bareConfig);
  flags.randomWeights = true;
  EXPECT_TRUE(requestFor(modelOf(ModelKind::Folder), flags).bareConfig);
  EXPECT_TRUE(requestFor(modelOf(ModelKind::Gguf), flags).bareConfig);
  EXPECT_TRUE(requestFor(modelOf(ModelKind::BareConfig), flags).bareConfig);
  EXPECT_FALSE(requestFor(modelOf(ModelKind::Mlir), flags).bareConfig);
  EXPECT_FALSE(requestFor(modelOf(ModelKind::Onnx), flags).bareConfig);
  EXPECT_EQ(requestFor(modelOf(ModelKind::Mlir), flags).path, "M");
}

TEST(ModelFlags, AProgramIsAsItIs) {
  Model model = modelOf(ModelKind::Artifact);
  auto program = std::make_shared<Program>();
  program->backend = "cpu";
  program->ranks = 2;
  program->laterStages = {std::make_shared<Program>()};
  model.program = program;
  struct Case {
    void (*set)(CompileFlags&);
    const char* refusal;
  };
  const char* const compiled = " is a compiled program; give the model that it was compiled from";
  const std::string anew = ": M is a compiled program; compile it anew";
  for (const auto& [set, why] : std::vector<std::pair<void (*)(CompileFlags&), std::string>>{
           {[](CompileFlags&) {}, ""},
           {[](CompileFlags& f) { f.compile.backend = "cpu"; }, ""},
           {[](CompileFlags& f) { f.compile.backend = "cuda"; },
            "--backend: M is a program compiled for cpu"},
           {[](CompileFlags& f) { f.dtype = DType::F32; }, "--dtype" + anew},
           {[](CompileFlags& f) { f.compile.saveIrDir = "d"; },
            "--save-ir: M is a compiled program without IR"},
           {[](CompileFlags& f) { f.mode = "fast"; }, std::string("--mode: M") + compiled},
           {[](CompileFlags& f) { f.constantSpecs = {"a"}; },
            std::string("--constant: M") + compiled},
           {[](CompileFlags& f) { f.weightFormats = "int8"; },
            std::string("--weight-format: M") + compiled},
           {[](CompileFlags& f) { f.compile.pipeline.patternFiles = {"p"}; },
            std::string("--patterns: M") + compiled},
           {[](CompileFlags& f) { f.compile.pipeline.plugins = {"p"}; },
            std::string("--load-pass-plugin: M") + compiled},
           {[](CompileFlags& f) { f.compile.pipeline.passes = "cse"; },
            std::string("--passes: M") + compiled},
           {[](CompileFlags& f) { f.compile.backendOptions.target = "sm_90a"; },
            std::string("--target: M") + compiled},
           {[](CompileFlags& f) { f.family.cacheBlock = 1; },
            std::string("--cache-block: M") + compiled},
           {[](CompileFlags& f) { f.compile.pipeline.mesh = {.ranks = 4, .stages = 2}; }, ""},
           {[](CompileFlags& f) { f.compile.pipeline.mesh.ranks = 1; }, ""},
           {[](CompileFlags& f) { f.compile.pipeline.mesh.ranks = 2; },
            "--ranks: M is a program compiled for 4"},
           {[](CompileFlags& f) { f.compile.pipeline.mesh = {.ranks = 4, .stages = 4}; },
            "--stages: M is a program compiled for 2"},
           {[](CompileFlags& f) { f.compile.stopAfterRewrite = 0; }, "--stop-after-rewrite" + anew},
           {[](CompileFlags& f) { f.compile.skipAttempt = 0; }, "--skip-attempt" + anew}}) {
    CompileFlags flags;
    set(flags);
    EXPECT_EQ(refusal([&] { EXPECT_EQ(programOf(model, flags), program); }), why);
  }
  EXPECT_EQ(refusal([&] { requireGraph(model); }),
            "M is a compiled program without IR; give the model that it was compiled from");
  EXPECT_EQ(refusal([&] { requireGraph(model, "--x"); }),
            "--x: M is a compiled program without IR; give the model that it was compiled from");
  EXPECT_EQ(refusal([&] { irOf(model, {}, "fused"); }).substr(0, 14), "--stop-after: ");
}

TEST(ModelFlags, WhatAProgramComputesIn) {
  Program p;
  EXPECT_FALSE(arithmeticOf(p));
  p.states = {{"ids", DType::I64, {1}}, {"k", DType::BF16, {1}}, {"v", DType::F32, {1}}};
  EXPECT_EQ(arithmeticOf(p), DType::BF16);
  auto later = std::make_shared<Program>(std::move(p));
  Program first;
  first.laterStages = {std::make_shared<Program>(), later};
  EXPECT_EQ(arithmeticOf(first), DType::BF16);
  auto withCall = [](const char* kind, const char* config) {
    Program p;
    EntryPoint e;
    e.calls = {{"copy", "", "{}", {}, {}, ""}, {kind, "", config, {}, {}, ""}};
    p.entries = {EntryPoint(), e};
    return multipliesBytes(p);
  };
  EXPECT_TRUE(withCall("quantized_linear", R"({"quantizes_x": true})"));
  EXPECT_TRUE(withCall("grouped_quantized_linear", R"({"quantizes_x": true})"));
  EXPECT_FALSE(withCall("quantized_linear", R"({"quantizes_x": false})"));
  EXPECT_FALSE(withCall("quantized_linear", "{}"));
  EXPECT_FALSE(withCall("linear", R"({"quantizes_x": true})"));
}

// Of 400 million parameters in its layers on, a model is asked about by two of them.
TEST(ModelFlags, LargeModelsAreAskedAboutByTwoLayers) {
  Model model = modelOf(ModelKind::Folder);
  auto config = [&](int layers, int inner) {
    model.files["config.json"] =
        R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 9, "hidden_size": 1000,
        "num_attention_heads": 10, "num_key_value_heads": 10, "num_hidden_layers": )" +
        std::to_string(layers) + R"(, "intermediate_size": )" + std::to_string(inner) + "}";
    testing::internal::CaptureStderr();
    const int64_t asked = withLayersOnce(model, {}).family.layers;
    return std::pair(asked, testing::internal::GetCapturedStderr());
  };
  // 10 layers of 1000 * (3 * 12000 + 2 * 20 * 100) = 40 million parameters.
  EXPECT_EQ(config(10, 12000).first, 2);
  EXPECT_EQ(config(10, 11999).first, 0);
  EXPECT_EQ(config(4, 40000),
            std::pair(int64_t(2),
                      std::string("note: M: the first 2 of 4 layers; --layers 4 runs all\n")));
  EXPECT_EQ(config(2, 400000), std::pair(int64_t(0), std::string())) << "it has no more";
  CompileFlags own;
  own.family.layers = 3;
  config(4, 40000);
  EXPECT_EQ(withLayersOnce(model, own).family.layers, 3);
}

// --- how tokens are chosen

TEST(SamplingFlags, ConfigsCountWhereTheyAskToSample) {
  GenerationConfig config;
  config.temperature = 0.7;
  config.topK = 5;
  config.topP = 0.9;
  config.minP = 0.1;
  config.repetitionPenalty = 1.2;
  config.excludedIds = {3, 4};
  SamplingOptions o = samplingOf({}, config);
  EXPECT_EQ(o.temperature, 0);
  EXPECT_EQ(o.topK, 0);
  EXPECT_EQ(o.topP, 1);
  EXPECT_EQ(o.minP, 0);
  EXPECT_EQ(o.repetitionPenalty, 1.2) << "it is of greedy texts, too";
  EXPECT_THAT(o.excluded, ElementsAre(3, 4));
  EXPECT_EQ(o.seed, 0u);
  config.doSample = false;
  EXPECT_EQ(samplingOf({}, config).temperature, 0);
  config.doSample = true;
  o = samplingOf({}, config);
  EXPECT_EQ(o.temperature, 0.7);
  EXPECT_EQ(o.topK, 5);
  EXPECT_EQ(o.topP, 0.9);
  EXPECT_EQ(o.minP, 0.1);
  GenerationConfig sampled;
  sampled.doSample = true;
  o = samplingOf({}, sampled);
  EXPECT_EQ(o.temperature, 1);
  EXPECT_EQ(o.topK, 0);
  EXPECT_EQ(o.topP, 1);
  EXPECT_EQ(o.minP, 0);
  EXPECT_EQ(o.repetitionPenalty, 1);
  o = samplingOf({.topK = 7,
                  .temperature = 0.2,
                  .topP = 0.3,
                  .minP = 0.4,
                  .repetitionPenalty = 1.5,
                  .presencePenalty = 0.6,
                  .frequencyPenalty = 0.8,
                  .seed = 9},
                 config);
  EXPECT_EQ(o.temperature, 0.2);
  EXPECT_EQ(o.topK, 7);
  EXPECT_EQ(o.topP, 0.3);
  EXPECT_EQ(o.minP, 0.4);
  EXPECT_EQ(o.repetitionPenalty, 1.5);
  EXPECT_EQ(o.presencePenalty, 0.6);
  EXPECT_EQ(o.frequencyPenalty, 0.8);
  EXPECT_EQ(o.seed, 9u);
}

TEST(TokenWriter, TextsOrIdsWithCommas) {
  auto written = [](bool hasTokenizer, bool prints) {
    return test::printed([&] {
      TokenWriter writer(hasTokenizer, prints);
      writer.push(5, "a");
      writer.push({}, "b");
      writer.push(7, "");
      writer.finish();
    });
  };
  EXPECT_EQ(written(true, true), "ab\n");
  EXPECT_EQ(written(false, true), "5,7\n");
  EXPECT_EQ(written(true, false), "");
}

TEST(PromptFlags, WhatIsAPrompt) {
  EXPECT_FALSE(PromptFlags{}.isGiven());
  EXPECT_TRUE((PromptFlags{.hasText = true}).isGiven());
  EXPECT_TRUE((PromptFlags{.file = "f"}).isGiven());
  EXPECT_TRUE((PromptFlags{.ids = "1"}).isGiven());
  EXPECT_TRUE((PromptFlags{.messages = "m"}).isGiven());
  EXPECT_FALSE((PromptFlags{.chat = true, .system = "s"}).isGiven());
  EXPECT_TRUE((PromptFlags{.system = "s"}).isChat());
  EXPECT_TRUE((PromptFlags{.messages = "m"}).isChat());
  EXPECT_FALSE((PromptFlags{.hasText = true}).isChat());
}

}  // namespace
}  // namespace lathe::cli
