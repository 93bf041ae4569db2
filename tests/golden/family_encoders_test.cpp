// SPDX-License-Identifier: Apache-2.0
// Small random models of the families without a cache (scripts/make_family_goldens.py) against the
// results of transformers: every output of every entry point.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"
#include "tests/depth.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

class FamilyEncoders : public ::testing::TestWithParam<FamilyParameter> {};

TEST_P(FamilyEncoders, ResultsEqualThoseOfTransformers) {
  const auto& [architecture, backend] = GetParam();
  const SafetensorsFile file =
      SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + architecture + ".safetensors");
  const JsonValue cases = JsonValue::parse(file.metadata().at("cases"), architecture);
  ASSERT_GE(cases.size(), 20u);
  for (size_t i : configsToRun(cases.size(), backend)) {
    const JsonValue config = cases.at(i).at("config");
    SCOPED_TRACE("case " + std::to_string(i) + ": " + config.show());
    auto program =
        std::make_shared<const Program>(compile(buildFromConfig(config), {.backend = backend}));
    Session session(program, {.device = "host"});
    session.bindWeights(goldenWeights(*program, cases.at(i).at("seed").asUint()));
    auto array = [&](const std::string& name) {
      return file.array(std::to_string(i) + "." + name);
    };
    // The whole model gives all that transformers' gives; means over a text are an entry point of
    // their own.
    std::set<std::string> known, used;
    const std::string prefix = std::to_string(i) + ".";
    for (const SafetensorsEntry& tensor : file.tensors())
      if (tensor.name.starts_with(prefix)) known.insert(tensor.name.substr(prefix.size()));
    known.erase("embeddings");
    const EntryPoint& whole = program->entry("forward");
    for (const auto& ports : {whole.inputs, whole.outputs})
      for (const Port& port : ports) used.insert(port.name);
    EXPECT_EQ(used, known);
    for (const EntryPoint& entry : program->entries) {
      Arrays inputs;
      for (const Port& port : entry.inputs) inputs.emplace(port.name, array(port.name));
      for (const auto& [name, got] : session.run(entry.name, inputs)) {
        const Array truth = array(name);
        EXPECT_LE(largestError(got, truth), kFamilyTolerance * rangeOf(truth)) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Transformers, FamilyEncoders,
    ::testing::ValuesIn(familiesOnBackends({ModelTask::Embed, ModelTask::Other})), nameOfCase);

}  // namespace
}  // namespace lathe
