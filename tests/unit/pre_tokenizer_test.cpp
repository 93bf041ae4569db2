// SPDX-License-Identifier: Apache-2.0
// What a Split does with its matches, several in a row among them: the example of the documentation
// of Hugging Face's tokenizers.
#include "runtime/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lathe/runtime/json_reader.h"

namespace lathe {
namespace {

struct Parameter {
  const char* behavior;
  std::vector<std::string> words;
};
void PrintTo(const Parameter& p, std::ostream* out) { *out << p.behavior; }

class SplitBehavior : public ::testing::TestWithParam<Parameter> {};

TEST_P(SplitBehavior, OfMatchesInARow) {
  for (const char* pattern : {R"({"String": "-"})", R"({"Regex": "-"})"}) {
    const std::string json = std::string(R"({"type": "Split", "behavior": ")") +
                             GetParam().behavior + R"(", "pattern": )" + pattern + "}";
    const PreTokenizer splitter(JsonValue::parse(json, "tokenizer.json"));
    const std::string text = "the-final--countdown";
    TextBudget budget(text.size());
    EXPECT_EQ(splitter.split(text, true, budget), GetParam().words) << pattern;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Documented, SplitBehavior,
    ::testing::Values(Parameter{"Removed", {"the", "final", "countdown"}},
                      Parameter{"Isolated", {"the", "-", "final", "-", "-", "countdown"}},
                      Parameter{"MergedWithPrevious", {"the-", "final-", "-", "countdown"}},
                      Parameter{"MergedWithNext", {"the", "-final", "-", "-countdown"}},
                      Parameter{"Contiguous", {"the", "-", "final", "--", "countdown"}}),
    [](const auto& info) { return std::string(info.param.behavior); });

}  // namespace
}  // namespace lathe
