// SPDX-License-Identifier: Apache-2.0
// The functions of the environment and the methods of text and dicts.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "runtime/jinja/interpreter.h"

namespace lathe::jinja {

Value Interpreter::callGlobal(const Node& node, const std::string& name,
                              const Arguments& arguments) {
  if (name == "range") return range(node, arguments);
  if (name == "raise_exception") {
    const Value* message = argument(node, arguments, 0, "message");
    throw errorAt(
        file_, node.line,
        "the chat template refuses this conversation: " + (message ? message->text() : ""),
        ErrorCode::InvalidArgument);
  }
  if (name == "strftime_now") {
    const Value* format = argument(node, arguments, 0, "format");
    if (!format) throw fail(node, "strftime_now takes a format");
    const std::string& text = expectText(node, *format);
    if (text.empty()) return text;
    const time_t seconds = time_t(date_);
    tm fields{};
    gmtime_r(&seconds, &fields);
    std::string buffer(512, '\0');
    const size_t length = std::strftime(buffer.data(), buffer.size(), text.c_str(), &fields);
    if (length == 0) throw fail(node, "strftime_now makes at most 511 bytes");
    return buffer.substr(0, length);
  }
  Dict members;
  if (!arguments.values.empty()) throw unsupported(node, name + "() of a list or a dict");
  for (auto& [key, value] : arguments.named) {
    if (value.asNamespace()) throw unsupported(node, "a namespace inside of another value");
    members.set(key, value);
  }
  if (name == "dict") return members;
  return Namespace{std::make_shared<Dict>(std::move(members))};
}

Value Interpreter::range(const Node& node, const Arguments& arguments) {
  expectCount(node, arguments, 3);
  if (arguments.values.empty()) throw fail(node, "range takes 1 to 3 numbers");
  auto number = [&](size_t i) { return expectInt(node, arguments.values[i]); };
  const bool hasBegin = arguments.values.size() > 1;
  const int64_t begin = hasBegin ? number(0) : 0, end = number(hasBegin ? 1 : 0);
  const int64_t step = arguments.values.size() > 2 ? number(2) : 1;
  if (step == 0) throw fail(node, "the step of range is not 0");
  List list;
  constexpr size_t kMost = 100'000;  // as in Jinja's sandbox
  for (__int128 i = begin; step > 0 ? i < end : i > end; i += step) {
    if (list.size() == kMost) throw fail(node, fmt::format("range of more than {}", kMost));
    list.push_back(int64_t(i));
  }
  return list;
}

Value Interpreter::callMethod(const Node& node, const Value& self, const std::string& name,
                              const Arguments& arguments) {
  if (auto* undefined = self.asUndefined())
    throw fail(node, "'" + undefined->name + "' is undefined");
  if (auto* text = self.asText()) return textMethod(node, *text, name, arguments);
  if (auto* dict = self.asDict()) {
    if (name == "get") {
      expectCount(node, arguments, 2);
      if (arguments.values.empty()) throw fail(node, "get takes a key");
      const Value& key = arguments.values[0];
      if (const Value* member = key.asText() ? dict->find(*key.asText()) : nullptr) return *member;
      const Value* otherwise = argument(node, arguments, 1, "default");
      return otherwise ? *otherwise : Value(None{});
    }
    List list;
    const bool known = name == "items" || name == "keys" || name == "values";
    for (auto& [key, value] : dict->members) {
      if (name == "items") list.push_back(List{key, value});
      if (name == "keys") list.push_back(key);
      if (name == "values") list.push_back(value);
    }
    if (known) return list;
  }
  throw unsupported(node, fmt::format("the method {} of {}", name, self.typeName()));
}

namespace {
std::string replaced(const std::string& text, const std::string& old, const std::string& by,
                     int64_t count) {
  std::string result;
  size_t done = 0;
  for (; count != 0; --count) {
    const size_t at = text.find(old, done);
    if (at == text.npos || old.empty()) break;
    result.append(text, done, at - done);
    result += by;
    done = at + old.size();
  }
  return result.append(text, done);
}
}  // namespace

Value Interpreter::split(const Node& node, const std::string& text, const Arguments& arguments,
                         bool fromEnd) {
  expectCount(node, arguments, 2);
  const Value* separator = argument(node, arguments, 0, "sep");
  const Value* limit = argument(node, arguments, 1, "maxsplit");
  int64_t most = limit ? expectInt(node, *limit) : -1;
  if (!separator || separator->isNone()) {
    if (most >= 0) throw unsupported(node, "split at spaces with a limit");
    List words;
    std::string word;
    for (char32_t c : codePoints(text)) {
      if (!isSpace(c)) {
        word += fromCodePoints({&c, 1});
      } else if (!word.empty()) {
        words.push_back(std::move(word));
        word.clear();
      }
    }
    if (!word.empty()) words.push_back(std::move(word));
    return words;
  }
  const std::string& between = expectText(node, *separator);
  if (between.empty()) throw fail(node, "split takes a separator that is not empty");
  List parts;
  if (fromEnd) {
    size_t end = text.size();
    for (; most != 0 && end >= between.size(); --most) {
      const size_t at = text.rfind(between, end - between.size());
      if (at == text.npos) break;
      parts.insert(parts.begin(), text.substr(at + between.size(), end - at - between.size()));
      spend(node, 1 + parts.size() / 8);
      end = at;
    }
    parts.insert(parts.begin(), text.substr(0, end));
    return parts;
  }
  size_t begin = 0;
  for (size_t at; most != 0 && (at = text.find(between, begin)) != text.npos; --most) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + between.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// As Python's splitlines: "\r\n" is one end, and the last line needs none.
static List linesOf(const std::string& text) {
  constexpr std::u32string_view kEnds = U"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
  List lines;
  std::string line;
  const std::u32string points = codePoints(text);
  for (size_t i = 0; i < points.size(); ++i) {
    const bool ends = kEnds.find(points[i]) != kEnds.npos;
    if (!ends) line += fromCodePoints({&points[i], 1});
    if (points[i] == U'\r' && i + 1 < points.size() && points[i + 1] == U'\n') ++i;
    if (!ends && i + 1 < points.size()) continue;
    lines.emplace_back(std::move(line));
    line.clear();
  }
  return lines;
}

Value Interpreter::textMethod(const Node& node, const std::string& text, const std::string& name,
                              const Arguments& arguments) {
  spend(node, text.size() / 64);
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    expectCount(node, arguments, 1);
    const Value* set = argument(node, arguments, 0, "chars");
    return strip(text, name != "rstrip", name != "lstrip",
                 set && !set->isNone() ? &expectText(node, *set) : nullptr);
  }
  if (name == "split" || name == "rsplit") return split(node, text, arguments, name == "rsplit");
  if (name == "startswith" || name == "endswith") {
    expectCount(node, arguments, 1);
    if (arguments.values.empty()) throw fail(node, name + " takes a text");
    List options =
        arguments.values[0].asList() ? *arguments.values[0].asList() : List{arguments.values[0]};
    return std::ranges::any_of(options, [&](const Value& option) {
      const std::string& part = expectText(node, option);
      return name == "startswith" ? text.starts_with(part) : text.ends_with(part);
    });
  }
  if (name == "replace") {
    expectCount(node, arguments, 3);
    if (arguments.values.size() < 2) throw fail(node, "replace takes an old and a new text");
    const std::string& old = expectText(node, arguments.values[0]);
    const std::string& by = expectText(node, arguments.values[1]);
    if (old.empty()) throw unsupported(node, "replace of an empty text");
    const Value* count = argument(node, arguments, 2, "count");
    spendBytes(node, text.size() / old.size() * by.size());
    return replaced(text, old, by, count ? expectInt(node, *count) : -1);
  }
  if (name == "join") {
    expectCount(node, arguments, 1);
    if (arguments.values.empty()) throw fail(node, "join takes a list");
    std::string joined;
    const List items = itemsOf(node, arguments.values[0]);
    for (size_t i = 0; i < items.size(); ++i) {
      spendBytes(node, text.size());
      joined += (i ? text : "") + expectText(node, items[i]);
    }
    return joined;
  }
  if (name == "find" || name == "count") {
    if (arguments.values.size() != 1) throw unsupported(node, name + " of a part of a text");
    const std::string& part = expectText(node, arguments.values[0]);
    const size_t at = text.find(part);
    if (name == "find")
      return at == text.npos ? int64_t(-1)
                             : int64_t(codePoints(std::string_view(text).substr(0, at)).size());
    if (part.empty()) throw unsupported(node, "count of an empty text");
    int64_t count = 0;
    for (size_t from = 0; (from = text.find(part, from)) != text.npos; from += part.size()) ++count;
    return count;
  }
  static const std::vector<std::pair<std::string_view, Case>> kCases = {
      {"upper", Case::Upper},
      {"lower", Case::Lower},
      {"title", Case::Title},
      {"capitalize", Case::Capitalized}};
  for (auto& [method, kind] : kCases)
    if (name == method) return expectCount(node, arguments, 0), changeCase(text, kind);
  if (name == "splitlines") {
    expectCount(node, arguments, 0);
    return linesOf(text);
  }
  if (name == "isdigit")
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  throw unsupported(node, "the method " + name + " of str");
}

}  // namespace lathe::jinja
