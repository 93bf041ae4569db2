// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/jinja/interpreter.h"

namespace lathe::jinja {

Value Interpreter::unary(const Node& node, const Value& value) const {
  if (node.text == "not") return !value.isTrue();
  if (auto number = value.asInt()) {
    int64_t result = 0;
    if (node.text == "+") return *number;
    if (__builtin_sub_overflow(int64_t(0), *number, &result))
      throw fail(node, "the number is too large");
    return result;
  }
  if (auto* number = value.asFloat()) return node.text == "-" ? -*number : *number;
  throw fail(node, fmt::format("expected a number behind {}, got {}", node.text, value.typeName()));
}

Value Interpreter::binary(const Node& node, const Value& left, const Value& right) {
  const std::string& op = node.text;
  for (const Value* side : {&left, &right})
    if (auto* undefined = side->asUndefined(); undefined && op != "~")
      throw fail(node, "'" + undefined->name + "' is undefined");
  if (op == "~") {
    std::string text = left.text();
    return text += right.text();
  }
  auto *leftText = left.asText(), *rightText = right.asText();
  auto *leftList = left.asList(), *rightList = right.asList();
  if (op == "+" && leftText && rightText) return *leftText + *rightText;
  if (op == "+" && leftList && rightList) {
    List both = *leftList;
    both.insert(both.end(), rightList->begin(), rightList->end());
    return both;
  }
  if (op == "*" && ((leftText || leftList) != (rightText || rightList))) {
    const Value& whole = leftText || leftList ? left : right;
    const int64_t count =
        std::max<int64_t>(expectInt(node, leftText || leftList ? right : left), 0);
    const size_t size =
        whole.asText() ? whole.asText()->size() : whole.asList()->size() * sizeof(Value);
    if (size > 0 && size_t(count) > limits_.made / size) spendBytes(node, limits_.made);
    spendBytes(node, size * size_t(count));
    std::string text;
    List list;
    for (int64_t i = 0; i < count && size > 0; ++i) {
      if (whole.asText())
        text += *whole.asText();
      else
        list.insert(list.end(), whole.asList()->begin(), whole.asList()->end());
    }
    return whole.asText() ? Value(std::move(text)) : Value(std::move(list));
  }
  if (op == "%" && leftText) throw unsupported(node, "formatting by %");
  return arithmetic(node, left, right);
}

Value Interpreter::arithmetic(const Node& node, const Value& left, const Value& right) const {
  const std::string& op = node.text;
  const auto a = left.asNumber(), b = right.asNumber();
  if (!a || !b)
    throw fail(node, fmt::format("expected two of a kind for {}, got {} and {}", op,
                                 left.typeName(), right.typeName()));
  const bool divides = op == "/" || op == "//" || op == "%";
  if (divides && *b == 0) throw fail(node, "division by zero");
  if (op == "/") return *a / *b;
  const auto i = left.asInt(), j = right.asInt();
  if (i && j && !(op == "**" && *j < 0)) {
    int64_t result = 0;
    bool tooLarge = divides && *i == INT64_MIN && *j == -1;
    if (op == "+") tooLarge = __builtin_add_overflow(*i, *j, &result);
    if (op == "-") tooLarge = __builtin_sub_overflow(*i, *j, &result);
    if (op == "*") tooLarge = __builtin_mul_overflow(*i, *j, &result);
    if (divides && !tooLarge) {
      // Towards minus infinity, and the remainder has the divisor's sign.
      const bool inexact = *i % *j != 0 && (*i < 0) != (*j < 0);
      result = op == "//" ? *i / *j - inexact : *i % *j + (inexact ? *j : 0);
    }
    if (op == "**") {
      result = 1;
      const bool small = *i >= -1 && *i <= 1;
      for (int64_t k = 0; k < (small ? std::min<int64_t>(*j, 2 + *j % 2) : *j) && !tooLarge; ++k)
        tooLarge = __builtin_mul_overflow(result, *i, &result);
    }
    if (tooLarge) throw fail(node, "the number is too large");
    return result;
  }
  if (op == "+") return *a + *b;
  if (op == "-") return *a - *b;
  if (op == "*") return *a * *b;
  if (op == "**") return std::pow(*a, *b);
  if (op == "//") return std::floor(*a / *b);
  const double rest = std::fmod(*a, *b);
  return rest != 0 && (rest < 0) != (*b < 0) ? rest + *b : rest;
}

bool Interpreter::contains(const Node& node, const Value& item, const Value& whole) const {
  if (auto* text = whole.asText()) return text->find(expectText(node, item)) != text->npos;
  if (auto* list = whole.asList()) return std::ranges::find(*list, item) != list->end();
  if (auto* dict = whole.asDict()) return item.asText() && dict->find(*item.asText());
  if (whole.isUndefined()) return false;
  throw fail(node, "expected a list, a dict or text behind in, got " + whole.typeName());
}

bool Interpreter::compare(const Node& node, const std::string& op, const Value& a,
                          const Value& b) const {
  if (op == "==") return a == b;
  if (op == "!=") return !(a == b);
  if (op == "in") return contains(node, a, b);
  if (op == "not in") return !contains(node, a, b);
  for (const Value* side : {&a, &b})
    if (auto* undefined = side->asUndefined())
      throw fail(node, "'" + undefined->name + "' is undefined");
  auto ordered = [&](const auto& x, const auto& y) {
    return op == "<" ? x < y : op == "<=" ? x <= y : op == ">" ? x > y : x >= y;
  };
  if (a.asInt() && b.asInt()) return ordered(*a.asInt(), *b.asInt());
  if (a.asNumber() && b.asNumber()) return ordered(*a.asNumber(), *b.asNumber());
  if (a.asText() && b.asText()) return ordered(*a.asText(), *b.asText());
  throw fail(node, fmt::format("expected two of a kind for {}, got {} and {}", op, a.typeName(),
                               b.typeName()));
}

}  // namespace lathe::jinja
