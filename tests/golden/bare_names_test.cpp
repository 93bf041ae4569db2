// SPDX-License-Identifier: Apache-2.0
// Checkpoints of the bare model, whose names lack the prefix of its head's (transformers'
// base_model_prefix), give the logits of the whole one.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lathe/frontend/families/pretrained.h"
#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"
#include "tests/golden/family_weights.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

constexpr std::string_view kPrefixes[] = {"model.", "transformer.", "gpt_neox."};

std::string bareName(const std::string& name) {
  for (std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

// "BartForConditionalGeneration" -> "BartModel"
std::string bareArchitecture(std::string name) {
  for (std::string_view head :
       {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel"})
    if (name.ends_with(head)) return name.substr(0, name.size() - head.size()) + "Model";
  return name;
}

class BareNames : public ::testing::TestWithParam<std::string> {};

TEST_P(BareNames, GiveTheLogitsOfTheWholeModel) {
  const SafetensorsFile file =
      SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + GetParam() + ".safetensors");
  const auto golden = nlohmann::json::parse(file.metadata().at("cases"))[0];
  nlohmann::json config = golden["config"];
  const Program whole = compile(buildFromConfig(JsonValue::parse(config.dump(), GetParam())),
                                {.backend = "reference"});
  std::map<std::string, Array> weights;
  std::set<std::string> renamed;
  for (const auto& [name, value] : goldenWeights(whole, golden["seed"].get<uint64_t>())) {
    if (bareName(name) != name) renamed.insert(name);
    weights.emplace(bareName(name), value);
  }
  // T5's model with a head has no prefix.
  EXPECT_EQ(renamed.empty(), GetParam().find("T5") != std::string::npos);
  test::TemporaryFolder folder;
  config["architectures"] = {bareArchitecture(GetParam())};
  folder.write("config.json", config.dump());
  saveSafetensors(folder / "model.safetensors", weights);

  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  Session session(compile(buildPretrained(folder.path(), checkpoint), {.backend = "reference"}));
  session.bindWeights(checkpoint);
  Arrays inputs;
  for (const Port& port : session.program().entry("forward").inputs)
    inputs.emplace(port.name, file.array("0." + port.name));
  const Array truth = file.array("0.logits");
  EXPECT_LE(largestError(session.run("forward", inputs).at("logits"), truth),
            kFamilyTolerance * rangeOf(truth));
}

std::vector<std::string> generators() {
  std::vector<std::string> names;
  for (const Family& family : families())
    if (family.task == ModelTask::Generate || family.task == ModelTask::Rewrite)
      names.push_back(family.architecture);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Families, BareNames, ::testing::ValuesIn(generators()),
                         [](const auto& info) { return info.param; });

// Without its own head a model whose table is none says which weight is missing.
TEST(BareModels, NameTheHeadThatIsMissing) {
  test::TemporaryFolder folder;
  const SafetensorsFile file =
      SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/GPTNeoXForCausalLM.safetensors");
  nlohmann::json config = nlohmann::json::parse(file.metadata().at("cases"))[0]["config"];
  config["tie_word_embeddings"] = false;
  const Program whole =
      compile(buildFromConfig(JsonValue::parse(config.dump(), "config")), {.backend = "reference"});
  std::map<std::string, Array> weights;
  for (const auto& [name, value] : goldenWeights(whole, 1))
    if (bareName(name) != name) weights.emplace(bareName(name), value);
  config["architectures"] = {"GPTNeoXModel"};
  folder.write("config.json", config.dump());
  saveSafetensors(folder / "model.safetensors", weights);
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  Session session(compile(buildPretrained(folder.path(), checkpoint), {.backend = "reference"}));
  test::expectError(ErrorCode::InvalidArgument, "missing: embed_out.weight",
                    [&] { session.bindWeights(checkpoint); });
}

}  // namespace
}  // namespace lathe
