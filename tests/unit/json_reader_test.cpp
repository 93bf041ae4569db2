// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"

#include <gtest/gtest.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
using test::messageOf;

constexpr ErrorCode kFile = ErrorCode::InvalidFile;

JsonValue parse(std::string_view text) { return JsonValue::parse(text, "f.json"); }

TEST(JsonReader, ReadsEveryKind) {
  JsonValue v = parse(R"({"b": true, "i": -3, "u": 18446744073709551615, "d": 1.5, "s": "x",
                          "n": null, "a": [1, [2]]})");
  EXPECT_TRUE(v.at("b").asBool());
  EXPECT_EQ(v.at("i").asInt(), -3);
  EXPECT_EQ(v.at("u").asUint(), ~uint64_t(0));
  EXPECT_EQ(v.at("d").asDouble(), 1.5);
  EXPECT_EQ(v.at("i").asDouble(), -3);
  EXPECT_EQ(v.at("s").asString(), "x");
  EXPECT_TRUE(v.at("n").isNull());
  EXPECT_EQ(v.at("a").at(1).at(0).asInt(), 2);
  EXPECT_EQ(v.at("a").at(1).at(0).path(), "a[1][0]");
  EXPECT_TRUE(v.has("n"));
  EXPECT_FALSE(v.find("n"));
  EXPECT_FALSE(v.find("none"));
  EXPECT_EQ(v.member(1).first, "i");
}

TEST(JsonReader, NamesPlaceExpectedAndFound) {
  JsonValue v = parse(R"({"a": [{"b": "text"}], "big": 9223372036854775808, "f": 2.0})");
  JsonValue b = v.at("a").at(0).at("b");
  expectError(kFile, "f.json: a[0].b: expected an integer, got \"text\"", [&] { b.asInt(); });
  expectError(kFile, "f.json: a[0].b: expected a number, got \"text\"", [&] { b.asDouble(); });
  expectError(kFile, "a[0].b: expected true or false", [&] { b.asBool(); });
  expectError(kFile, "a[0].b: expected an array or an object", [&] { b.size(); });
  expectError(kFile, "a: expected a string, got an array", [&] { v.at("a").asString(); });
  expectError(kFile, "a: expected an object, got an array", [&] { v.at("a").at("x"); });
  expectError(kFile, "a: expected at least 2 elements, got 1", [&] { v.at("a").at(1); });
  expectError(kFile, "f.json: the key \"z\" is missing", [&] { v.at("z"); });
  expectError(kFile, "big: expected an integer from", [&] { v.at("big").asInt(); });
  expectError(kFile, "f: expected an integer, got 2", [&] { v.at("f").asInt(); });
}

TEST(JsonReader, RefusesDuplicateKeysAtAnyDepth) {
  expectError(kFile, "the key \"k\" appears twice in one object",
              [] { parse(R"([{"a": {"k": 1, "j": 2, "k": 1}}])"); });
  EXPECT_NO_THROW(parse(R"([{"k": 1}, {"k": 1}])"));
}

TEST(JsonReader, LimitsDepthAndSize) {
  EXPECT_NO_THROW(parse(std::string(64, '[') + std::string(64, ']')));
  expectError(kFile, "nested deeper than 64 levels", [] { parse(std::string(1'000'000, '[')); });
  expectError(kFile, "more than 3 JSON values",
              [] { JsonValue::parse("[1,2,3]", "f", {.maxDepth = 9, .maxNodes = 3}); });
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{'a':1}", "nan", "[Infinity]", "01", "1 2", "\"\xff\"",
                           "\"\\ud800\"", "\"a\nb\"", "// comment\n1"})
    expectError(kFile, "f.json: not valid JSON at byte ", [&] { parse(text); });
  expectError(kFile, "number overflow", [] { parse("1e999"); });
  expectError(kFile, "not valid JSON at byte 3: a NUL character",
              [] { parse(std::string_view("1 \0 2", 5)); });
}

TEST(JsonReader, QuotesHostileTextSafely) {
  EXPECT_EQ(inQuotes("a\n\x1b[31m"), "\"a\\x0a\\x1b[31m\"");
  EXPECT_EQ(inQuotes(std::string(100, 'x'), 3), "\"xxx...\"");
  EXPECT_EQ(inQuotes("ab\u00e9", 3), "\"ab...\"");
  EXPECT_EQ(jsonString("a\"\n"), "\"a\\\"\\n\"");
}

TEST(JsonReader, LimitsTheFile) {
  test::TemporaryFolder folder;
  expectError(kFile, "f: expected a note of at most 4 bytes, the file is larger",
              [&] { JsonValue::load(folder.write("f", "12345"), {"a note", 4}); });
  EXPECT_EQ(JsonValue::load(folder.write("f", "1234"), {"a note", 4}).asInt(), 1234);
}

TEST(JsonValues, AreShownAsTheyAre) {
  const std::pair<const char*, const char*> shown[] = {
      {"null", "null"},
      {"true", "true"},
      {"false", "false"},
      {"-7", "-7"},
      {"0", "0"},
      {"18446744073709551615", "18446744073709551615"},
      {"2.0", "2.0"},
      {"-3.0", "-3.0"},
      {"0.1", "0.1"},
      {"1e300", "1e+300"},
      {"\"a\\n\"", "\"a\\x0a\""},
      {"[1]", "an array"},
      {"{\"a\": 1}", "an object"}};
  for (const auto& [text, expected] : shown)
    EXPECT_EQ(JsonValue::parse(text, "f").show(), expected);
}

TEST(JsonValues, IntegersHoldTheEndsOfTheirRanges) {
  auto parse = [](const char* text) { return JsonValue::parse(text, "f"); };
  EXPECT_EQ(parse("9223372036854775807").asInt(), INT64_MAX);
  EXPECT_EQ(parse("-9223372036854775808").asInt(), INT64_MIN);
  EXPECT_EQ(parse("9223372036854775807").asUint(), uint64_t(INT64_MAX));
  EXPECT_EQ(parse("9223372036854775808").asUint(), uint64_t(1) << 63);
  EXPECT_EQ(parse("9223372036854775808").asDouble(), 9223372036854775808.0);
  EXPECT_EQ(messageOf([&] { parse("9223372036854775808").asInt(0, 9); }),
            "f: expected an integer from 0 to 9, got 9223372036854775808");
  for (const char* inside : {"3", "5"}) EXPECT_NO_THROW(parse(inside).asInt(3, 5));
  EXPECT_EQ(messageOf([&] { parse("2").asInt(3, 5); }),
            "f: expected an integer from 3 to 5, got 2");
  EXPECT_EQ(messageOf([&] { parse("6").asInt(3, 5); }),
            "f: expected an integer from 3 to 5, got 6");
  EXPECT_EQ(parse("5").asUint(5), 5u);
  EXPECT_EQ(messageOf([&] { parse("6").asUint(5); }), "f: expected an integer from 0 to 5, got 6");
  EXPECT_EQ(messageOf([&] { parse("-1").asUint(5); }),
            "f: expected an integer from 0 to 5, got -1");
  EXPECT_EQ(messageOf([&] { parse("1.5").asUint(5); }), "f: expected an integer, got 1.5");
}

TEST(JsonValues, KindsAreToldApart) {
  const struct {
    const char* text;
    bool null, boolean, string, number, integer, array, object;
  } kinds[] = {{"null", 1, 0, 0, 0, 0, 0, 0}, {"true", 0, 1, 0, 0, 0, 0, 0},
               {"\"\"", 0, 0, 1, 0, 0, 0, 0}, {"1.5", 0, 0, 0, 1, 0, 0, 0},
               {"-1", 0, 0, 0, 1, 1, 0, 0},   {"18446744073709551615", 0, 0, 0, 1, 1, 0, 0},
               {"[]", 0, 0, 0, 0, 0, 1, 0},   {"{}", 0, 0, 0, 0, 0, 0, 1}};
  for (const auto& k : kinds) {
    SCOPED_TRACE(k.text);
    const JsonValue v = JsonValue::parse(k.text, "f");
    EXPECT_EQ(v.isNull(), k.null);
    EXPECT_EQ(v.isBool(), k.boolean);
    EXPECT_EQ(v.isString(), k.string);
    EXPECT_EQ(v.isNumber(), k.number);
    EXPECT_EQ(v.isInteger(), k.integer);
    EXPECT_EQ(v.isArray(), k.array);
    EXPECT_EQ(v.isObject(), k.object);
  }
}

TEST(JsonValues, PlacesAndLimits) {
  const JsonValue v = JsonValue::parse(R"({"a\nb": [[], {"c": [1, 2]}], "d": 3})", "f");
  EXPECT_EQ(v.path(), "");
  EXPECT_EQ(v.where(), "f");
  const JsonValue two = v.at("a\nb").at(1).at("c").at(1);
  EXPECT_EQ(two.path(), "a\\x0ab[1].c[1]");
  EXPECT_EQ(two.where(), "f: a\\x0ab[1].c[1]");
  EXPECT_EQ(two.file(), "f");
  EXPECT_EQ(v.size(), 2u);
  EXPECT_EQ(v.at("a\nb").size(), 2u);
  EXPECT_EQ(v.member(1).second.asInt(), 3);
  const std::vector<JsonValue> elements = v.at("a\nb").at(1).at("c").elements();
  ASSERT_EQ(elements.size(), 2u);
  EXPECT_EQ(elements[1].where(), two.where());
  EXPECT_EQ(listFrom(v.at("a\nb").at(1).at("c"), [](const JsonValue& i) { return i.asInt(); }),
            (std::vector<int64_t>{1, 2}));
  // An object without members is no list without elements.
  EXPECT_EQ(messageOf([] { JsonValue::parse("{}", "f").elements(); }),
            "f: expected an array, got an object");
  EXPECT_EQ(messageOf([&] { v.at("a\nb").at(2); }),
            "f: a\\x0ab: expected at least 3 elements, got 2");
  EXPECT_EQ(messageOf([&] { v.at("d").size(); }), "f: d: expected an array or an object, got 3");
  EXPECT_EQ(messageOf([&] { v.at("d").has("x"); }), "f: d: expected an object, got 3");
  EXPECT_EQ(messageOf([&] { v.at("a\nb").member(0); }),
            "f: a\\x0ab: expected an object, got an array");
  test::expectError(ErrorCode::Unsupported, "f: d: so",
                    [&] { throw v.at("d").error("so", ErrorCode::Unsupported); });
  const JsonLimits limits{.maxDepth = 2, .maxNodes = 3};
  auto parse = [&](const char* text) {
    return messageOf([&] { JsonValue::parse(text, "f", limits); });
  };
  EXPECT_EQ(parse("[[1]]"), "");
  EXPECT_EQ(parse("[[[]]]"), "f: JSON nested deeper than 2 levels");
  EXPECT_EQ(parse("{\"a\": {\"b\": {}}}"), "f: JSON nested deeper than 2 levels");
  EXPECT_EQ(parse("[1, 2, 3]"), "f: more than 3 JSON values");
  // Siblings of a container are no deeper than it.
  EXPECT_EQ(messageOf([&] { JsonValue::parse("[[], [], []]", "f", {.maxDepth = 2}); }), "");
}

TEST(JsonValues, QuotesAreCutBetweenCharacters) {
  const std::string euro = "\xe2\x82\xac";
  EXPECT_EQ(inQuotes(euro + euro, 5), "\"" + euro + "...\"");
  EXPECT_EQ(inQuotes(euro + euro, 6), "\"" + euro + euro + "\"");
  EXPECT_EQ(inQuotes(euro, 2), "\"...\"");
  EXPECT_EQ(inQuotes("\x1f\x20\x7e\x7f"), "\"\\x1f ~\\x7f\"");
  EXPECT_EQ(messageOf([] { jsonString("a\xff"); }),
            "expected valid UTF-8 for JSON, got \"a\xff\" with invalid bytes");
}

}  // namespace
}  // namespace lathe
