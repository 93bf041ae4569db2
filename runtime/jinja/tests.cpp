// SPDX-License-Identifier: Apache-2.0
// What stands behind `is`.
#include <fmt/format.h>
#include <utf8proc.h>

#include "runtime/jinja/interpreter.h"

namespace lathe::jinja {

bool Interpreter::test(const Node& node, const std::string& name, const Value& value,
                       const Arguments& arguments) {
  auto operand = [&]() -> const Value& {
    if (arguments.values.size() != 1)
      throw fail(node, fmt::format("the test {} takes one operand", name));
    return arguments.values[0];
  };
  static const std::vector<std::pair<std::string_view, std::string>> kCompares = {
      {"equalto", "=="}, {"eq", "=="}, {"==", "=="},      {"ne", "!="},
      {"!=", "!="},      {"lt", "<"},  {"lessthan", "<"}, {"<", "<"},
      {"le", "<="},      {"<=", "<="}, {"gt", ">"},       {"greaterthan", ">"},
      {">", ">"},        {"ge", ">="}, {">=", ">="},      {"in", "in"}};
  for (auto& [alias, op] : kCompares)
    if (name == alias) return compare(node, op, value, operand());
  if (name == "divisibleby") {
    const int64_t by = expectInt(node, operand());
    if (by == 0) throw fail(node, "division by zero");
    return by == -1 || expectInt(node, value) % by == 0;
  }
  if (name == "defined") return !value.isUndefined();
  if (name == "undefined") return value.isUndefined();
  if (name == "none") return value.isNone();
  if (name == "string") return value.asText() != nullptr;
  if (name == "mapping") return value.asDict() != nullptr;
  if (name == "iterable" || name == "sequence")
    return value.asText() || value.asList() || value.asDict() || value.isUndefined();
  if (name == "boolean") return value.asBool() != nullptr;
  if (name == "true") return value.asBool() && *value.asBool();
  if (name == "false") return value.asBool() && !*value.asBool();
  if (name == "integer") return value.asInt() && !value.asBool();
  if (name == "float") return value.asFloat() != nullptr;
  if (name == "number") return value.asNumber().has_value();
  if (name == "odd") return expectInt(node, value) % 2 != 0;
  if (name == "even") return expectInt(node, value) % 2 == 0;
  if (name == "callable") return value.asFunction() != nullptr;
  throw unsupported(node, "the test " + name);
}

}  // namespace lathe::jinja
