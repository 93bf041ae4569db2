// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/jinja/parser.h"

namespace lathe::jinja {

using Kind = Token::Kind;

// `a, b` is a list of two.
NodePtr Parser::parseTuple(bool conditional) {
  const int line = peek().line;
  NodePtr first = parseExpression(conditional);
  if (!isOperator(",")) return first;
  NodePtr list = make(Node::Kind::List, line);
  give(*list, std::move(first));
  while (takeOperator(",")) {
    const Token& token = peek();
    if (token.kind == Kind::VariableEnd || token.kind == Kind::BlockEnd || isOperator(")")) break;
    give(*list, parseExpression(conditional));
  }
  return list;
}

NodePtr Parser::parseExpression(bool conditional) {
  if (++nesting_ > 60)
    throw errorAt(file_, peek().line, "nested deeper than 60 levels", ErrorCode::InvalidFile);
  NodePtr node = parseOr();
  while (conditional && isName("if")) {
    NodePtr choice = make(Node::Kind::Conditional, next().line);
    NodePtr condition = parseOr();
    give(*choice, std::move(condition));
    give(*choice, std::move(node));
    give(*choice, takeName("else") ? parseExpression() : nullptr);
    node = std::move(choice);
  }
  --nesting_;
  return node;
}

NodePtr Parser::parseOr() {
  NodePtr node = parseAnd();
  while (isName("or")) {
    NodePtr both = make(Node::Kind::Binary, peek().line, next().text);
    give(*both, std::move(node));
    give(*both, parseAnd());
    node = std::move(both);
  }
  return node;
}

NodePtr Parser::parseAnd() {
  NodePtr node = parseNot();
  while (isName("and")) {
    NodePtr both = make(Node::Kind::Binary, peek().line, next().text);
    give(*both, std::move(node));
    give(*both, parseNot());
    node = std::move(both);
  }
  return node;
}

NodePtr Parser::parseNot() {
  int count = 0;
  const int line = peek().line;
  while (takeName("not")) ++count;
  NodePtr node = parseCompare();
  for (; count > 0; --count) {
    NodePtr opposite = make(Node::Kind::Unary, line, "not");
    give(*opposite, std::move(node));
    node = std::move(opposite);
  }
  return node;
}

NodePtr Parser::parseCompare() {
  NodePtr first = parseChain(0);
  NodePtr chain;
  while (true) {
    std::string op;
    static constexpr std::array<std::string_view, 6> kOps = {"==", "!=", "<", "<=", ">", ">="};
    for (std::string_view candidate : kOps)
      if (isOperator(candidate)) op = candidate;
    size_t words = 1;
    if (isName("in")) op = "in";
    if (isName("not") && peek(1).is(Kind::Name, "in")) op = "not in", words = 2;
    if (op.empty()) return chain ? std::move(chain) : std::move(first);
    if (!chain) {
      chain = make(Node::Kind::Compare, peek().line);
      give(*chain, std::move(first));
    }
    for (; words > 0; --words) next();
    chain->names.push_back(std::move(op));
    give(*chain, parseChain(0));
  }
}

// Operators that take their operands from the left: sums, then ~, then products, then powers.
NodePtr Parser::parseChain(int level) {
  static const std::array<std::vector<std::string_view>, 4> kLevels = {
      {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}};
  if (level == int(kLevels.size())) return parseUnary();
  NodePtr node = parseChain(level + 1);
  while (true) {
    bool found = false;
    for (std::string_view op : kLevels[size_t(level)]) {
      if (!isOperator(op)) continue;
      NodePtr both = make(Node::Kind::Binary, next().line, std::string(op));
      give(*both, std::move(node));
      give(*both, parseChain(level + 1));
      node = std::move(both);
      found = true;
      break;
    }
    if (!found) return node;
  }
}

NodePtr Parser::parseUnary(bool withFilters) {
  if (isOperator("-") || isOperator("+")) {
    if (++nesting_ > 60)
      throw errorAt(file_, peek().line, "nested deeper than 60 levels", ErrorCode::InvalidFile);
    const Token sign = next();
    NodePtr node = make(Node::Kind::Unary, sign.line, sign.text);
    give(*node, parseUnary(false));
    --nesting_;
    return withFilters ? parseFilters(std::move(node)) : std::move(node);
  }
  NodePtr node = parsePostfix(parsePrimary());
  return withFilters ? parseFilters(std::move(node)) : std::move(node);
}

NodePtr Parser::parsePrimary() {
  const Token token = next();
  auto literal = [&](Value value) {
    NodePtr node = make(Node::Kind::Literal, token.line);
    node->value = std::move(value);
    return node;
  };
  if (token.kind == Kind::Name) {
    if (token.text == "true" || token.text == "True") return literal(true);
    if (token.text == "false" || token.text == "False") return literal(false);
    if (token.text == "none" || token.text == "None") return literal(None{});
    return make(Node::Kind::Name, token.line, token.text);
  }
  if (token.kind == Kind::Text) {
    std::string text = token.text;
    while (peek().kind == Kind::Text) text += next().text;  // "a" "b" are one text
    return literal(std::move(text));
  }
  if (token.kind == Kind::Integer || token.kind == Kind::Float) {
    const char *begin = token.text.data(), *end = begin + token.text.size();
    int64_t whole = 0;
    double real = 0;
    const auto result = token.kind == Kind::Integer ? std::from_chars(begin, end, whole)
                                                    : std::from_chars(begin, end, real);
    if (result.ec != std::errc())
      throw errorAt(file_, token.line, "the number " + token.text + " is too large",
                    ErrorCode::InvalidFile);
    return token.kind == Kind::Integer ? literal(whole) : literal(real);
  }
  if (token.is(Kind::Operator, "(")) {
    NodePtr node = isOperator(")") ? make(Node::Kind::List, token.line) : parseTuple();
    expectOperator(")");
    return node;
  }
  if (token.is(Kind::Operator, "[")) {
    NodePtr list = make(Node::Kind::List, token.line);
    while (!isOperator("]")) {
      give(*list, parseExpression());
      if (!takeOperator(",")) break;
    }
    expectOperator("]");
    return list;
  }
  if (token.is(Kind::Operator, "{")) return parseDict();
  throw fail(token, "an expression");
}

NodePtr Parser::parseDict() {
  NodePtr dict = make(Node::Kind::Dict, peek().line);
  while (!isOperator("}")) {
    give(*dict, parseExpression());
    expectOperator(":");
    give(*dict, parseExpression());
    if (!takeOperator(",")) break;
  }
  expectOperator("}");
  return dict;
}

NodePtr Parser::parsePostfix(NodePtr node) {
  while (true) {
    const int line = peek().line;
    if (takeOperator(".")) {
      NodePtr attribute = make(Node::Kind::Attribute, line, peek().text);
      if (peek().kind == Kind::Integer) throw unsupported(line, "an index behind a dot");
      expectName();
      give(*attribute, std::move(node));
      node = std::move(attribute);
    } else if (takeOperator("[")) {
      node = parseSubscript(std::move(node));
    } else if (takeOperator("(")) {
      NodePtr call = make(Node::Kind::Call, line);
      give(*call, std::move(node));
      parseArguments(*call);
      node = std::move(call);
    } else {
      return node;
    }
  }
}

NodePtr Parser::parseSubscript(NodePtr node) {
  NodePtr result = make(Node::Kind::Subscript, peek().line);
  give(*result, std::move(node));
  give(*result, isOperator(":") ? nullptr : parseExpression());
  if (isOperator(":")) {
    result->kind = Node::Kind::Slice;
    for (int i = 0; i < 2; ++i) {
      const bool more = takeOperator(":");
      give(*result, more && !isOperator(":") && !isOperator("]") ? parseExpression() : nullptr);
    }
  }
  expectOperator("]");
  return result;
}

NodePtr Parser::parseFilters(NodePtr node) {
  while (true) {
    const int line = peek().line;
    if (takeOperator("|")) {
      NodePtr filter = make(Node::Kind::Filter, line, expectName());
      give(*filter, std::move(node));
      if (takeOperator("(")) parseArguments(*filter);
      node = std::move(filter);
    } else if (takeName("is")) {
      node = parseTest(std::move(node));
    } else if (isOperator("(")) {
      node = parsePostfix(std::move(node));
    } else {
      return node;
    }
  }
}

NodePtr Parser::parseTest(NodePtr node) {
  const int line = peek().line;
  const bool negated = takeName("not");
  NodePtr test = make(Node::Kind::Test, line, expectName());
  give(*test, std::move(node));
  const Token& token = peek();
  static constexpr std::array<std::string_view, 7> kWords = {"else", "or", "and", "if",
                                                             "is",   "in", "not"};
  const bool operand = token.kind == Kind::Name
                           ? std::ranges::find(kWords, token.text) == kWords.end()
                           : token.kind == Kind::Text || token.kind == Kind::Integer ||
                                 token.kind == Kind::Float || isOperator("[") || isOperator("{");
  if (takeOperator("("))
    parseArguments(*test);
  else if (operand)
    give(*test, parsePostfix(parsePrimary()));
  if (!negated) return test;
  NodePtr opposite = make(Node::Kind::Unary, line, "not");
  give(*opposite, std::move(test));
  return opposite;
}

void Parser::parseArguments(Node& call) {
  while (!isOperator(")")) {
    if (isOperator("*") || isOperator("**")) throw unsupported(peek().line, "f(*arguments)");
    if (peek().kind == Kind::Name && peek(1).is(Kind::Operator, "=")) {
      call.names.push_back(next().text);
      next();
    } else if (!call.names.empty()) {
      throw fail(peek(), "NAME=VALUE behind another");
    }
    give(call, parseExpression());
    if (!takeOperator(",")) break;
  }
  expectOperator(")");
}

}  // namespace lathe::jinja
