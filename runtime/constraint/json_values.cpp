// SPDX-License-Identifier: Apache-2.0
#include "runtime/constraint/json_values.h"

#include <algorithm>

#include <fmt/format.h>

namespace lathe::constraint {
namespace {

// Of numbers that begin with what stands in front: `low` and `high` have as many digits.
std::string sameLength(std::string_view low, std::string_view high) {
  if (low.empty()) return "";
  const std::string rest = low.size() > 1 ? fmt::format("\\d{{{}}}", low.size() - 1) : "";
  if (low[0] == high[0]) return low[0] + sameLength(low.substr(1), high.substr(1));
  const std::string zeros(low.size() - 1, '0'), nines(low.size() - 1, '9');
  // The first digit's lowest and highest value bind the rest; those between leave it free.
  char first = low[0], last = high[0];
  std::string all;
  auto add = [&](const std::string& branch) { all += (all.empty() ? "" : "|") + branch; };
  if (low.substr(1) != zeros) {
    add(first + sameLength(low.substr(1), nines));
    ++first;
  }
  const bool bindsLast = high.substr(1) != nines;
  if (bindsLast) --last;
  if (first <= last) add(fmt::format("[{}-{}]{}", first, last, rest));
  if (bindsLast) add(high[0] + sameLength(zeros, high.substr(1)));
  return "(" + all + ")";
}

// 0 <= low <= high.
std::string magnitudes(int64_t low, int64_t high) {
  std::string all;
  for (int64_t begin = low; begin <= high;) {
    int64_t end = 9;  // the last with as many digits
    while (end < begin) end = end * 10 + 9;
    end = std::min(end, high);
    all += (all.empty() ? "" : "|") + sameLength(std::to_string(begin), std::to_string(end));
    begin = end + 1;
  }
  return "(" + all + ")";
}

}  // namespace

std::string compactText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (uint8_t(c) < 0x20)
          out += fmt::format("\\u{:04x}", int(c));
        else
          out += c;
    }
  return out + '"';
}

std::string compactJson(const JsonValue& value) {
  std::string out;
  if (value.isNull()) return "null";
  if (value.isBool()) return value.asBool() ? "true" : "false";
  if (value.isString()) return compactText(value.asString());
  if (value.isInteger())
    return value.asDouble() < 0 ? std::to_string(value.asInt()) : std::to_string(value.asUint());
  if (value.isNumber()) return fmt::format("{}", value.asDouble());
  const bool isArray = value.isArray();
  for (size_t i = 0; i < value.size(); ++i) {
    if (i) out += ',';
    if (isArray) {
      out += compactJson(value.at(i));
    } else {
      const auto [name, member] = value.member(i);
      out += compactText(name) + ':' + compactJson(member);
    }
  }
  return isArray ? "[" + out + "]" : "{" + out + "}";
}

bool isOfTypes(const JsonValue& value, const std::vector<std::string>& types) {
  auto has = [&](const char* type) { return std::ranges::find(types, type) != types.end(); };
  if (value.isNull()) return has("null");
  if (value.isBool()) return has("boolean");
  if (value.isString()) return has("string");
  if (value.isNumber()) {
    const double number = value.asDouble();
    return has("number") || (has("integer") && number == double(int64_t(number)));
  }
  return has(value.isArray() ? "array" : "object");
}

std::string integerPattern(int64_t low, int64_t high) {
  std::string all;
  if (low < 0) all = "-" + magnitudes(high < 0 ? -high : 1, -low);
  if (high >= 0) all += (all.empty() ? "" : "|") + magnitudes(std::max<int64_t>(low, 0), high);
  return all;
}

}  // namespace lathe::constraint
