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

// Whether the first word gets a space in front: as the scheme says, or the flag of older files.
TEST(Metaspace, WordsHaveTheSpaceThatIsAskedFor) {
  auto split = [](const std::string& keys, bool first) {
    const PreTokenizer splitter(JsonValue::parse(
        R"({"type": "Metaspace", "replacement": "_")" + keys + "}", "tokenizer.json"));
    const std::string text = "a b";
    TextBudget budget(text.size() + 8);
    return splitter.split(text, first, budget);
  };
  using Words = std::vector<std::string>;
  const Words with{"_a", "_b"}, without{"a", "_b"};
  for (bool first : {true, false}) {
    EXPECT_EQ(split("", first), with);
    EXPECT_EQ(split(R"(, "prepend_scheme": "always")", first), with);
    EXPECT_EQ(split(R"(, "prepend_scheme": "first")", first), first ? with : without);
    EXPECT_EQ(split(R"(, "prepend_scheme": "never")", first), without);
    EXPECT_EQ(split(R"(, "add_prefix_space": true)", first), with);
    EXPECT_EQ(split(R"(, "add_prefix_space": false)", first), without);
    EXPECT_EQ(split(R"(, "add_prefix_space": false, "prepend_scheme": "never")", first), without);
    EXPECT_EQ(split(R"(, "split": false)", first), Words{"_a_b"});
  }
}

}  // namespace
}  // namespace lathe
