// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/json_reader.h"
#include "runtime/mapped_file.h"

#include <gtest/gtest.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;

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

}  // namespace
}  // namespace lathe
