// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/chat_template.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <ctime>

#include "runtime/jinja/interpreter.h"
#include "runtime/jinja/parser.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using json = nlohmann::ordered_json;
using test::expectError;

const std::string kFile = "t.jinja";

std::string render(const std::string& source, const json& variables,
                   const jinja::Limits& limits = {}) {
  const jinja::NodePtr root = jinja::Parser::parse(source, kFile);
  jinja::Dict given;
  for (auto& [name, value] : variables.items())
    given.set(name, jinja::Value::fromJson(JsonValue::parse(value.dump(), "v")));
  return jinja::Interpreter(kFile, limits, 0).render(*root, std::move(given));
}

class ChatGolden : public testing::Test {
 protected:
  static const json& golden() {
    static const json file = json::parse(
        test::readFile(std::string(LATHE_SOURCE_DIR) + "/tests/golden/chat/cases.json"));
    return file;
  }
  static json variablesOf(const json& c) {
    if (c.contains("source")) return golden()["values"];
    return {{"messages", golden()["talks"][c["talk"].get<size_t>()]},
            {"add_generation_prompt", c["prompt"]},
            {"tools", c["tools"].get<bool>() ? golden()["tools"] : json()},
            {"bos_token", "<s>"},
            {"eos_token", "</s>"}};
  }
};

// What Python makes of them.
TEST(ChatTemplate, TextsAreSplitAtSeparatorsOnTheirEdges) {
  const std::pair<const char*, const char*> cases[] = {
      {"','.rsplit(',')", R"(["", ""])"},      {"',x'.rsplit(',', 1)", R"(["", "x"])"},
      {"'x,'.rsplit(',', 1)", R"(["x", ""])"}, {"'a,b,c'.rsplit(',', 1)", R"(["a,b", "c"])"},
      {"''.rsplit(',')", R"([""])"},           {"'aaa'.rsplit('aa')", R"(["a", ""])"},
      {"'ab'.rsplit('ab')", R"(["", ""])"},    {"','.split(',')", R"(["", ""])"},
      {"',x'.split(',', 1)", R"(["", "x"])"},  {"'x,'.split(',')", R"(["x", ""])"},
      {"'aaa'.split('aa')", R"(["", "a"])"},   {"''.split(',')", R"([""])"}};
  for (auto [call, expected] : cases)
    EXPECT_EQ(render("{{ " + std::string(call) + " | tojson }}", json::object()), expected) << call;
}

TEST(ChatTemplate, LinesEndAsPythonsDo) {
  auto lines = [](const char* text) {
    return render("{{ t.splitlines() | tojson }}", {{"t", text}});
  };
  EXPECT_EQ(lines(""), "[]");
  EXPECT_EQ(lines("\n"), R"([""])");
  EXPECT_EQ(lines("a\r\nb\rc\n\nd"), R"(["a", "b", "c", "", "d"])");
  EXPECT_EQ(lines("a\n\r"), R"(["a", ""])");
  EXPECT_EQ(lines("a\xE2\x80\xA8"
                  "b\vc\x1c"
                  "d\n"),
            R"(["a", "b", "c", "d"])");
}

// As Jinja's filters: texts are equal whatever their case.
TEST(ChatTemplate, UniqueKeepsTheFirstOfEach) {
  const json words{{"x", {"b", "A", "B", "a", 1, "a"}}};
  EXPECT_EQ(render("{{ x | unique | list | tojson }}", words), R"(["b", "A", 1])");
  EXPECT_EQ(render("{{ x | unique(case_sensitive=true) | list | tojson }}", words),
            R"(["b", "A", "B", "a", 1])");
  EXPECT_EQ(render("{{ x | unique(case_sensitive=false) | list | tojson }}", words),
            R"(["b", "A", 1])");
  expectError(ErrorCode::Unsupported, "unique by an attribute",
              [&] { render("{{ x | unique(attribute='a') }}", words); });
}

TEST(ChatTemplate, NumbersAreReadAsPythonsIntAndFloat) {
  const std::pair<const char*, const char*> cases[] = {
      {"'+5' | int", "5"},       {"' -7 ' | int", "-7"},
      {"'+-5' | int", "0"},      {"'5.9' | int", "5"},
      {"'x' | int", "0"},        {"'x' | int(3)", "3"},
      {"'+1.5' | float", "1.5"}, {"'9007199254740993' | int", "9007199254740993"}};
  for (auto [call, expected] : cases)
    EXPECT_EQ(render("{{ " + std::string(call) + " }}", json::object()), expected) << call;
}

// As doubles they would be equal.
TEST(ChatTemplate, WholeNumbersAreComparedExactly) {
  const std::string source =
      "{{ n < m }} {{ n <= m }} {{ m > n }} {{ m <= n }} {{ n >= m }} {{ n == m }} {{ n < m + 0.0 "
      "}}";
  EXPECT_EQ(render(source, {{"n", 9007199254740992}, {"m", 9007199254740993}}),
            "True True True False False False False");
}

// What Jinja in Python writes.
TEST(ChatTemplate, ValuesAreWrittenAsPythonWritesThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"{{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ (1e308 * 10) - (1e308 * 10) }}", "inf -inf nan"},
      {"{{ [1e308 * 10, -1e308 * 10, (1e308 * 10) - (1e308 * 10), 0.5] | tojson }}",
       "[Infinity, -Infinity, NaN, 0.5]"},
      {"{{ [true, false, none] | tojson }} {{ false | tojson }}", "[true, false, null] false"},
      {R"({{ ['a\r\tb\n', '\x7f\x85', '\xff\xad\xa0', '\u2028', '\U000e0001', '\\', '~ \u00e9'] }})",
       R"(['a\r\tb\n', '\x7f\x85', 'ÿ\xad\xa0', '\u2028', '\U000e0001', '\\', '~ é'])"},
      {R"({{ ["it's", 'a"b', "'\""] }})", R"(["it's", 'a"b', '\'"'])"},
      {R"({{ '\u00e9\u20ac\U0001f600' | tojson(ensure_ascii=true) }})",
       R"("\u00e9\u20ac\ud83d\ude00")"},
      {R"({{ '~\x01\x1f\x7f\x80\b\f' | tojson(ensure_ascii=true) }})",
       R"("~\u0001\u001f\u007f\u0080\b\f")"},
      {R"({{ '\x01\x7f' | tojson }})", "\"\\u0001\x7f\""},
      {"{{ {'b': 1, 'a': [1, {}]} | tojson(indent=1, sort_keys=true) }}",
       "{\n \"a\": [\n  1,\n  {}\n ],\n \"b\": 1\n}"},
      {"{{ {'b': 1, 'a': [1, 'x']} | tojson(separators=['; ', ' = ']) }}",
       R"({"b" = 1; "a" = [1; "x"]})"},
      {"{{ () | tojson }} {{ (1,) | tojson }} {{ (1, 2) | tojson }}", "[] [1] [1, 2]"},
      {"{% set c = 1, %}{{ c | tojson }}{% for x in (1,) %}{{ x }}{% endfor %}", "[1]1"},
      {"{{ 'a\\\nb' }}", "ab"},
      {R"({{ 'a b\tc ' .split() | tojson }} {{ '  '.split() | tojson }} {{ 'x\x85y\xa0z'.split() | tojson }})",
       R"(["a", "b", "c"] [] ["x", "y", "z"])"},
      {"{{ 'a\nb\n\nc\n' | indent(2) | tojson }} {{ 'a\nb' | indent(1, true) | tojson }}",
       R"("a\n  b\n\n  c\n" " a\n b")"},
      {R"({{ '\x850\x85' | trim }}|{{ '\u3000a\u2003' | trim }}|{{ 'xx'.strip('x') }}|{{ '  ' | trim }}|)",
       "0|a|||"},
      {R"({{ '\x84a' | trim | length }})", "2"},
      {"{% raw %}{%{% endraw %}|", "{%|"},
      {"a\n  {% raw %}\n  x\n  {% endraw %}\nb", "a\n\n  x\nb"},
      {"{% raw %}\nx{% endraw %}\ny", "\nxy"},
      {"{% raw -%}\nx{% endraw +%}\ny", "x\ny"},
      {" {% raw %}x\n {%+ endraw %}|", "x\n |"},
      {"{%+ raw %}\n\nx {% endraw %}", "\n\nx "},
      {"a\n  {%- raw -%}\n  x\n  {%- endraw -%}\nb", "axb"},
      {R"({{ '\q' }} {{ 1_0 }} {{ 1_000 }} {{ 1e-3 }} {{ 1E+3 }} {{ 1E3 }} {{ '\ue000' | length }})",
       R"(\q 10 1000 0.001 1000.0 1000.0 1)"},
      {"{% for t in ['!=', '==', '<', '<=', '>', '>=', 'ne', 'eq', 'lt', 'le', 'gt', 'ge', "
       "'greaterthan', 'lessthan', 'equalto'] %}{{ [1, 2, 3] | select(t, 2) | join }} {% endfor %}",
       "13 2 1 12 3 23 13 2 1 12 3 23 3 1 2 "},
      {"{{ 0 is false }} {{ 1 is true }} {{ none is false }} {{ 'a' is true }} {{ true is true }} "
       "{{ false is false }} {{ true is false }} {{ true is integer }} {{ 1 is integer }}",
       "False False False False True True False False True"},
      {"{{ '0'.isdigit() }} {{ '9'.isdigit() }} {{ '/'.isdigit() }} {{ ':'.isdigit() }} "
       "{{ ''.isdigit() }} {{ '1a'.isdigit() }}",
       "True True False False False False"},
      {"{{ 'a--b--c'.rsplit('--') | tojson }} {{ 'a--b--c'.rsplit('--', 1) | tojson }}",
       R"(["a", "b", "c"] ["a--b", "c"])"},
      {"{{ [1] | tojson(indent=0) }} {{ {'b': 1, 'a': 2} | tojson(false, none, ['; ', '= '], true) "
       "}} {{ [1] | tojson(true, 1) }}",
       "[\n1\n] {\"a\"= 2; \"b\"= 1} [\n 1\n]"},
      {"{{ ['b', 'A', 'B'] | unique(true) | join }} {{ ['b', 'A', 'B'] | unique | join }}",
       "bAB bA"},
      {R"({{ '\uffff\U00010000' | tojson(ensure_ascii=true) }})", R"("\uffff\ud800\udc00")"},
      {"{{ 'heLLo wOrld-foo' | title }} {{ 'heLLo wOrld' | capitalize }}",
       "Hello World-Foo Hello world"},
      {"{{ -3 | abs }} {{ -2.5 | abs }} {{ '1e3' | int }} {{ '1e3' | float }}",
       "3 2.5 1000 1000.0"},
      {"{{ range is callable }} {{ 1 is callable }} {{ none is callable }}", "True False False"},
      {"{{ [1, 2, 2] | join(', ') }} {{ [1, 2] | join }} {{ [1] | join('x') }}", "1, 2, 2 12 1"},
  };
  for (auto [source, expected] : cases)
    EXPECT_EQ(render(source, json::object()), expected) << source;
}

TEST(ChatTemplate, NumbersAreComputedAsPythonComputesThem) {
  const std::pair<const char*, const char*> cases[] = {{"5.5 - 2", "3.5"},
                                                       {"2.0 ** 3", "8.0"},
                                                       {"2 ** -1", "0.5"},
                                                       {"2 ** 0", "1"},
                                                       {"7.5 // 2", "3.0"},
                                                       {"-7.5 // 2", "-4.0"},
                                                       {"-7.5 % 2", "0.5"},
                                                       {"7.5 % -2", "-0.5"},
                                                       {"7.5 % 2", "1.5"},
                                                       {"6.0 % 3", "0.0"},
                                                       {"1.5 * 2", "3.0"},
                                                       {"1 - 3", "-2"},
                                                       {"(-1) ** 3", "-1"},
                                                       {"(-1) ** 4", "1"},
                                                       {"(-1) ** 1", "-1"},
                                                       {"0 ** 0", "1"},
                                                       {"0 ** 5", "0"},
                                                       {"1 ** 9223372036854775807", "1"},
                                                       {"2 ** 62", "4611686018427387904"},
                                                       {"(-1) ** 9223372036854775807", "-1"},
                                                       {"(-2) ** 3", "-8"},
                                                       {"-7 // 2", "-4"},
                                                       {"7 // -2", "-4"},
                                                       {"-7 % 3", "2"},
                                                       {"7 % -3", "-2"},
                                                       {"-6 % 3", "0"},
                                                       {"-(2.5)", "-2.5"},
                                                       {"+(2.5)", "2.5"},
                                                       {"+(3)", "3"},
                                                       {"'abcde'[-9:2]", "ab"},
                                                       {"'abcde'[3:1:-1]", "dc"},
                                                       {"'abcde'[::-2]", "eca"},
                                                       {"'abcde'[4:-9:-1]", "edcba"},
                                                       {"'abcde'[9:0:-3]", "eb"},
                                                       {"'abcde'[1:4:9]", "b"},
                                                       {"''[::-1]", ""},
                                                       {"[1, 2, 3][5:]", "[]"},
                                                       {"[1, 2, 3][-1:-3:-1]", "[3, 2]"},
                                                       {"'abc'[::-9]", "c"},
                                                       {"'abc'[::9]", "a"}};
  for (auto [sum, expected] : cases)
    EXPECT_EQ(render("{{ " + std::string(sum) + " }}", json::object()), expected) << sum;
}

TEST(ChatTemplate, EqualIsWhatPythonCallsEqual) {
  const std::pair<const char*, bool> cases[] = {{"{'a': 1} == {'a': 1}", true},
                                                {"{'a': 1} == {'a': 2}", false},
                                                {"{'a': 1} == {'b': 1}", false},
                                                {"{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", true},
                                                {"{} == {'a': 1}", false},
                                                {"{'a': 1} == {}", false},
                                                {"{'a': 1} == {'a': 1, 'b': 2}", false},
                                                {"{} == []", false},
                                                {"[] == {}", false},
                                                {"{} == none", false},
                                                {"none == {}", false},
                                                {"1 == 'a'", false},
                                                {"'a' == 1", false},
                                                {"[1] == 'a'", false},
                                                {"'a' == [1]", false},
                                                {"none == none", true},
                                                {"none == 0", false},
                                                {"x == none", false},
                                                {"1.0 == 1", true},
                                                {"true == 1", true},
                                                {"range == none", false},
                                                {"n == none", false},
                                                {"none == n", false},
                                                {"n == {'x': 1}", false},
                                                {"{'x': 1} == n", false},
                                                {"n == 1", false},
                                                {"n == m", false},
                                                {"n == n", true},
                                                {"not {}", true},
                                                {"not {'a': 0}", false},
                                                {"not range", false},
                                                {"not n", false},
                                                {"not []", true},
                                                {"not 0.0", true},
                                                {"not none", true}};
  const std::string spaces =
      "{% set n = namespace(x=1) %}{% set m = namespace(x=1) %}{% set o = namespace(x=2) %}";
  for (auto [question, expected] : cases)
    EXPECT_EQ(render(spaces + "{{ " + question + " }}", json::object()),
              expected ? "True" : "False")
        << question;
}

// str.isspace of Python.
TEST(ChatTemplate, SpaceIsWhatPythonCallsSpace) {
  const std::u32string spaces =
      U"\t\n\v\f\r\x1c\x1d\x1e\x1f "
      U"\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
      U"\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";
  for (char32_t c = 0; c < 0x3100; ++c)
    EXPECT_EQ(jinja::isSpace(c), spaces.find(c) != spaces.npos) << std::hex << uint32_t(c);
}

// Those of Llama 3.1 and Qwen define several, one behind the other.
TEST(ChatTemplate, WhatIsBesideAListOrATextIsUndefined) {
  for (const char* whole : {"[1, 2]", "'ab'"})
    for (auto [index, isThere] : {std::pair("-1000000000000", false),
                                  {"-3", false},
                                  {"-2", true},
                                  {"1", true},
                                  {"2", false},
                                  {"1000000000000", false}})
      EXPECT_EQ(render("{{ " + std::string(whole) + "[" + index + "] is defined }}", json::array()),
                isThere ? "True" : "False")
          << whole << index;
}

TEST(ChatTemplate, MapHasItsArgumentsInAnyOrder) {
  for (const char* arguments : {"attribute='a', default=5", "default=5, attribute='a'"})
    EXPECT_EQ(
        render("{{ [{'a': 1}, {}] | map(" + std::string(arguments) + ") | list }}", json::array()),
        "[1, 5]")
        << arguments;
}

// As Jinja's and Python's own do.
TEST(ChatTemplate, ArgumentsThatAreGivenAsTheirDefaults) {
  for (auto [expression, expected] :
       {std::pair("'' | default('d', false)", ""),
        {"'' | default('d', true)", "d"},
        {"x | default('d', false)", "d"},
        {"range(3, 0, -1) | list", "[3, 2, 1]"},
        {"range(3, -1, -2) | list", "[3, 1]"},
        {"range(0, 3, -1) | list", "[]"},
        {"'one-two <three [four {five (six' | title", "One-Two <Three [Four {Five (Six"},
        {"'x2y.z' | title", "X2y.z"},
        {"'one-two <three x2y'.title()", "One-Two <Three X2Y"}})
    EXPECT_EQ(render("{{ " + std::string(expression) + " }}", json::object()), expected)
        << expression;
  EXPECT_EQ(render("{% macro a() %}{% endmacro %}{{ a == x }}{{ a == none }}", json::object()),
            "FalseFalse");
}

TEST(ChatTemplate, MacrosFollowEachOther) {
  EXPECT_EQ(render("{% macro a() %}A{% endmacro %}{% macro b(x, y=2,) %}B{{ a() }}{{ y }}"
                   "{% endmacro %}{{ b(1) }}{% for i in [1] %}{{ i }}{% endfor %}"
                   "{% macro c() %}C{% endmacro %}{{ c() }}",
                   json::object()),
            "BA21C");
}

TEST_F(ChatGolden, RendersAsPythonsJinjaDoes) {
  size_t texts = 0, refused = 0;
  for (const json& c : golden()["cases"]) {
    const std::string source = c.contains("source")
                                   ? c["source"]
                                   : golden()["templates"][c["template"].get<std::string>()];
    if (c.contains("text")) {
      ++texts;
      try {
        EXPECT_EQ(render(source, variablesOf(c)), c["text"].get<std::string>()) << c;
      } catch (const Error& e) {
        ADD_FAILURE() << c << "\n" << e.what();
      }
    } else {
      ++refused;
      EXPECT_THROW(render(source, variablesOf(c)), Error) << c;
    }
  }
  EXPECT_GT(texts, 700u);
  EXPECT_GT(refused, 100u);
}

struct Refused {
  const char* source;
  ErrorCode code;
  const char* message;
};
constexpr ErrorCode kBad = ErrorCode::InvalidFile, kUnsupported = ErrorCode::Unsupported;
const Refused kRefused[] = {
    {"\n\n{% include 'x' %}", kUnsupported,
     "t.jinja line 3: {% include %} is not supported in chat templates"},
    {"{% import 'x' as y %}", kUnsupported, "{% import %} is not supported"},
    {"{{ [2, 1] | sort }}", kUnsupported, "the filter sort is not supported"},
    {"{{ 1 is sameas 1 }}", kUnsupported, "the test sameas is not supported"},
    {"{{ 'a'.zfill(3) }}", kUnsupported, "the method zfill of str is not supported"},
    {"{{ '%d' % 3 }}", kUnsupported, "formatting by % is not supported"},
    {"{{ f(*x) }}", kUnsupported, "f(*arguments) is not supported"},
    {"{% for x in [1] recursive %}{% endfor %}", kUnsupported, "a recursive loop is not supported"},
    {"{% for x in [1] %}{% macro m() %}{% endmacro %}{% endfor %}", kUnsupported,
     "a macro inside of a loop or a macro is not supported"},
    {"{% set n = namespace() %}{{ [n] }}", kUnsupported, "a namespace inside of another value"},
    {"{{ {1: 2} }}", kUnsupported, "a key that is no text is not supported"},
    {"a\n{% if x %}", kBad, "t.jinja line 2: expected {% endif %}, got the end of the template"},
    {"{{ 1 +", kBad, "expected }} at the end of the tag"},
    {"{{ x.y.z }}", kBad, "line 1: 'x' is undefined"},
    {"{{ 'a' + 1 }}", kBad, "expected two of a kind for +, got str and int"},
    {"{{ 9223372036854775807 + 1 }}", kBad, "the number is too large"},
    {"{{ (0 - 9223372036854775807 - 1) // -1 }}", kBad, "the number is too large"},
    {"{{ 9223372036854775808 }}", kBad, "the number 9223372036854775808 is too large"},
    {"{{ 2 ** 63 }}", kBad, "the number is too large"},
    {"{{ -(0 - 9223372036854775807 - 1) }}", kBad, "line 1: the number is too large"},
    {"{{ (0 - 9223372036854775807 - 1) | abs }}", kBad, "line 1: the number is too large"},
    {"{{ -'a' }}", kBad, "line 1: expected a number behind -, got str"},
    {"{{ x + 1 }}", kBad, "line 1: 'x' is undefined"},
    {"{{ 1 < y }}", kBad, "line 1: 'y' is undefined"},
    {"{{ 'a' in z }}{{ z in 'a' }}", kBad, "line 1: 'z' is undefined"},
    {"{{ w.strip() }}", kBad, "line 1: 'w' is undefined"},
    {"{{ 1 < 'a' }}", kBad, "expected two of a kind for <, got int and str"},
    {"{{ 1.5 <= 'a' }}", kBad, "expected two of a kind for <=, got float and str"},
    {"{{ 'a' > 1.5 }}", kBad, "expected two of a kind for >, got str and float"},
    {"{{ [1] < [2] }}", kBad, "expected two of a kind for <, got list and list"},
    {"{{ range(1 2) }}", kBad, "line 1: expected )"},
    {"{{ 'a'.split('b', 1, 2) }}", kBad, "expected at most 2 "},
    {"{{ 'a'.join([], 1) }}", kBad, "expected at most 1 "},
    {"{{ 'a'.startswith('a', 1) }}", kBad, "expected at most 1 "},
    {"{{ 'a'.replace('a', 'b', 1, 2) }}", kBad, "expected at most 3 "},
    {"{{ 'a'.upper(1) }}", kBad, "expected at most 0 "},
    {"{{ 'a'.splitlines(1) }}", kBad, "expected at most 0 "},
    {"{{ {}.get('a', 1, 2) }}", kBad, "expected at most 2 "},
    {"{{ [1] | join(', ', 'a') }}", kUnsupported, "join by an attribute is not supported"},
    {"{{ [1] | unique(true, 'a') }}", kUnsupported, "unique by an attribute is not supported"},
    {"{{ '\\udfff' }}", kBad, "the escape \\u names no character"},
    {"{# a", kBad, "line 1: expected #} at the end of the comment"},
    {"{% macro m() %}{% macro n() %}{% endmacro %}{% endmacro %}", kUnsupported,
     "a macro inside of a loop or a macro is not supported"},
    {"{{ 1 in 2 }}", kBad, "expected a list, a dict or text behind in, got int"},
    {"{% raw %}\n\n{% endraw %}\n{{ 12ab }}", kBad, "t.jinja line 4: expected a number"},
    {"{{ 12ab }}", kBad, "expected a number in decimal digits"},
    {"{{ x.0 }}", kUnsupported, "an index behind a dot is not supported"},
    {"{{ [1] | join(', ', attribute='a') }}", kUnsupported,
     "join by an attribute is not supported"},
    {"{{ {'a': namespace()} }}", kUnsupported, "a namespace inside of another value"},
    {"{{ dict(a=namespace()) }}", kUnsupported, "a namespace inside of another value"},
    {"{% set n = namespace() %}{% set n.a = namespace() %}", kUnsupported,
     "a namespace inside of another value"},
    {"{% for x in 5 %}{% endfor %}", kBad, "expected a list, got int"},
    {"{% set t = 'x' * 1000001 %}{% for c in t %}{% endfor %}", kBad,
     "a loop over more than 1000000 characters"},
    {"{% set a, b = [1] %}", kBad, "expected 2 values, got 1"},
    {"{% set x = 1 %}{% set x.a = 1 %}", kBad, "expected a namespace to set x.a, got int"},
    {"{% raw %} {% endraw", kBad, "line 1"},
    {"{{ 1 // 0 }}", kBad, "division by zero"},
    {"{{ 5 % 0 }}", kBad, "division by zero"},
    {"{{ 1 / 0 }}", kBad, "division by zero"},
    {"{{ 4 is divisibleby 0 }}", kBad, "division by zero"},
    {"{{ 4 is divisibleby }}", kBad, "the test divisibleby takes one operand"},
    {"{{ 4 is divisibleby('a') }}", kBad, "expected a whole number, got str"},
    {"{{ 'abc'[::0] }}", kBad, "a slice's step is not 0"},
    {"{{ 'abc'[1:2 3] }}", kBad, "expected ]"},
    {"{{ 'abc'[1 2] }}", kBad, "expected ]"},
    {"{{ 3[1:] }}", kBad, "expected a list or text in front of [:], got int"},
    {"{% set x = 3 %}{{ x() }}", kBad, "expected a function, got int"},
    {"{{ 'a'.strip(chars='a', 'b') }}", kBad, "NAME=VALUE behind another"},
    {"{{ 'a'.strip('b', chars='a') }}", kBad, "expected at most 1 "},
    {"{{ 'a'.split('b', sep='a') }}", kBad, "the argument sep is given twice"},
    {"{{ 'a'.join([1]) }}", kBad, "expected text, got int"},
    {"{{ 'a'.join() }}", kBad, "join takes a list"},
    {"{{ 'a'.replace('a') }}", kBad, "replace takes an old and a new text"},
    {"{{ 'a'.replace('', 'b') }}", kUnsupported, "replace of an empty text"},
    {"{{ 'a'.split('') }}", kBad, "split takes a separator that is not empty"},
    {"{{ 'a b'.split(none, 1) }}", kUnsupported, "split at spaces with a limit"},
    {"{{ 'a'.startswith() }}", kBad, "startswith takes a text"},
    {"{{ 'a'.find('a', 1) }}", kUnsupported, "find of a part of a text"},
    {"{{ 'a'.count('') }}", kUnsupported, "count of an empty text"},
    {"{{ {}.get() }}", kBad, "get takes a key"},
    {"{{ dict([1]) }}", kUnsupported, "dict() of a list or a dict"},
    {"{{ namespace({}) }}", kUnsupported, "namespace() of a list or a dict"},
    {"{{ range() }}", kBad, "range takes 1 to 3 numbers"},
    {"{{ range(1, 2, 0) }}", kBad, "the step of range is not 0"},
    {"{{ range(1, 2, 3, 4) }}", kBad, "expected at most 3 "},
    {"{{ strftime_now() }}", kBad, "strftime_now takes a format"},
    {"{{ [1] | map }}", kBad, "map takes a filter or attribute=NAME"},
    {"{{ [1] | selectattr }}", kBad, "selectattr takes the name of an attribute"},
    {"{{ [1] | tojson(separators=[',']) }}", kBad, "separators are two texts"},
    {"{{ range | tojson }}", kBad, "expected what JSON can hold"},
    {"{{ '\\x4g' }}", kBad, "expected 2 hexadecimal digits after \\x"},
    {"{{ '\\U0001F60' }}", kBad, "expected 8 hexadecimal digits after \\U"},
    {"{{ '\\ud800' }}", kBad, "the escape \\u names no character"},
    {"{{ '\\U00110000' }}", kBad, "the escape \\U names no character"},
    {"{{ 'a }}", kBad, "expected the end of the text in quotes"},
    {"{% elif x %}", kBad, "unexpected {% elif %}"},
    {"{% endfor %}", kBad, "unexpected {% endfor %}"},
    {"{% break %}", kBad, "expected break inside of a loop"},
    {"{% set x | trim %} a {% endset %}", kUnsupported, "{% set %} with a filter and a body"},
    {"{% set a, b %}x{% endset %}", kBad, "expected ="},
    {"{% macro m(a=1, b) %}{% endmacro %}", kBad,
     "= behind a parameter that follows one with a default"},
    {"{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", kBad, "macro m takes no argument b"},
    {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", kBad, "macro m takes 1 arguments, got 2"},
    {"{{ raise_exception('roles must alternate') }}", ErrorCode::InvalidArgument,
     "line 1: the chat template refuses this conversation: roles must alternate"},
};
TEST(ChatTemplate, NamesWhatItRefuses) {
  for (const Refused& bad : kRefused) {
    SCOPED_TRACE(bad.source);
    expectError(bad.code, bad.message, [&] { render(bad.source, json::object()); });
  }
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// Whatever a file asks for, it ends, in bounded memory and on a bounded stack.
TEST(ChatTemplate, HasLimits) {
  auto expectLimit = [](const std::string& source, const char* message) {
    SCOPED_TRACE(source.substr(0, 80));
    expectError(kBad, message, [&] { render(source, json::object()); });
  };
  const std::string loop = "{% for x in range(100000) %}";
  expectLimit("{% set r = range(100000) %}{% for x in r %}{% for x in r %}{% endfor %}{% endfor %}",
              "takes more than 5000000 steps");
  // Lists that share what they hold are small, and their texts are not.
  const std::string doubled =
      "{% set n = namespace(l=['x']) %}{% for i in range(40) %}{% set n.l = [n.l, n.l] %}{% endfor "
      "%}";
  expectLimit(doubled + "{{ n.l }}", "makes more than 67108864 bytes");
  const std::string wide =
      "{% set n = namespace(l=['x']) %}{% for i in range(20) %}{% set n.l = [n.l, n.l] %}{% endfor "
      "%}";
  expectLimit(wide + "{% for i in range(1000) %}{% if n.l == n.l %}{% endif %}{% endfor %}",
              "takes more than 5000000 steps");
  expectLimit(loop + loop + "{% endfor %}{% endfor %}", "makes more than 67108864 bytes");
  expectLimit("{{ [] " + repeated("| tojson ", 40) + "}}", "makes more than 67108864 bytes");
  expectLimit("{% for x in range(100001) %}{% endfor %}", "range of more than 100000");
  expectLimit("{{ range(9223372036854775807) }}", "range of more than 100000");
  expectLimit(loop + "{{ 'x' * 1000 }}{% endfor %}", "writes more than 16777216 bytes");
  expectLimit("{{ 'x' * 9223372036854775807 }}", "makes more than 67108864 bytes");
  expectLimit("{{ [1] * 4611686018427387904 }}", "makes more than 67108864 bytes");
  expectLimit(
      "{% set n = namespace(t='x') %}{% for i in range(99) %}{% set n.t = n.t + n.t %}"
      "{% endfor %}",
      "makes more than 67108864 bytes");
  expectLimit(
      "{% set n = namespace(t='x') %}{% for i in range(99) %}{% set n.t = "
      "n.t.replace('x', 'xxxxxxxx') %}{% endfor %}",
      "makes more than 67108864 bytes");
  expectLimit(
      "{% set n = namespace(l=[]) %}{% for i in range(99) %}{% set n.l = [n.l] %}"
      "{% endfor %}",
      "lists and dicts deeper than 64 levels");
  expectLimit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "call each other more than 40");
  expectLimit("{{ " + repeated("(", 100'000) + "1" + repeated(")", 100'000) + " }}",
              "nested deeper than 60 levels");
  expectLimit("{{ " + repeated("- ", 100'000) + "1 }}", "nested deeper than 60 levels");
  expectLimit("{{ " + repeated("not ", 100'000) + "1 }}", "deeper than 200 operations");
  expectLimit("{{ 1" + repeated(" + 1", 100'000) + " }}", "deeper than 200 operations");
  expectLimit("{{ x" + repeated(".x", 100'000) + " }}", "deeper than 200 operations");
  expectLimit("{{ x" + repeated("|trim", 100'000) + " }}", "deeper than 200 operations");
  expectLimit(repeated("{% if x %}", 100'000), "nested deeper than 60 levels");
  expectError(kBad, "a chat template of 2000000 bytes, expected at most 1048576",
              [] { ChatTemplate::parse(std::string(2'000'000, 'x'), kFile); });
  expectError(kBad, "t.jinja: expected valid UTF-8, got the byte 0xff at position 1",
              [] { ChatTemplate::parse("a\xff", kFile); });
}

// A text of a conversation is data: what looks like a tag stays as it is.
TEST(ChatTemplate, MessagesAreNoTemplates) {
  const ChatTemplate t = ChatTemplate::parse(
      "{% for m in messages %}[{{ m.role }}|{{ m['content'] }}]{% endfor %}{{ eos_token }}"
      "{% if add_generation_prompt %}>{% endif %}",
      kFile, {{"eos_token", "</s>"}});
  const std::vector<ChatMessage> talk = {{"user", "{{ eos_token }} {% if %}"}, {"bot", "<b>'\""}};
  EXPECT_EQ(t.render(talk), "[user|{{ eos_token }} {% if %}][bot|<b>'\"]</s>>");
  EXPECT_EQ(t.render(talk, {.addGenerationPrompt = false}),
            "[user|{{ eos_token }} {% if %}][bot|<b>'\"]</s>");
  expectError(ErrorCode::InvalidArgument, "message 0: expected valid UTF-8",
              [&] { t.render(std::vector<ChatMessage>{{"user", "\xff"}}); });
  EXPECT_EQ(t.renderJson(R"([{"role": "a", "content": 5}])", "m.json"), "[a|5]</s>>");
  expectError(kBad, "m.json: expected a list of messages, got an object",
              [&] { t.renderJson("{}", "m.json"); });
  expectError(kBad, "the key \"role\" is missing", [&] { t.renderJson("[{}]", "m.json"); });
  expectError(kBad, "t.jinja line 2: 'x' is undefined",
              [] { ChatTemplate::parse("\n{{ x.y.z }}", kFile).render({}); });
}

TEST(ChatTemplate, TellsTheDateThatItIsGiven) {
  const ChatTemplate t = ChatTemplate::parse("{{ strftime_now('%d %b %Y') }}", kFile);
  EXPECT_EQ(t.render({}, {.date = 86400}), "02 Jan 1970");
  EXPECT_EQ(t.render({}).size(), 11u);
  // 511 bytes fit, what is longer is refused.
  const std::string text(511, 'x');
  EXPECT_EQ(render("{{ strftime_now(t) }}", {{"t", text}}), text);
  EXPECT_EQ(render("{{ strftime_now('') }}", json::object()), "");
  expectError(kBad, "strftime_now makes at most 511 bytes",
              [&] { render("{{ strftime_now(t) }}", {{"t", text + "x"}}); });
}

// 14 hours to the east of UTC: POSIX counts to the west.
TEST(ChatTemplate, TellsTheDateOfTheTimeZone) {
  setenv("TZ", "East-14", 1);
  tzset();
  const char* format = "%Y-%m-%d %H";
  auto inTheEast = [&] {
    const time_t now = std::time(nullptr) + 14 * 3600;
    tm fields{};
    char text[16];
    std::strftime(text, sizeof(text), format, gmtime_r(&now, &fields));
    return std::string(text);
  };
  const ChatTemplate t =
      ChatTemplate::parse("{{ strftime_now('" + std::string(format) + "') }}", kFile);
  const std::string before = inTheEast(), told = t.render({}), after = inTheEast();
  EXPECT_TRUE(told == before || told == after) << told << ", not " << before;
  unsetenv("TZ");
  tzset();
}

TEST(ChatTemplate, IsFoundInAFolder) {
  test::TemporaryFolder folder;
  EXPECT_FALSE(ChatTemplate::load(folder.path()));
  folder.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_FALSE(ChatTemplate::load(folder.path()));
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
                   "chat_template": "{{ bos_token }}a{{ eos_token }}{{ pad_token }}"})");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "<s>a</s>");
  folder.write("chat_template.jinja", "{{ bos_token }}b");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "<s>b");
  auto find = [](const char* config) { return ChatTemplate::find(config, "", "m"); };
  EXPECT_EQ(find(R"({"chat_template": [{"name": "rag", "template": "r"},
                                       {"name": "default", "template": "d"}]})")
                ->render({}),
            "d");
  expectError(kBad, "m/tokenizer_config.json: chat_template: expected a template named \"default\"",
              [&] { find(R"({"chat_template": [{"name": "rag", "template": "r"}]})"); });
  for (const auto& [value, got] : {std::pair("{}", "an object"), {"5", "5"}, {"true", "true"}})
    expectError(kBad,
                std::string("m/tokenizer_config.json: chat_template: expected a template or an "
                            "array of templates with names, got ") +
                    got,
                [&] { find((std::string(R"({"chat_template": )") + value + "}").c_str()); });
  expectError(kUnsupported, "m/tokenizer_config.json: chat_template line 1: {% extends %}",
              [&] { find(R"({"chat_template": "{% extends 'x' %}"})"); });
}

}  // namespace
}  // namespace lathe
