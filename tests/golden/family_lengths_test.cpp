// SPDX-License-Identifier: Apache-2.0
// Every family takes inputs as large as it says: its longest text, pictures and sounds in each
// entry point give finite numbers, and of a cache the last place can be written and read.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/depth.h"
#include "tests/golden/family_weights.h"

namespace lathe {
namespace {

class FamilyLengths : public ::testing::TestWithParam<std::string> {};

// All sizes at their largest, but for the number of texts, and of families that could go on for
// ever.
SymbolValues largestOf(const Program& program) {
  SymbolValues values;
  for (const SymbolInfo& symbol : program.symbols)
    values[symbol.name] = symbol.name == "batch" ? 1 : std::min<int64_t>(symbol.hi, 512);
  return values;
}

// Of a cache: that of the last token that fits.
Array inputOf(const EntryPoint& entry, const Port& port, const SymbolValues& sizes) {
  const Slot& slot = entry.slots[size_t(port.slot)];
  Shape shape;
  for (const DimExpr& size : slot.shape) shape.push_back(size.evaluate(sizes).value());
  Array a(slot.dtype, shape);
  const bool decodes = entry.name == "decode" && port.name == "positions";
  for (int64_t i = 0; i < a.size(); ++i)
    a.set(i, decodes                            ? double(sizes.at("cache") - 1)
             : port.name == "positions"         ? 0
             : port.name.ends_with("mask")      ? 1
             : isFloat(slot.dtype)              ? std::sin(double(i))
             : port.name.ends_with("input_ids") ? double(4 + i % 3)
                                                : 0);
  return a;
}

TEST_P(FamilyLengths, TheLongestInputsAreTaken) {
  const SafetensorsFile file =
      SafetensorsFile::open(LATHE_TEST_DATA "/golden/families/" + GetParam() + ".safetensors");
  const JsonValue cases = JsonValue::parse(file.metadata().at("cases"), GetParam());
  for (size_t i : test::spread(cases.size(), 1)) {
    const JsonValue config = cases.at(i).at("config");
    SCOPED_TRACE("case " + std::to_string(i) + ": " + config.show());
    auto program =
        std::make_shared<const Program>(compile(buildFromConfig(config), {.backend = "reference"}));
    const SymbolValues sizes = largestOf(*program);
    Session session(program);
    session.bindWeights(goldenWeights(*program, 1));
    std::set<std::string> ofStates;
    for (const TensorInfo& state : program->states)
      for (const DimExpr& size : state.shape)
        for (const std::string& name : size.symbols()) ofStates.insert(name);
    for (const std::string& name : ofStates)
      if (name != "batch") session.setSymbol(name, sizes.at(name));
    for (const EntryPoint& entry : program->entries) {
      SCOPED_TRACE(entry.name);
      Arrays inputs;
      for (const Port& port : entry.inputs) inputs.emplace(port.name, inputOf(entry, port, sizes));
      for (const auto& [name, y] : session.run(entry.name, inputs)) {
        ASSERT_GT(y.size(), 0);
        for (int64_t at = 0; at < y.size(); ++at)
          ASSERT_TRUE(std::isfinite(y.at(at))) << name << " " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, FamilyLengths, ::testing::ValuesIn(architectures()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe
