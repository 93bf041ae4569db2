// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/call_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe {
namespace {

JsonValue json(const std::string& text) { return JsonValue::parse(text, "call config"); }

template <class Config>
std::string failure(const std::string& text) {
  try {
    readConfig<Config>(json(text));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidFile);
    return e.what();
  }
  return "none";
}

TEST(CallConfig, ReadsEveryKindOfField) {
  const auto a = readConfig<AttentionConfig>(
      json(R"({"causal": "bottom_right", "mask": true, "masked_row": "uniform", "scale": 0.125,
               "softcap": 2, "window": 5, "views": [["0", "2", "s", "8", "8*s", "8", "1"]]})"));
  EXPECT_EQ(a.causal, Causal::bottom_right);
  EXPECT_TRUE(a.mask);
  EXPECT_EQ(a.maskedRow, MaskedRow::uniform);
  EXPECT_EQ(a.scale, 0.125);
  EXPECT_EQ(a.softcap, 2);
  EXPECT_EQ(a.window, 5);
  ASSERT_EQ(a.views.size(), 1u);
  EXPECT_EQ(a.views[0][2], DimExpr::symbol("s"));
  EXPECT_EQ(a.views[0][4], DimExpr(8) * DimExpr::symbol("s"));

  const auto c =
      readConfig<ConvolutionConfig>(json(R"({"strides": [2, 3], "padding": [0, 1, 2, 3]})"));
  EXPECT_EQ(c.strides, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(c.padding, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(CallConfig, OptionalFieldsMayBeMissing) {
  const auto without = readConfig<UpdateConfig>(json(R"({"axis": 2, "reuse": 0})"));
  EXPECT_EQ(without.axis, 2);
  EXPECT_FALSE(without.view.has_value());
  EXPECT_FALSE(without.check.has_value());
  const auto with =
      readConfig<UpdateConfig>(json(R"({"axis": 1, "view": ["4", "n", "1"], "check": 3})"));
  EXPECT_EQ(with.view, (ViewTerms{4, DimExpr::symbol("n"), 1}));
  EXPECT_EQ(with.check, 3);
}

TEST(CallConfig, RefusesWhatIsMissingOrOfAnotherKind) {
  using testing::HasSubstr;
  EXPECT_THAT(failure<LinearConfig>(R"({"activation": "silu", "bias": true})"),
              HasSubstr("residual"));
  EXPECT_THAT(
      failure<LinearConfig>(R"({"activation": "swish", "bias": true, "residual": false})"),
      HasSubstr("activation: expected one of none, silu, gelu, gelu_tanh, relu, got \"swish\""));
  EXPECT_THAT(failure<MatmulConfig>(R"({"transpose_b": 1})"), HasSubstr("transpose_b"));
  EXPECT_THAT(failure<TopKConfig>(R"({"k": 1.5})"), HasSubstr("k"));
  EXPECT_THAT(failure<UpdateConfig>(R"({"axis": 1, "view": ["1", "2"]})"),
              HasSubstr("view: expected an offset, sizes and as many strides in a view, got 2"));
  EXPECT_THAT(failure<UpdateConfig>(R"({"axis": 1, "view": ["1", "2*", "3"]})"),
              HasSubstr("view[1]: expected a size of a view, got \"2*\""));
}

template <class Enum>
void expectKeywords() {
  const auto& names = Keywords<Enum>::names;
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(nameOf(Enum(i)), names[i]);
    EXPECT_EQ(parseKeyword<Enum>(names[i]), Enum(i));
  }
  EXPECT_EQ(nameOf(Enum(names.size())), "?");
  EXPECT_EQ(parseKeyword<Enum>("?"), std::nullopt);
  EXPECT_EQ(parseKeyword<Enum>(""), std::nullopt);
}

TEST(Keywords, NamesAndValuesAreOneToOne) {
#define LATHE_EXPECT(Enum) expectKeywords<Enum>();
  LATHE_KEYWORD_ENUMS(LATHE_EXPECT)
#undef LATHE_EXPECT
}

}  // namespace
}  // namespace lathe
