// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "runtime/jinja/interpreter.h"

namespace lathe::jinja {

Value Interpreter::made(const Node& node, Value value) {
  if (auto* text = value.asText()) spendBytes(node, text->size());
  if (auto* list = value.asList()) spendBytes(node, list->size() * sizeof(Value));
  if (auto* dict = value.asDict()) spendBytes(node, dict->members.size() * 2 * sizeof(Value));
  if (value.textSize() > limits_.made) spendBytes(node, limits_.made + 1);
  if (value.depth() > limits_.depth)
    throw fail(node, fmt::format("lists and dicts deeper than {} levels", limits_.depth));
  return value;
}

const std::string& Interpreter::expectText(const Node& node, const Value& value) const {
  if (auto* text = value.asText()) return *text;
  if (auto* undefined = value.asUndefined())
    throw fail(node, "'" + undefined->name + "' is undefined");
  throw fail(node, "expected text, got " + value.typeName());
}

int64_t Interpreter::expectInt(const Node& node, const Value& value) const {
  if (auto number = value.asInt()) return *number;
  throw fail(node, "expected a whole number, got " + value.typeName());
}

const Value* Interpreter::argument(const Node& node, const Arguments& arguments, size_t position,
                                   std::string_view name) const {
  for (auto& [key, value] : arguments.named)
    if (key == name) {
      if (position < arguments.values.size())
        throw fail(node, fmt::format("the argument {} is given twice", name));
      return &value;
    }
  return position < arguments.values.size() ? &arguments.values[position] : nullptr;
}

void Interpreter::expectCount(const Node& node, const Arguments& arguments, size_t most) const {
  const size_t count = arguments.values.size() + arguments.named.size();
  if (count > most)
    throw fail(node, fmt::format("expected at most {} arguments, got {}", most, count));
}

List Interpreter::itemsOf(const Node& node, const Value& value) const {
  if (auto* list = value.asList()) return *list;
  List items;
  if (value.isUndefined()) return items;
  if (auto* dict = value.asDict()) {
    for (auto& member : dict->members) items.push_back(member.first);
    return items;
  }
  if (auto* text = value.asText()) {
    if (text->size() > 1'000'000) throw fail(node, "a loop over more than 1000000 characters");
    for (char32_t c : codePoints(*text)) items.push_back(fromCodePoints({&c, 1}));
    return items;
  }
  throw fail(node, "expected a list, got " + value.typeName());
}

Value Interpreter::lookUp(const std::string& name) const {
  for (const Scope* scope = scope_; scope; scope = scope->parent)
    if (auto it = scope->names.find(name); it != scope->names.end()) return it->second;
  for (const char* global : {"range", "namespace", "raise_exception", "strftime_now", "dict"})
    if (name == global) return Function{name};
  return Undefined{name};
}

Value Interpreter::attribute(const Node& node, const Value& value, const std::string& name) const {
  if (auto* undefined = value.asUndefined())
    throw fail(node, "'" + undefined->name + "' is undefined");
  const Dict* dict = value.asNamespace() ? value.asNamespace()->members.get() : value.asDict();
  const Value* member = dict ? dict->find(name) : nullptr;
  return member ? *member : Value(Undefined{name});
}

Value Interpreter::evaluate(const Node& node) {
  using Kind = Node::Kind;
  spend(node, 1);
  switch (node.kind) {
    case Kind::Literal:
      return node.value;
    case Kind::Name:
      return lookUp(node.text);
    case Kind::List: {
      List list;
      for (const NodePtr& part : node.parts) {
        list.push_back(evaluate(*part));
        if (list.back().asNamespace())
          throw unsupported(node, "a namespace inside of another value");
      }
      return made(node, std::move(list));
    }
    case Kind::Dict:
      return evaluateDict(node);
    case Kind::Attribute:
      return attribute(node, evaluate(*node.parts[0]), node.text);
    case Kind::Subscript:
      return evaluateSubscript(node);
    case Kind::Slice:
      return evaluateSlice(node);
    case Kind::Call:
      return evaluateCall(node);
    case Kind::Filter: {
      const Value value = evaluate(*node.parts[0]);
      return made(node, filter(node, node.text, value, argumentsOf(node)));
    }
    case Kind::Test: {
      const Value value = evaluate(*node.parts[0]);
      return test(node, node.text, value, argumentsOf(node));
    }
    case Kind::Unary:
      return unary(node, evaluate(*node.parts[0]));
    case Kind::Binary: {
      Value left = evaluate(*node.parts[0]);
      if (node.text == "and") return left.isTrue() ? evaluate(*node.parts[1]) : left;
      if (node.text == "or") return left.isTrue() ? left : evaluate(*node.parts[1]);
      return made(node, binary(node, left, evaluate(*node.parts[1])));
    }
    case Kind::Compare:
      return evaluateCompare(node);
    case Kind::Conditional:
      if (evaluate(*node.parts[0]).isTrue()) return evaluate(*node.parts[1]);
      return node.parts[2] ? evaluate(*node.parts[2]) : Value();
    default:
      throw fail(node, "expected an expression");
  }
}

Value Interpreter::evaluateCompare(const Node& node) {
  Value left = evaluate(*node.parts[0]);
  for (size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1]);
    // The shorter of two decides how far they can be equal.
    spend(node, std::min(left.textSize(), right.textSize()) / 8);
    if (!compare(node, node.names[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluateDict(const Node& node) {
  Dict dict;
  for (size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    const Value key = evaluate(*node.parts[i]);
    if (!key.asText()) throw unsupported(node, "a key that is no text");
    Value value = evaluate(*node.parts[i + 1]);
    if (value.asNamespace()) throw unsupported(node, "a namespace inside of another value");
    spend(node, dict.members.size() / 8);
    dict.set(*key.asText(), std::move(value));
  }
  return made(node, std::move(dict));
}

Value Interpreter::evaluateSubscript(const Node& node) {
  const Value whole = evaluate(*node.parts[0]), key = evaluate(*node.parts[1]);
  if (auto* name = key.asText()) return attribute(node, whole, *name);
  if (whole.isUndefined()) return attribute(node, whole, "");
  if (!key.asInt()) return Undefined{key.text()};
  const int64_t asked = *key.asInt();
  auto inside = [&](size_t size) { return asked < 0 ? asked + int64_t(size) : asked; };
  auto missing = [&] { return Value(Undefined{fmt::format("element {}", asked)}); };
  if (auto* list = whole.asList()) {
    const int64_t i = inside(list->size());
    return i < 0 || i >= int64_t(list->size()) ? missing() : (*list)[size_t(i)];
  }
  if (auto* text = whole.asText()) {
    const std::u32string points = codePoints(*text);
    spend(node, points.size() / 64);
    const int64_t i = inside(points.size());
    return i < 0 || i >= int64_t(points.size()) ? missing()
                                                : Value(fromCodePoints({&points[size_t(i)], 1}));
  }
  return missing();
}

namespace {
// As Python's slice.indices: the elements of a sequence of `size` that are taken.
std::vector<size_t> sliceOf(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end,
                            int64_t step) {
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  auto place = [&](std::optional<int64_t> at, int64_t otherwise) {
    if (!at) return otherwise;
    const int64_t i = *at < 0 ? std::max(*at, -size - 1) + size : *at;
    return std::clamp(i, low, std::max(low, high));
  };
  const int64_t first = place(begin, step < 0 ? high : low);
  const int64_t last = place(end, step < 0 ? low : high);
  std::vector<size_t> taken;
  step = std::clamp(step, -size - 1, size + 1);
  for (int64_t i = first; step < 0 ? i > last : i < last; i += step) taken.push_back(size_t(i));
  return taken;
}
}  // namespace

Value Interpreter::evaluateSlice(const Node& node) {
  const Value whole = evaluate(*node.parts[0]);
  auto bound = [&](size_t i) -> std::optional<int64_t> {
    if (!node.parts[i]) return std::nullopt;
    const Value value = evaluate(*node.parts[i]);
    if (value.isNone()) return std::nullopt;
    return expectInt(node, value);
  };
  const auto begin = bound(1), end = bound(2);
  const int64_t step = bound(3).value_or(1);
  if (step == 0) throw fail(node, "a slice's step is not 0");
  if (auto* text = whole.asText()) {
    const std::u32string points = codePoints(*text);
    std::u32string taken;
    for (size_t i : sliceOf(int64_t(points.size()), begin, end, step)) taken += points[i];
    spend(node, points.size() / 64);
    return made(node, fromCodePoints(taken));
  }
  if (whole.isUndefined()) return attribute(node, whole, "");
  auto* list = whole.asList();
  if (!list) throw fail(node, "expected a list or text in front of [:], got " + whole.typeName());
  List taken;
  for (size_t i : sliceOf(int64_t(list->size()), begin, end, step)) taken.push_back((*list)[i]);
  return made(node, std::move(taken));
}

Arguments Interpreter::argumentsOf(const Node& node) {
  Arguments arguments;
  const size_t positional = node.parts.size() - node.names.size();
  for (size_t i = 1; i < node.parts.size(); ++i) {
    Value value = evaluate(*node.parts[i]);
    if (i < positional)
      arguments.values.push_back(std::move(value));
    else
      arguments.named.emplace_back(node.names[i - positional], std::move(value));
  }
  return arguments;
}

Value Interpreter::evaluateCall(const Node& node) {
  const Node& callee = *node.parts[0];
  if (callee.kind == Node::Kind::Attribute) {
    const Value self = evaluate(*callee.parts[0]);
    const Arguments arguments = argumentsOf(node);
    return made(node, callMethod(node, self, callee.text, arguments));
  }
  const Value function = evaluate(callee);
  const Arguments arguments = argumentsOf(node);
  if (auto* undefined = function.asUndefined())
    throw fail(node, "'" + undefined->name + "' is undefined");
  const Function* known = function.asFunction();
  if (!known) throw fail(node, "expected a function, got " + function.typeName());
  if (known->macro) return callMacro(node, *known->macro, arguments);
  return made(node, callGlobal(node, known->name, arguments));
}

}  // namespace lathe::jinja
