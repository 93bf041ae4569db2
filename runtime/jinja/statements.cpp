// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "runtime/jinja/interpreter.h"

namespace lathe::jinja {

Error Interpreter::fail(const Node& node, const std::string& message) const {
  return errorAt(file_, node.line, message, ErrorCode::InvalidFile);
}

Error Interpreter::unsupported(const Node& node, const std::string& what) const {
  return errorAt(file_, node.line, what + " is not supported in chat templates",
                 ErrorCode::Unsupported);
}

void Interpreter::spend(const Node& node, uint64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps)
    throw fail(node, fmt::format("the template takes more than {} steps", limits_.steps));
}

void Interpreter::spendBytes(const Node& node, size_t bytes) {
  if (bytes > limits_.made - made_)
    throw fail(node, fmt::format("the template makes more than {} bytes", limits_.made));
  made_ += bytes;
  spend(node, bytes / 256);
}

void Interpreter::print(const Node& node, const std::string& text) {
  if (text.size() > limits_.output - std::min(output_.size(), limits_.output))
    throw fail(node, fmt::format("the template writes more than {} bytes", limits_.output));
  spendBytes(node, text.size());
  output_ += text;
}

std::string Interpreter::render(const Node& root, Dict variables) {
  Scope top{nullptr};
  for (auto& [name, value] : variables.members) top.names[name] = std::move(value);
  scope_ = root_ = &top;
  execute(root);
  scope_ = root_ = nullptr;
  return std::move(output_);
}

Interpreter::Flow Interpreter::execute(const Node& node) {
  using Kind = Node::Kind;
  spend(node, 1);
  switch (node.kind) {
    case Kind::Body:
      for (const NodePtr& part : node.parts)
        if (Flow flow = execute(*part); flow != Flow::Next) return flow;
      return Flow::Next;
    case Kind::Data:
      print(node, node.text);
      return Flow::Next;
    case Kind::Output:
      print(node, evaluate(*node.parts[0]).text());
      return Flow::Next;
    case Kind::If:
      for (size_t i = 0; i + 1 < node.parts.size(); i += 2)
        if (evaluate(*node.parts[i]).isTrue()) return execute(*node.parts[i + 1]);
      return node.parts.size() % 2 ? execute(*node.parts.back()) : Flow::Next;
    case Kind::For:
      return executeFor(node);
    case Kind::Set:
      executeSet(node);
      return Flow::Next;
    case Kind::SetBlock:
      scope_->names[node.names[0]] = made(node, capture(*node.parts[0]));
      return Flow::Next;
    case Kind::Macro:
      scope_->names[node.text] = Function{node.text, &node};
      return Flow::Next;
    case Kind::Break:
      return Flow::Break;
    case Kind::Continue:
      return Flow::Continue;
    default:
      return Flow::Next;
  }
}

std::string Interpreter::capture(const Node& body) {
  std::string outside = std::move(output_);
  output_.clear();
  execute(body);
  std::swap(outside, output_);
  return outside;
}

// One name takes the value, several its items.
void Interpreter::bind(const Node& node, const Value& value) {
  if (node.names.size() == 1) {
    scope_->names[node.names[0]] = value;
    return;
  }
  const List items = itemsOf(node, value);
  if (items.size() != node.names.size())
    throw fail(node, fmt::format("expected {} values, got {}", node.names.size(), items.size()));
  for (size_t i = 0; i < items.size(); ++i) scope_->names[node.names[i]] = items[i];
}

void Interpreter::executeSet(const Node& node) {
  Value value = evaluate(*node.parts[0]);
  if (node.text.empty()) return bind(node, value);
  const Value target = lookUp(node.names[0]);
  const Namespace* space = target.asNamespace();
  if (!space)
    throw fail(node, fmt::format("expected a namespace to set {}.{}, got {}", node.names[0],
                                 node.text, target.typeName()));
  if (value.asNamespace()) throw unsupported(node, "a namespace inside of another value");
  space->members->set(node.text, std::move(value));
}

Interpreter::Flow Interpreter::executeFor(const Node& node) {
  List items = itemsOf(node, evaluate(*node.parts[0]));
  if (node.parts[1]) {
    List chosen;
    for (Value& item : items) {
      Scope scope{scope_};
      scope_ = &scope;
      bind(node, item);
      const bool isWanted = evaluate(*node.parts[1]).isTrue();
      scope_ = scope.parent;
      if (isWanted) chosen.push_back(std::move(item));
    }
    items = std::move(chosen);
  }
  if (!items.empty()) return loopOver(node, items);
  return node.parts[3] ? execute(*node.parts[3]) : Flow::Next;
}

Interpreter::Flow Interpreter::loopOver(const Node& node, const List& items) {
  const int64_t count = int64_t(items.size());
  for (int64_t i = 0; i < count; ++i) {
    Dict loop;
    loop.members = {{"index", i + 1},        {"index0", i},
                    {"revindex", count - i}, {"revindex0", count - i - 1},
                    {"first", i == 0},       {"last", i == count - 1},
                    {"length", count}};
    if (i > 0) loop.members.emplace_back("previtem", items[size_t(i - 1)]);
    if (i + 1 < count) loop.members.emplace_back("nextitem", items[size_t(i + 1)]);
    Scope scope{scope_};
    scope_ = &scope;
    scope.names["loop"] = Value(std::move(loop));
    bind(node, items[size_t(i)]);
    const Flow flow = execute(*node.parts[2]);
    scope_ = scope.parent;
    if (flow == Flow::Break) break;
  }
  return Flow::Next;
}

Value Interpreter::callMacro(const Node& call, const Node& macro, const Arguments& arguments) {
  if (++calls_ > limits_.calls)
    throw fail(call, fmt::format("macros call each other more than {} times", limits_.calls));
  const size_t count = macro.names.size(), defaults = macro.parts.size() - 1;
  if (arguments.values.size() > count)
    throw fail(call, fmt::format("macro {} takes {} arguments, got {}", macro.text, count,
                                 arguments.values.size()));
  Scope scope{root_};
  Scope* caller = scope_;
  scope_ = &scope;
  for (size_t i = 0; i < count; ++i) {
    Value value = Undefined{macro.names[i]};
    if (i < arguments.values.size())
      value = arguments.values[i];
    else if (i + defaults >= count)
      value = evaluate(*macro.parts[1 + i + defaults - count]);
    scope.names[macro.names[i]] = std::move(value);
  }
  for (auto& [name, value] : arguments.named) {
    auto known = scope.names.find(name);
    if (known == scope.names.end())
      throw fail(call, fmt::format("macro {} takes no argument {}", macro.text, name));
    known->second = value;
  }
  std::string text = capture(*macro.parts[0]);
  scope_ = caller;
  --calls_;
  return made(call, std::move(text));
}

}  // namespace lathe::jinja
