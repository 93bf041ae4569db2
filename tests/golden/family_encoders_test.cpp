// SPDX-License-Identifier: Apache-2.0
// Small random models of the families without a cache (scripts/make_family_goldens.py) against the
// results of transformers: every output of every entry point.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

constexpr double kTolerance = 1e-4;
// Host execution compiles each kernel with a compiler of C++.
constexpr size_t kCasesOnCuda = 3;

struct Parameter {
  std::string architecture, backend;
};
void PrintTo(const Parameter& p, std::ostream* os) { *os << p.architecture << ", " << p.backend; }

class FamilyEncoders : public ::testing::TestWithParam<Parameter> {};

double rangeOf(const Array& a) {
  double low = a.at(0), high = a.at(0);
  for (int64_t i = 0; i < a.size(); ++i) {
    low = std::min(low, a.at(i));
    high = std::max(high, a.at(i));
  }
  return high - low;
}

TEST_P(FamilyEncoders, ResultsEqualThoseOfTransformers) {
  const auto& [architecture, backend] = GetParam();
  const SafetensorsFile file =
      SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + architecture + ".safetensors");
  const JsonValue cases = JsonValue::parse(file.metadata().at("cases"), architecture);
  ASSERT_GE(cases.size(), 20u);
  const size_t count = backend == "cuda" ? std::min(kCasesOnCuda, cases.size()) : cases.size();
  for (size_t i = 0; i < count; ++i) {
    const JsonValue config = cases.at(i).at("config");
    SCOPED_TRACE("case " + std::to_string(i) + ": " + config.show());
    auto program =
        std::make_shared<const Program>(compile(buildFromConfig(config), {.backend = backend}));
    Session session(program, {.device = "host"});
    session.bindWeights(goldenWeights(*program, cases.at(i).at("seed").asUint()));
    auto array = [&](const std::string& name) {
      return file.array(std::to_string(i) + "." + name);
    };
    for (const EntryPoint& entry : program->entries) {
      Arrays inputs;
      for (const Port& port : entry.inputs) inputs.emplace(port.name, array(port.name));
      for (const auto& [name, got] : session.run(entry.name, inputs)) {
        const Array truth = array(name);
        EXPECT_LE(largestError(got, truth), kTolerance * rangeOf(truth)) << name;
      }
    }
  }
}

std::vector<Parameter> everyFamily() {
  std::vector<Parameter> all;
  for (const Family& family : families())
    if (family.task != ModelTask::Generate)
      for (const char* backend : {"reference", "cpu", "cuda"})
        all.push_back({family.architecture, backend});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Transformers, FamilyEncoders, ::testing::ValuesIn(everyFamily()),
                         [](const auto& info) {
                           return info.param.architecture + "_" + info.param.backend;
                         });

}  // namespace
}  // namespace lathe
