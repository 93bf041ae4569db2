// SPDX-License-Identifier: Apache-2.0
// Texts under a constraint: every walk that it allows ends in a text that matches, and the tokens
// that it allows are those that brute force finds.
#include "lathe/runtime/constraint.h"

#include <chrono>
#include <map>
#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lathe/runtime/sampler.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using Json = nlohmann::json;
using test::expectError;

// Byte-level, with all bytes and some longer tokens that cross the borders of JSON's.
const Tokenizer& bytes() {
  static const Tokenizer tokenizer = [] {
    Json vocab;
    auto spelled = [](int byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      int code = byte;
      if (!printable) {
        code = 256;
        for (int b = 0; b < byte; ++b) code += !((b >= 33 && b <= 126) || (b >= 161 && b != 173));
      }
      std::string out;
      if (code < 128) return std::string(1, char(code));
      return std::string{char(0xc0 | code >> 6), char(0x80 | (code & 63))};
    };
    for (int b = 0; b < 256; ++b) vocab[spelled(b)] = b;
    int id = 256;
    for (std::string text :
         {"{\"", "\":", "\",\"", "true", "false", "null", "12", "345", "},",  "]}",   "ab",
          "abc", "\"}", "[[",    "]]",   ", \"",  "-1",   "0.", "e+",  "\\n", "\\u00"}) {
      std::string token;
      for (char c : text) token += spelled(uint8_t(c));
      vocab[token] = id++;
    }
    vocab["<end>"] = id;
    Json file = {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}},
                 {"decoder", {{"type", "ByteLevel"}}},
                 {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                 {"added_tokens", Json::array({{{"id", id},
                                                {"content", "<end>"},
                                                {"single_word", false},
                                                {"lstrip", false},
                                                {"rstrip", false},
                                                {"normalized", false},
                                                {"special", true}}})}};
    return Tokenizer::parse(file.dump(), "bytes");
  }();
  return tokenizer;
}

// Llama 2's kind: "▁" is a space, the first of a text is left out, bytes have tokens of their own.
const Tokenizer& pieces() {
  static const Tokenizer tokenizer = [] {
    Json vocab;
    int id = 0;
    constexpr const char* digits = "0123456789ABCDEF";
    for (int b = 0; b < 256; ++b)
      vocab[std::string("<0x") + digits[b >> 4] + digits[b & 15] + ">"] = id++;
    for (char c = 33; c < 127; ++c) vocab[std::string(1, c)] = id++;
    for (const char* token : {"▁", "▁▁", "▁a", "▁ab", "▁\"", "ab", "é", "▁1", "12"})
      vocab[token] = id++;
    Json file = Json::parse(R"({"normalizer": null, "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})");
    file["model"] = {
        {"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}, {"byte_fallback", true}};
    return Tokenizer::parse(file.dump(), "pieces");
  }();
  return tokenizer;
}

// A text that draws among what is allowed, and ends where it may with this probability.
std::optional<std::string> draw(const std::shared_ptr<Constraint>& constraint,
                                const Tokenizer& tokenizer, RandomGenerator& random, double ends,
                                size_t longest = 400) {
  ConstraintState state(constraint);
  std::vector<int> ids;
  StreamDecoder stream(tokenizer);
  while (true) {
    const bool complete = state.isComplete();
    EXPECT_TRUE(complete || state.canGoOn());
    if (complete && (!state.canGoOn() || random.uniform() < ends)) return tokenizer.decode(ids);
    std::vector<int> allowed;
    for (int id = 0; id < tokenizer.vocabSize(); ++id)
      if (state.isAllowed(id)) allowed.push_back(id);
    if (allowed.empty()) {
      ADD_FAILURE() << "a dead end behind " << tokenizer.decode(ids);
      return std::nullopt;
    }
    if (ids.size() >= longest) return std::nullopt;
    ids.push_back(allowed[size_t(random.next() % allowed.size())]);
    state.accept(ids.back());
  }
}

TEST(Constraint, EveryTextMatchesThePattern) {
  // Patterns that std::regex reads as we do.
  for (const char* pattern :
       {"abc", "a|bc|", "[a-c]{2,4}", "(ab|cd)*x", "a?b+c*", "\\d{3}-\\d{4}", "[^a-y \\n]{1,3}",
        "(a|b(c|d){2}){1,3}", "-?(0|[1-9]\\d{0,3})(\\.\\d+)?", "^x(y|z)$", "\\w+\\s\\S",
        "[\\]\\-x]+", "a{0}b", "(?:ab)+?c", "x{2,}", ".a."}) {
    const bool empty = std::regex_match("", std::regex(pattern));
    const auto constraint = Constraint::regex(pattern, bytes());
    RandomGenerator random(7);
    int finished = 0;
    for (int i = 0; i < 60; ++i) {
      const auto text = draw(constraint, bytes(), random, 0.3);
      if (!text) continue;
      ++finished;
      // Characters beyond ASCII are several of std::regex's.
      const bool ascii = std::ranges::all_of(*text, [](char c) { return uint8_t(c) < 128; });
      if (ascii)
        EXPECT_TRUE(std::regex_match(*text, std::regex(pattern))) << pattern << ": " << *text;
    }
    EXPECT_GT(finished, 30) << pattern;
    EXPECT_EQ(ConstraintState(constraint).isComplete(), empty) << pattern;
  }
}

// Whether a text is a beginning of one that matches: by the constraint's own bytes, one at a time,
// on a vocabulary of bytes alone.
TEST(Constraint, AllowsWhatBruteForceFinds) {
  const std::vector<std::string> patterns{"(ab|abc|a12)*345?", "\"(true|false|null)\",\"x",
                                          "\\{\"a\":-?1[0-9]*\\}"};
  for (const Tokenizer* tokenizer : {&bytes(), &pieces()})
    for (const std::string& pattern : patterns) {
      const auto constraint = Constraint::regex(pattern, *tokenizer);
      // The patterns are automata of a few states: whatever begins a match has one of these ends.
      static const std::vector<std::string> ends{
          "",         "5",        "34",      "345",        "4",         "45",        "b345",
          "bc345",    "2345",     "c345",    "12345",      "ull\",\"x", "rue\",\"x", "alse\",\"x",
          "ue\",\"x", "e\",\"x",  "\",\"x",  ",\"x",       "\"x",       "x",         "lse\",\"x",
          "se\",\"x", "ll\",\"x", "l\",\"x", "true\",\"x", "\"a\":1}",  "a\":1}",    "\":1}",
          ":1}",      "1}",       "}"};
      const std::regex judge(pattern);
      std::map<std::string, bool> known;
      auto isBeginning = [&](const std::string& text) {
        auto [it, added] = known.try_emplace(text, false);
        if (added)
          it->second = std::ranges::any_of(
              ends, [&](const std::string& end) { return std::regex_match(text + end, judge); });
        return it->second;
      };
      RandomGenerator random(3);
      for (int walk = 0; walk < 4; ++walk) {
        ConstraintState state(constraint);
        std::vector<int> ids;
        for (int step = 0; step < 10 && state.canGoOn(); ++step) {
          const std::string before = tokenizer->decode(ids);
          std::vector<int> allowed;
          for (int id = 0; id < tokenizer->vocabSize(); ++id) {
            std::vector<int> longer = ids;
            longer.push_back(id);
            const std::string text = tokenizer->decode(longer);
            const bool expected = !tokenizer->isSpecial(id) && text != before && isBeginning(text);
            EXPECT_EQ(state.isAllowed(id), expected)
                << pattern << ": '" << before << "' then " << tokenizer->idToToken(id);
            if (state.isAllowed(id)) allowed.push_back(id);
          }
          if (allowed.empty()) break;
          ids.push_back(allowed[size_t(random.next() % allowed.size())]);
          state.accept(ids.back());
        }
      }
    }
}

// Every day that there is, and no other: byte by byte.
TEST(Constraint, DatesAreThoseOfTheCalendar) {
  const auto date =
      Constraint::jsonSchema(R"({"type": "string", "format": "date"})", "test", bytes());
  auto allows = [&](int year, int month, int day) {
    const std::string text = fmt::format("\"{:04}-{:02}-{:02}\"", year, month, day);
    ConstraintState state(date);
    for (int id : bytes().encode(text)) {
      if (!state.isAllowed(id)) return false;
      state.accept(id);
    }
    return state.isComplete();
  };
  for (int year : {1600, 1896, 1900, 1904, 1999, 2000, 2024, 2026, 2100})
    for (int month = 0; month <= 13; ++month)
      for (int day = 0; day <= 32; ++day)
        EXPECT_EQ(allows(year, month, day),
                  (std::chrono::year(year) / month / day).ok() && month > 0 && day > 0)
            << year << "-" << month << "-" << day;
}

// What a schema of the kinds below allows, decided from the document and the schema alone.
bool isValid(const Json& value, const Json& schema, const Json& root) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("$ref"))
    return isValid(value, root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))),
                   root);
  if (schema.contains("const") && value != schema["const"]) return false;
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
    return false;
  if (schema.contains("anyOf") &&
      std::ranges::none_of(schema["anyOf"], [&](const Json& s) { return isValid(value, s, root); }))
    return false;
  if (schema.contains("oneOf") && std::ranges::count_if(schema["oneOf"], [&](const Json& s) {
                                    return isValid(value, s, root);
                                  }) != 1)
    return false;
  if (schema.contains("type")) {
    const Json types = schema["type"].is_string() ? Json::array({schema["type"]}) : schema["type"];
    const bool fits = std::ranges::any_of(types, [&](const std::string& type) {
      return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
             (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
             (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
             (type == "integer" && value.is_number_integer());
    });
    if (!fits) return false;
  }
  if (value.is_object()) {
    for (const Json& name : schema.value("required", Json::array()))
      if (!value.contains(name.get<std::string>())) return false;
    const Json properties = schema.value("properties", Json::object());
    for (auto& [name, member] : value.items()) {
      if (properties.contains(name)) {
        if (!isValid(member, properties[name], root)) return false;
      } else if (!isValid(member, schema.value("additionalProperties", Json(true)), root)) {
        return false;
      }
    }
  }
  if (value.is_array()) {
    if (value.size() < schema.value("minItems", 0u)) return false;
    if (value.size() > schema.value("maxItems", 1u << 30)) return false;
    for (const Json& item : value)
      if (!isValid(item, schema.value("items", Json(true)), root)) return false;
  }
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const size_t length =
        size_t(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
    if (length < schema.value("minLength", 0u) || length > schema.value("maxLength", 1u << 30))
      return false;
    if (schema.contains("pattern") &&
        !std::regex_search(text, std::regex(schema["pattern"].get<std::string>())))
      return false;
  }
  if (value.is_number_integer()) {
    const int64_t number = value.get<int64_t>();
    if (schema.contains("minimum") && number < schema["minimum"].get<int64_t>()) return false;
    if (schema.contains("maximum") && number > schema["maximum"].get<int64_t>()) return false;
    if (schema.contains("exclusiveMaximum") && number >= schema["exclusiveMaximum"].get<int64_t>())
      return false;
    if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"].get<int64_t>())
      return false;
  }
  return true;
}

const char* const kSchemas[] = {
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 130}}, "required": ["name", "age"], "additionalProperties": false})",
    R"({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"const": [1, {"x": "\"\n"}]}}, "required": ["b"]})",
    R"({"type": "array", "items": {"enum": ["red", "grün", 3, 1.5, null, true]}, "minItems": 1, "maxItems": 3})",
    R"({"anyOf": [{"type": "integer", "exclusiveMinimum": -13, "exclusiveMaximum": 205}, {"type": "string", "minLength": 2, "maxLength": 3}]})",
    R"({"type": ["null", "number"]})",
    R"({"type": "string", "pattern": "^[a-c]+\"[\\n!x-z]$"})",
    R"({"type": "string", "pattern": "b"})",
    R"({"type": "object", "additionalProperties": {"type": "integer", "minimum": -5}})",
    R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"value": {"type": "integer", "minimum": 1, "maximum": 9}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}}, "required": ["value"], "additionalProperties": false}}})",
    R"({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "boolean"}}, "required": ["kind"], "additionalProperties": false}, {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"], "additionalProperties": false}]})",
    R"({"type": "object"})",
};

TEST(Constraint, EveryDocumentIsValid) {
  for (const Tokenizer* tokenizer : {&bytes(), &pieces()})
    for (const char* schema : kSchemas) {
      const Json rules = Json::parse(schema);
      const auto constraint = Constraint::jsonSchema(schema, "test", *tokenizer);
      RandomGenerator random(11);
      int finished = 0;
      for (int i = 0; i < 60; ++i) {
        const auto text = draw(constraint, *tokenizer, random, 0.5, 600);
        if (!text) continue;
        ++finished;
        const Json document = Json::parse(*text, nullptr, false);
        ASSERT_FALSE(document.is_discarded()) << schema << "\n" << *text;
        EXPECT_TRUE(isValid(document, rules, rules)) << schema << "\n" << *text;
      }
      EXPECT_GT(finished, 5) << schema;
    }
}

// Whether `text` is a whole one of the constraint, byte by byte.
bool allows(const std::shared_ptr<Constraint>& constraint, const std::string& text) {
  ConstraintState state(constraint);
  for (char c : text) {
    if (!state.isAllowed(uint8_t(c))) return false;
    state.accept(uint8_t(c));
  }
  return state.isComplete();
}

// Every number of items, of characters and of repetitions between two ends, and none beside them.
TEST(Constraint, CountsAreExact) {
  for (int least : {0, 1, 2, 3})
    for (int most : {-1, 0, 1, 2, 3, 5}) {
      if (most >= 0 && most < least) continue;
      auto schema = [&](const char* type, const char* low, const char* high) {
        Json rules{{"type", type}};
        if (least > 0) rules[low] = least;
        if (most >= 0) rules[high] = most;
        if (rules["type"] == "array") rules["items"] = Json{{"type", "boolean"}};
        return Constraint::jsonSchema(rules.dump(), "test", bytes());
      };
      const auto items = schema("array", "minItems", "maxItems");
      const auto characters = schema("string", "minLength", "maxLength");
      const auto repeated = Constraint::regex(
          fmt::format("x(ab){{{},{}}}y", least, most < 0 ? "" : std::to_string(most)), bytes());
      for (int count = 0; count < 9; ++count) {
        SCOPED_TRACE(fmt::format("{} of {} to {}", count, least, most));
        const bool isIn = count >= least && (most < 0 || count <= most);
        std::string list, text, pairs;
        for (int i = 0; i < count; ++i) {
          list += i ? ", true" : "true";
          text += i % 2 ? "\\n" : "ü";
          pairs += "ab";
        }
        EXPECT_EQ(allows(items, "[" + list + "]"), isIn);
        EXPECT_EQ(allows(characters, '"' + text + '"'), isIn);
        EXPECT_EQ(allows(repeated, "x" + pairs + "y"), isIn);
      }
    }
}

// Every integer of small ranges, and none beside them.
TEST(Constraint, BoundsOfIntegersAreExact) {
  for (auto [low, high] :
       {std::pair(0, 0), {-3, 7}, {17, 342}, {-120, -9}, {99, 100}, {-1, 1}, {5, 1005}}) {
    for (const Json& bounds :
         {Json{{"minimum", low}, {"maximum", high}},
          Json{{"exclusiveMinimum", low - 1}, {"exclusiveMaximum", high + 1}},
          Json{{"minimum", low}, {"exclusiveMinimum", low - 9}, {"exclusiveMaximum", high + 1}}}) {
      Json schema = bounds;
      schema["type"] = "integer";
      const auto constraint = Constraint::jsonSchema(schema.dump(), "test", bytes());
      for (int value = -1100; value <= 1100; ++value)
        EXPECT_EQ(allows(constraint, std::to_string(value)), low <= value && value <= high)
            << value << " in " << schema;
      EXPECT_FALSE(allows(constraint, "-0"));
      EXPECT_FALSE(allows(constraint, "007"));
    }
  }
}

TEST(Constraint, NestingEndsBeforeItsLimit) {
  const char* nested = R"({"type": "array", "items": {"$ref": "#"}})";
  const auto constraint = Constraint::jsonSchema(nested, "test", bytes());
  ConstraintState state(constraint);
  int depth = 0;
  while (state.isAllowed('[') && depth < 1000) {
    state.accept('[');
    ++depth;
  }
  EXPECT_GT(depth, 8);
  EXPECT_LE(depth, Constraint::kMaxNesting);
  for (; depth > 0; --depth) state.accept(']');
  EXPECT_TRUE(state.isComplete());
  EXPECT_FALSE(state.canGoOn());
}

// Whether the constraint allows the text byte by byte, and its end.
bool takes(const std::shared_ptr<Constraint>& constraint, const std::string& text) {
  ConstraintState state(constraint);
  for (char c : text) {
    if (!state.isAllowed(int(uint8_t(c)))) return false;
    state.accept(int(uint8_t(c)));
  }
  return state.isComplete();
}

struct Documents {
  const char* schema;
  std::vector<std::string> taken, refused;
};

TEST(Constraint, SchemasTakeTheirDocumentsAndNoOthers) {
  const std::vector<Documents> cases = {
      {R"({"type": "integer"})",
       {"0", "-0", "7", "-5", "123456789012345"},
       {"01", "1.0", "1e3", "-", "", "1234567890123456", "\"1\"", "true"}},
      {R"({"type": "number"})",
       {"0", "-0.5e+10", "1.123456789012345", "1e99", "12E-3"},
       {".5", "1.", "01", "1e", "1e100", "1.1234567890123456", "+1", "null"}},
      {R"({"type": "boolean"})", {"true", "false"}, {"null", "tru", "0"}},
      {R"({"type": "null"})", {"null"}, {"false", "nul", "0"}},
      {R"({"type": ["integer", "null", "integer"]})", {"5", "null"}, {"true", "\"\""}},
      {R"({"description": "x", "title": "y"})", {"5", "null", "true", "\"\"", "[]", "{}"}, {"x"}},
      {"true", {"5", "[1,{}]"}, {"x"}},
      // Constants as JSON spells them, those of the schema's type.
      {R"({"const": "\\\b\f\r\t\n\u0001\"/"})", {R"("\\\b\f\r\t\n\u0001\"/")"}, {R"("\\")"}},
      {R"({"const": "a b~"})", {"\"a b~\""}, {R"("a\u0020b~")"}},
      {R"({"const": false})", {"false"}, {"true", "null"}},
      {R"({"const": null})", {"null"}, {"false"}},
      {R"({"type": "null", "enum": [null, false, 0]})", {"null"}, {"false", "0"}},
      {R"({"type": "boolean", "enum": [null, false, 0, "false"]})", {"false"}, {"null", "0"}},
      {R"({"type": "string", "enum": ["a", 1, ["a"]]})", {"\"a\""}, {"1", "[\"a\"]"}},
      {R"({"type": "integer", "enum": [1, 2.5, "3", 4]})", {"1", "4"}, {"2.5", "\"3\""}},
      {R"({"type": "number", "enum": [1, 2.5, "3"]})", {"1", "2.5"}, {"\"3\""}},
      {R"({"type": ["array", "null"], "enum": [[1], {"a": 1}, null]})",
       {"[1]", "null"},
       {"{\"a\":1}"}},
      {R"({"type": "object", "enum": [[1], {"a": 1}]})", {"{\"a\":1}"}, {"[1]"}},
      // Paths within the schema.
      {R"({"$defs": {"a/b": {"const": 1}, "c~d": {"const": 2}}, "$ref": "#/$defs/a~1b"})",
       {"1"},
       {"2"}},
      {R"({"$defs": {"a/b": {"const": 1}, "c~d": {"const": 2}}, "$ref": "#/$defs/c~0d"})",
       {"2"},
       {"1"}},
      {R"({"$defs": {"c~": {"const": 3}}, "$ref": "#/$defs/c~"})", {"3"}, {"1"}},
      {R"({"$defs": {"l": [{"const": 1}, {"const": 2}]}, "$ref": "#/$defs/l/1"})", {"2"}, {"1"}},
      {R"({"$defs": {"l": [{"const": 1}, {"const": 2}]}, "$ref": "#/$defs/l/0"})", {"1"}, {"2"}},
      // Alternatives.
      {R"({"allOf": [{"const": 1}]})", {"1"}, {"2"}},
      {R"({"anyOf": [{"const": 1}, {"type": "boolean"}]})", {"1", "true"}, {"2"}},
      {R"({"oneOf": [{"enum": [1, 2]}, {"enum": [3]}, {"const": "1"}]})",
       {"1", "2", "3", "\"1\""},
       {"4"}},
      {R"({"$defs": {"i": {"type": "integer"}, "s": {"type": "string"}},
           "oneOf": [{"$ref": "#/$defs/i"}, {"$ref": "#/$defs/s"}, {"type": "null"}]})",
       {"1", "\"x\"", "null"},
       {"true"}},
      // Objects and lists.
      {R"({"type": "object", "additionalProperties": false})", {"{}"}, {"{\"a\":1}", "[]"}},
      {R"({"type": "object", "additionalProperties": true})", {"{}", "{\"a\":1}"}, {"[]"}},
      {R"({"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}})",
       {"{}", "{\"a\":1,\"b\":2}"},
       {"{\"a\":true}", "{\"a\":1,}"}},
      {R"({"type": "array"})", {"[]", "[1,true]"}, {"{}", "[1,]"}},
      {R"({"type": "array", "minItems": 0})", {"[]", "[1]"}, {"{}"}},
      {R"({"type": "array", "minItems": 1})", {"[1]", "[1,2]"}, {"[]"}},
      {R"({"type": "array", "maxItems": 1})", {"[]", "[1]"}, {"[1,2]"}},
      {R"({"type": "array", "minItems": 2, "maxItems": 2})", {"[1,2]"}, {"[1]", "[1,2,3]"}},
      {R"({"type": "string", "minLength": 0})", {"\"\"", "\"ab\""}, {"1"}},
      {R"({"type": "string", "minLength": 1, "maxLength": 2})",
       {"\"a\"", "\"ab\""},
       {"\"\"", "\"abc\""}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
      {R"({"type": "string"})",
       {R"("\u0001\u001f\b\f\n\r\t\"\\")", "\"\\u0000\"", "\"~\x7f\u00e9\uffff\""},
       {"\"\x1f\"", "\"\n\"", "\"a", "a"}},
      {R"({"type": "string", "pattern": "b"})", {"\"abc\"", "\"b\""}, {"\"ac\"", "\"\""}},
      {R"({"type": "string", "pattern": "^b"})", {"\"bc\""}, {"\"ab\""}},
      {R"({"type": "string", "pattern": "b$"})", {"\"ab\""}, {"\"bc\""}},
      {R"({"type": "string", "pattern": "^[^a]$"})",
       {"\"b\"", R"("\\")", R"("\"")", R"("\n")", "\"!\"", "\"#\"", "\"[\"", "\"]\"", "\" \""},
       {"\"a\"", "\"\\\"", "\"\n\""}},
      {R"({"type": "string", "format": "date"})",
       {"\"2024-02-29\"", "\"1999-12-31\""},
       {"\"2023-02-29\"", "\"2024-04-31\"", "\"x2024-02-29\"", "\"2024-02-29x\""}},
      {R"({"format": "date"})", {"\"2024-02-29\""}, {"5", "\"x\""}},
      {R"({"minLength": 2})", {"\"ab\""}, {"5", "\"a\""}},
      {R"({"minItems": 1})", {"[5]"}, {"5", "[]"}},
      {R"({"maximum": 5})", {"5"}, {"6", "\"a\""}},
      {R"({"required": ["a"], "properties": {"a": true}})", {"{\"a\":1}"}, {"5", "{}"}},
      {R"({"type": "string", "format": "time"})",
       {"\"23:59:59Z\"", "\"00:00:00.123456+02:00\""},
       {"\"24:00:00Z\"", "\"23:59:59\"", "\"12:00:00+24:00\"", "\"12:60:00Z\""}},
      {R"({"type": "string", "format": "date-time"})",
       {"\"2024-02-29T12:00:00Z\""},
       {"\"2024-02-29\"", "\"2024-02-29 12:00:00Z\""}},
      {R"({"type": "string", "format": "uuid"})",
       {"\"01234567-89ab-cdef-0123-456789abcdef\""},
       {"\"01234567-89AB-cdef-0123-456789abcdef\"", "\"0123456789abcdef0123456789abcdef\""}},
      {R"({"type": "string", "format": "ipv4"})",
       {"\"255.249.199.0\"", "\"10.0.0.1\""},
       {"\"256.0.0.1\"", "\"1.2.3\"", "\"1.2.3.4.5\""}},
      {R"({"type": "integer", "maximum": 5})", {"5", "-7", "0"}, {"6", "10"}},
      {R"({"type": "integer", "minimum": 5})", {"5", "12"}, {"4", "-5", "0"}},
      {R"({"type": "integer", "minimum": -5, "maximum": 3})",
       {"-5", "-1", "0", "3"},
       {"-6", "4", "-10", "10"}},
      {R"({"type": "integer", "minimum": -5, "maximum": -2})",
       {"-5", "-2"},
       {"-1", "0", "-6", "2"}},
      {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["b"]})",
       {"{\"a\":1,\"b\":2}", "{\"b\":2}"},
       {"{\"a\":1}", "{}", "{\"b\":2,\"a\":1}", "{\"b\":2,}", "{,\"b\":2}", "{\"a\":1,\"b\":2"}},
      {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}})",
       {"{}", "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}"},
       {"{\"c\":1}"}},
      {R"({"minimum": 3, "exclusiveMinimum": 3, "maximum": 9, "exclusiveMaximum": 7, "type": "integer"})",
       {"4", "5", "6"},
       {"3", "7", "-5"}}};
  for (const Documents& c : cases) {
    const auto constraint = Constraint::jsonSchema(c.schema, "schema.json", bytes());
    for (const std::string& text : c.taken)
      EXPECT_TRUE(takes(constraint, text)) << c.schema << text;
    for (const std::string& text : c.refused)
      EXPECT_FALSE(takes(constraint, text)) << c.schema << text;
  }
  const auto object = Constraint::jsonObject(bytes());
  EXPECT_TRUE(takes(object, "{\"a\":[1]}"));
  EXPECT_FALSE(takes(object, "[1]"));
}

TEST(Constraint, PatternsTakeTheirTextsAndNoOthers) {
  const std::vector<Documents> cases = {
      {"a*b", {"b", "aab"}, {"a", "ba"}},
      {"a+b", {"ab", "aab"}, {"b"}},
      {"a?b", {"b", "ab"}, {"aab"}},
      {"a.b", {"axb", "a\u00e9b", "a\U0001f600b"}, {"ab", "a\nb"}},
      // Ranges across the lengths and the last bytes of UTF-8.
      {"[\\u0070-\\u0090]", {"p", "\x7f", "\u0080", "\u0090"}, {"o", "\u0091"}},
      {"[\\u07f0-\\u0810]", {"\u07f0", "\u07ff", "\u0800", "\u0810"}, {"\u07ef", "\u0811"}},
      {"[\\ufff0-\U00010010]",
       {"\ufff0", "\uffff", "\U00010000", "\U00010010"},
       {"\uffef", "\U00010011"}},
      {"[\\ud7f0-\\ue010]", {"\ud7f0", "\ud7ff", "\ue000", "\ue010"}, {"\ud7ef", "\ue011"}},
      {"[\\u00e9-\\u0123]",
       {"\u00e9", "\u00ff", "\u0100", "\u0123"},
       {"\u00e8", "\u00c0", "\u0124", "\u013f"}},
      {"[\\u0801-\\uabcd]",
       {"\u0801", "\u0fff", "\u1000", "\uabcd", "\uab00"},
       {"\u0800", "\uabce", "\uac00", "\u07ff"}},
      {"[^\\u0080-\\uffff]", {"a", "\U00010000"}, {"\u0080"}},
      {"a{,2}b", {"b", "ab", "aab"}, {"aaab", "a"}},
      {"a{2}", {"aa"}, {"a", "aaa"}},
      {"a{2,}", {"aa", "aaaaa"}, {"a"}},
      {"a{1,2}?", {"a", "aa"}, {"", "aaa"}},
      {"\\x4A\\x4f\\u00Ab", {"JO\u00ab"}, {"jo\u00ab"}},
      {"[\\b\\t]", {"\b", "\t"}, {"b"}},
      {"[.=:]", {".", "=", ":"}, {"a"}},
      {"^a|b$", {"a", "b"}, {"ab"}},
      {"[a-c-]", {"a", "b", "c", "-"}, {"d"}},
      {"\\r\\n\\f\\v", {"\r\n\f\v"}, {"rnfv"}}};
  for (const Documents& c : cases) {
    const auto constraint = Constraint::regex(c.schema, bytes());
    for (const std::string& text : c.taken)
      EXPECT_TRUE(takes(constraint, text)) << c.schema << text;
    for (const std::string& text : c.refused)
      EXPECT_FALSE(takes(constraint, text)) << c.schema << text;
  }
}

// Tokenizers that cannot spell what is asked for.
TEST(Constraint, NeedsATokenizerWithLettersThatSpellsTheText) {
  auto of = [](std::vector<std::string> tokens) {
    Json vocab;
    for (const std::string& token : tokens) vocab[token] = int(vocab.size());
    return Tokenizer::parse(
        Json{{"decoder", {{"type", "Fuse"}}},
             {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}}
            .dump(),
        "few");
  };
  EXPECT_TRUE(takes(Constraint::regex("ba?", of({"a", "b"})), std::string("\1")));
  expectError(ErrorCode::Unsupported,
              "constraints need a tokenizer that has letters among its tokens",
              [&] { Constraint::regex("1", of({"1", "2"})); });
  expectError(ErrorCode::InvalidArgument,
              "the constraint allows no text that the tokenizer can spell and that ends",
              [&] { Constraint::regex("c", of({"a", "b"})); });
}

TEST(Constraint, RefusesByName) {
  auto schema = [](const char* text) {
    return [text] { Constraint::jsonSchema(text, "schema.json", bytes()); };
  };
  for (
      auto [text, message] : std::vector<std::pair<const char*, const char*>>{
          {R"({"type": "object", "patternProperties": {}})",
           "schema.json: patternProperties: the keyword 'patternProperties' is not supported"},
          {R"({"properties": {"a": {"not": {}}}})",
           "schema.json: properties.a.not: the keyword 'not' is not supported"},
          {R"({"type": "array", "uniqueItems": true})", "the keyword 'uniqueItems'"},
          {R"({"type": "number", "minimum": 2})", "bounds of the type number are not supported"},
          {R"({"type": "string", "format": "email"})", "the format \"email\" is not supported"},
          {R"({"type": "string", "pattern": "a", "maxLength": 3})",
           "several of pattern, format and lengths"},
          {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
           "'oneOf': schemas 0 and 1 may allow the same value"},
          {R"({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}, {"type": "string"}]})",
           "'oneOf': schemas 0 and 2 may allow the same value"},
          {R"({"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                          {"type": "object"}]})",
           "'oneOf': schemas 0 and 1 may allow the same value"},
          {R"({"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                          {"type": "object", "properties": {"a": {"const": 2}}}]})",
           "'oneOf': schemas 0 and 1 may allow the same value"},
          {R"({"$ref": "other.json"})", "a $ref out of the schema"},
          {R"({"type": "object", "required": ["a"]})",
           "'required' names \"a\", which 'properties' does not have"},
          {"false", "the schema false allows nothing"},
          {R"({"$ref": "#", "minLength": 1})", "'$ref' beside 'minLength' is not supported"},
          {R"({"anyOf": [true], "type": "string"})", "'anyOf' beside 'type' is not supported"},
          {R"({"allOf": [true, true]})", "'allOf' of several schemas is not supported; write one"},
          {R"({"oneOf": [true, {"type": "integer"}]})", "schemas 0 and 1 may allow the same value"},
          {R"({"oneOf": [{"type": "number"}, {"type": "integer"}]})",
           "schemas 0 and 1 may allow the same value"},
          {R"({"oneOf": [{"enum": [1, 2]}, {"const": 2}]})", "schemas 0 and 1 may allow the same"},
          {R"({"$defs": {"a": {"$ref": "#/$defs/a"}},
               "oneOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]})",
           "schemas 0 and 1 may allow the same value"},
          {R"({"$defs": {"a": {"$ref": "#/$defs/a"}},
               "oneOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]})",
           "schemas 0 and 1 may allow the same value"},
          {R"({"minLength": 1, "minItems": 1})", "expected a 'type' beside keywords for several"},
          {R"({"type": "string", "minItems": 1})",
           "keywords for array do not apply to type 'string'"},
          {R"({"type": "string", "pattern": "(a)\\1"})", "\\1 is not supported"}})
    expectError(ErrorCode::Unsupported, message, schema(text));
  for (auto [text, message] : std::vector<std::pair<const char*, const char*>>{
           {R"({"type": "texts"})", "there is no type \"texts\""},
           {R"({"type": "array", "minItems": 3, "maxItems": 2})", "'minItems' is above 'maxItems'"},
           {R"({"$ref": "#/$defs/x"})", "there is no \"#/$defs/x\" in the schema"},
           {R"({"$ref": "#x"})", "expected a path like #/$defs/name, got \"#x\""},
           {R"({"$defs": {"l": [true]}, "$ref": "#/$defs/l/1"})", "there is no \"#/$defs/l/1\""},
           {R"({"$defs": {"l": [true]}, "$ref": "#/$defs/l/x"})", "there is no \"#/$defs/l/x\""},
           {R"({"$defs": {"l": [true]}, "$ref": "#/$defs/l/:"})", "there is no \"#/$defs/l/:\""},
           {R"({"$defs": {"l": [true]}, "$ref": "#/$defs/l//"})", "there is no \"#/$defs/l//\""},
           {R"({"$defs": {"l": [true]}, "$ref": "#/$defs/l/"})", "there is no \"#/$defs/l/\""},
           {R"({"$defs": {"l": [true]}, "$ref": "#/$defs/l/000000000"})",
            "there is no \"#/$defs/l"},
           {R"({"$defs": {"l": true}, "$ref": "#/$defs/l/x"})", "there is no \"#/$defs/l/x\""},
           {R"({"type": "string", "const": 1})",
            "const: expected at least one value of the schema's type"},
           {R"({"enum": []})", "enum: expected at least one value of the schema's type"},
           {R"({"anyOf": []})", "anyOf: expected at least one schema"},
           {R"({"anyOf": {}})", "anyOf: expected an array, got an object"},
           {R"({"oneOf": {"type": "null"}})", "oneOf: expected an array, got an object"},
           {R"({"type": []})", "type: expected at least one type"},
           {R"({"type": "string", "maxLength": 100000})", "expected"},
           {R"({"type": "string", "minLength": 4, "maxLength": 3})",
            "'minLength' is above 'maxLength': nothing is allowed"},
           {R"({"type": "array", "items": 3})",
            "items: expected a schema, an object or true, got 3"},
           {R"({"type": "object", "additionalProperties": "no"})",
            "additionalProperties: expected a schema"},
           {R"({"type": "integer", "minimum": 3, "maximum": 2})", "the bounds leave no integer"}})
    expectError(ErrorCode::InvalidFile, message, schema(text));
  // A tree that never ends.
  expectError(
      ErrorCode::InvalidArgument, "no text that the tokenizer can spell and that ends",
      schema(R"({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]})"));
  expectError(ErrorCode::InvalidArgument, "no text that the tokenizer can spell and that ends",
              schema(R"({"$ref": "#"})"));
  auto pattern = [](const char* text) { return [text] { Constraint::regex(text, bytes()); }; };
  for (auto [text, what] : std::vector<std::pair<const char*, const char*>>{
           {"a(?=a)b", "character 3: looking ahead (?="},
           {"(?!a)b", "character 2: looking ahead (?="},
           {"(?<!a)b", "character 2: looking behind (?<="},
           {"(?<=a)b", "character 2: looking behind (?<="},
           {"\\bword", "character 2: \\b"},
           {"(a)\\1", "\\1"},
           {"\\9", "\\9"},
           {"\\z", "\\z"},
           {"\\A", "\\A"},
           {"\\Z", "\\Z"},
           {"(?i)a", "a group with (?"},
           {"\\p{L}", "\\p"},
           {"a++", "a possessive quantifier"},
           {"a{2}+", "a possessive quantifier"},
           {"a(^b)", "a ^ that is not at the beginning"},
           {"(a$)", "a $ within a group"},
           {"[[:alpha:]]", "a named class [[:"},
           {"[[=a=]]", "a named class [[:"},
           {"[[.a.]]", "a named class [[:"},
           {"\\ba", "\\b"}})
    expectError(ErrorCode::Unsupported, std::string(what) + " is not supported", pattern(text));
  for (auto [text, what] : std::vector<std::pair<const char*, const char*>>{
           {"(a", "character 2: expected a ) to end the group"},
           {"(?<a", "expected a > to end the group's name"},
           {"(?P<a|b)", "expected a > to end the group's name"},
           {"a)", "pattern \"a)\": character 1: a ) without its ("},
           {"a$b", "a $ that is not at the end"},
           {"\xff", "the pattern is not valid UTF-8"},
           {"[a", "expected a ] to end the class"},
           {"[]", "expected a ] to end the class"},
           {"[^\\s\\S]", "a class of no character"},
           {"*a", "a quantifier with nothing in front of it"},
           {"a|+", "a quantifier with nothing in front of it"},
           {"a{3,1}", "a quantifier whose end is below its start"},
           {"a{3", "expected a } to end the quantifier"},
           {"a{3,x}", "expected a number"},
           {"a{x", "a { that begins no quantifier"},
           {"a{99999}", "repetitions"},
           {"a{10001}", "expected at most 10000 repetitions"},
           {"\\", "a \\ at the end"},
           {"[b-a]", "expected a range of two characters in their order"},
           {"[a-\\d]", "expected a range of two characters in their order"},
           {"\\xZZ", "expected 2 hexadecimal digits"},
           {"\\u00g0", "expected 4 hexadecimal digits"},
           {"\\x4", "expected 2 hexadecimal digits"},
           {"\\ud800", "half of a surrogate pair"},
           {"\\udfff", "half of a surrogate pair"}})
    expectError(ErrorCode::InvalidArgument, what, pattern(text));
  for (const char* text :
       {"[b-b]", "a{0}b", "a{10}", "\\ud7ff", "[]a]", "[a-]", "(?P<n>a)", "\\x4a"})
    pattern(text)();  // at the borders of what is refused
  expectError(ErrorCode::InvalidArgument, "allows the empty text alone", pattern(""));
  expectError(ErrorCode::Unsupported, "needs more than 100000 nodes",
              pattern("((a{100}){100}){100}"));
  const auto nested = [](int depth, const std::string& open, const std::string& close) {
    std::string text = "a";
    for (int i = 0; i < depth; ++i) text = open + text + close;
    return text;
  };
  expectError(ErrorCode::InvalidArgument, "groups within each other",
              [&] { Constraint::regex(nested(1000, "(", ")"), bytes()); });
  // A chain of references, each a schema within the one before.
  auto chained = [](int links) {
    Json definitions{{"a" + std::to_string(links), true}};
    for (int i = 0; i < links; ++i)
      definitions["a" + std::to_string(i)] = {{"$ref", "#/$defs/a" + std::to_string(i + 1)}};
    Constraint::jsonSchema(Json{{"$defs", definitions}, {"$ref", "#/$defs/a0"}}.dump(),
                           "schema.json", bytes());
  };
  EXPECT_NO_THROW(chained(30));  // 31 references and what `true` allows
  for (int links : {31, 63})
    expectError(ErrorCode::InvalidArgument,
                "that the tokenizer can spell and that ends within 32 nestings",
                [&] { chained(links); });
  expectError(ErrorCode::Unsupported, "more than 64 schemas within each other",
              [&] { chained(64); });
  ConstraintState state(Constraint::regex("ab", bytes()));
  expectError(ErrorCode::InvalidArgument, "does not allow the token 120 here",
              [&] { state.accept('x'); });
  expectError(ErrorCode::InvalidArgument, "does not allow the token 9999 here",
              [&] { state.accept(9999); });
}

}  // namespace
}  // namespace lathe
