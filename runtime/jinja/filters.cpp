// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "runtime/jinja/interpreter.h"

namespace lathe::jinja {

Value Interpreter::filter(const Node& node, const std::string& name, const Value& value,
                          const Arguments& arguments) {
  bool found = true;
  if (name == "default" || name == "d") {
    const Value* otherwise = argument(node, arguments, 0, "default_value");
    const Value* boolean = argument(node, arguments, 1, "boolean");
    const bool lacks = value.isUndefined() || (boolean && boolean->isTrue() && !value.isTrue());
    return !lacks ? value : otherwise ? *otherwise : Value("");
  }
  if (name == "tojson") return json(node, value, arguments);
  if (name == "safe" || name == "string") return value.text();
  if (name == "length" || name == "count") {
    if (auto* text = value.asText()) return int64_t(codePoints(*text).size());
    if (auto* list = value.asList()) return int64_t(list->size());
    if (auto* dict = value.asDict()) return int64_t(dict->members.size());
    if (value.isUndefined()) return int64_t(0);
    throw fail(node, "expected a list, a dict or text to count, got " + value.typeName());
  }
  Value result = textFilter(node, name, value, arguments, found);
  if (found) return result;
  result = listFilter(node, name, value, arguments, found);
  if (found) return result;
  throw unsupported(node, "the filter " + name);
}

namespace {
// Unlike Python's method, a word ends at spaces, hyphens and brackets alone.
std::string titleFilter(const std::string& text) {
  std::string word, result;
  auto finish = [&] {
    result += changeCase(word, Case::Capitalized);
    word.clear();
  };
  for (char32_t c : codePoints(text)) {
    const bool ends = isSpace(c) || (c < 0x80 && std::string_view("-({[<").find(char(c)) !=
                                                     std::string_view::npos);
    if (ends) finish();
    (ends ? result : word) += fromCodePoints({&c, 1});
  }
  finish();
  return result;
}
}  // namespace

Value Interpreter::textFilter(const Node& node, const std::string& name, const Value& value,
                              const Arguments& arguments, bool& found) {
  found = true;
  if (name == "trim") {
    const Value* set = argument(node, arguments, 0, "chars");
    return strip(value.text(), true, true,
                 set && !set->isNone() ? &expectText(node, *set) : nullptr);
  }
  if (name == "title") return titleFilter(value.text());
  if (name == "upper" || name == "lower" || name == "capitalize" || name == "replace")
    return textMethod(node, value.text(), name, arguments);
  if (name == "indent") {
    const Value* width = argument(node, arguments, 0, "width");
    const Value* first = argument(node, arguments, 1, "first");
    const std::string by(size_t(std::clamp<int64_t>(width ? expectInt(node, *width) : 4, 0, 1000)),
                         ' ');
    std::string text = first && first->isTrue() ? by : "";
    const std::string source = value.text();
    for (size_t i = 0; i < source.size(); ++i) {
      text += source[i];
      // An empty line stays empty.
      if (source[i] != '\n' || i + 1 == source.size() || source[i + 1] == '\n') continue;
      spendBytes(node, by.size());
      text += by;
    }
    return text;
  }
  if (name == "int" || name == "float") {
    const Value* otherwise = argument(node, arguments, 0, "default");
    auto number = value.asNumber();
    if (auto* text = value.asText()) {
      std::string plain = strip(*text, true, true);
      if (plain.starts_with('+') && !plain.starts_with("+-")) plain.erase(0, 1);
      auto parse = [&](auto& to) {
        const char *begin = plain.data(), *end = begin + plain.size();
        const auto [at, error] = std::from_chars(begin, end, to);
        return error == std::errc() && at == end;
      };
      int64_t whole = 0;
      double real = 0;
      if (name == "int" && parse(whole)) return whole;
      if (parse(real)) number = real;
    }
    if (!number || !std::isfinite(*number) || std::abs(*number) > 9e18)
      return otherwise ? *otherwise : name == "int" ? Value(int64_t(0)) : Value(0.0);
    if (name == "float") return *number;
    return value.asInt() ? *value.asInt() : int64_t(*number);
  }
  if (name == "abs") {
    if (auto* number = value.asFloat()) return std::abs(*number);
    const int64_t number = expectInt(node, value);
    if (number == INT64_MIN) throw fail(node, "the number is too large");
    return std::abs(number);
  }
  found = false;
  return {};
}

Value Interpreter::listFilter(const Node& node, const std::string& name, const Value& value,
                              const Arguments& arguments, bool& found) {
  found = true;
  if (name == "items") {
    if (value.isUndefined()) return List{};
    return callMethod(node, value, "items", {});
  }
  if (name == "map") return map(node, value, arguments);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return select(node, name, value, arguments);
  if (name == "reverse" && value.asText()) {
    std::u32string points = codePoints(*value.asText());
    std::ranges::reverse(points);
    return fromCodePoints(points);
  }
  static constexpr std::string_view kOfLists[] = {"list",    "first",  "last",
                                                  "reverse", "unique", "join"};
  if (std::ranges::find(kOfLists, name) == std::end(kOfLists)) return found = false, Value();
  List items = itemsOf(node, value);
  spend(node, items.size());
  if (name == "list") return items;
  if (name == "first") return items.empty() ? Value(Undefined{"the first item"}) : items.front();
  if (name == "last") return items.empty() ? Value(Undefined{"the last item"}) : items.back();
  if (name == "reverse") return std::ranges::reverse(items), items;
  if (name == "unique") {
    const Value* cased = argument(node, arguments, 0, "case_sensitive");
    if (argument(node, arguments, 1, "attribute"))
      throw unsupported(node, "unique by an attribute");
    auto keyOf = [&](const Value& item) {
      const std::string* text = cased && cased->isTrue() ? nullptr : item.asText();
      return text ? Value(changeCase(*text, Case::Lower)) : item;
    };
    List once, keys;
    for (const Value& item : items) {
      spend(node, keys.size());
      Value key = keyOf(item);
      if (std::ranges::find(keys, key) != keys.end()) continue;
      keys.push_back(std::move(key));
      once.push_back(item);
    }
    return once;
  }
  const Value* between = argument(node, arguments, 0, "d");
  if (argument(node, arguments, 1, "attribute")) throw unsupported(node, "join by an attribute");
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string part = (i && between ? between->text() : "") + items[i].text();
    spendBytes(node, part.size());
    text += part;
  }
  return text;
}

Value Interpreter::map(const Node& node, const Value& value, const Arguments& arguments) {
  List mapped;
  const Value* byName = nullptr;
  const Value* otherwise = nullptr;
  for (auto& [key, given] : arguments.named) {
    if (key == "attribute") byName = &given;
    if (key == "default") otherwise = &given;
  }
  Arguments rest;
  if (!byName && arguments.values.empty()) throw fail(node, "map takes a filter or attribute=NAME");
  if (!byName) rest.values.assign(arguments.values.begin() + 1, arguments.values.end());
  for (const Value& item : value.isTrue() ? itemsOf(node, value) : List{}) {
    spend(node, 1);
    Value result = byName ? attribute(node, item, expectText(node, *byName))
                          : filter(node, expectText(node, arguments.values[0]), item, rest);
    mapped.push_back(byName && otherwise && result.isUndefined() ? *otherwise : std::move(result));
  }
  return mapped;
}

// By a test of the items or of one attribute; without a test by what is true.
Value Interpreter::select(const Node& node, const std::string& name, const Value& value,
                          const Arguments& arguments) {
  const bool byAttribute = name.ends_with("attr"), wanted = name.starts_with("select");
  const size_t testAt = byAttribute ? 1 : 0;
  if (arguments.values.size() < testAt) throw fail(node, name + " takes the name of an attribute");
  Arguments rest;
  if (arguments.values.size() > testAt)
    rest.values.assign(arguments.values.begin() + ptrdiff_t(testAt) + 1, arguments.values.end());
  List chosen;
  for (const Value& item : value.isTrue() ? itemsOf(node, value) : List{}) {
    spend(node, 1);
    const Value asked =
        byAttribute ? attribute(node, item, expectText(node, arguments.values[0])) : item;
    const bool holds = arguments.values.size() > testAt
                           ? test(node, expectText(node, arguments.values[testAt]), asked, rest)
                           : asked.isTrue();
    if (holds == wanted) chosen.push_back(item);
  }
  return chosen;
}

// With the spelling of Hugging Face's libraries: json.dumps, which leaves all characters as they
// are.
Value Interpreter::json(const Node& node, const Value& value, const Arguments& arguments) {
  JsonStyle style;
  const Value* ascii = argument(node, arguments, 0, "ensure_ascii");
  style.ascii = ascii && ascii->isTrue();
  if (const Value* indent = argument(node, arguments, 1, "indent"); indent && !indent->isNone()) {
    style.indent = std::clamp<int64_t>(expectInt(node, *indent), 0, 64);
    style.item = ",";
  }
  if (const Value* separators = argument(node, arguments, 2, "separators");
      separators && !separators->isNone()) {
    const List pair = itemsOf(node, *separators);
    if (pair.size() != 2) throw fail(node, "separators are two texts");
    style.item = expectText(node, pair[0]);
    style.key = expectText(node, pair[1]);
  }
  const Value* sorted = argument(node, arguments, 3, "sort_keys");
  style.sorted = sorted && sorted->isTrue();
  auto text = toJson(value, style);
  if (!text) throw fail(node, "expected what JSON can hold, got " + value.typeName());
  return std::move(*text);
}

}  // namespace lathe::jinja
