// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "runtime/jinja/parser.h"

namespace lathe::jinja {

using Kind = Token::Kind;

namespace {
constexpr int kMaxNesting = 60, kMaxDepth = 200;
}

struct Parser::Nesting {
  explicit Nesting(Parser& parser) : parser(parser) {
    if (++parser.nesting_ > kMaxNesting)
      throw errorAt(parser.file_, parser.peek().line,
                    fmt::format("nested deeper than {} levels", kMaxNesting),
                    ErrorCode::InvalidFile);
  }
  ~Nesting() { --parser.nesting_; }
  Parser& parser;
};

NodePtr Parser::parse(std::string_view source, const std::string& file) {
  Parser parser(source, file);
  return parser.parseBody({});
}

const Token& Parser::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}
Token Parser::next() {
  Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}
bool Parser::isOperator(std::string_view text) const { return peek().is(Kind::Operator, text); }
bool Parser::isName(std::string_view text) const { return peek().is(Kind::Name, text); }
bool Parser::takeOperator(std::string_view text) {
  const bool found = isOperator(text);
  if (found) next();
  return found;
}
bool Parser::takeName(std::string_view text) {
  const bool found = isName(text);
  if (found) next();
  return found;
}
void Parser::expectOperator(std::string_view text) {
  if (!takeOperator(text)) throw fail(peek(), std::string(text));
}
std::string Parser::expectName() {
  if (peek().kind != Kind::Name) throw fail(peek(), "a name");
  return next().text;
}

Error Parser::fail(const Token& token, const std::string& expected) const {
  const std::string got = token.kind == Kind::End    ? "the end of the template"
                          : token.kind == Kind::Data ? "text"
                                                     : inQuotes(token.text);
  return errorAt(file_, token.line, "expected " + expected + ", got " + got,
                 ErrorCode::InvalidFile);
}

Error Parser::unsupported(int line, const std::string& what) const {
  return errorAt(file_, line, what + " is not supported in chat templates", ErrorCode::Unsupported);
}

NodePtr Parser::make(Node::Kind kind, int line, std::string text) const {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->line = line;
  node->text = std::move(text);
  return node;
}

// Every tree is shallow enough to be walked by recursion.
void Parser::give(Node& node, NodePtr part) const {
  if (part) node.depth = std::max(node.depth, part->depth + 1);
  if (node.depth > kMaxDepth)
    throw errorAt(file_, node.line, fmt::format("deeper than {} operations", kMaxDepth),
                  ErrorCode::InvalidFile);
  node.parts.push_back(std::move(part));
}

void Parser::endBlock() {
  if (peek().kind != Kind::BlockEnd) throw fail(peek(), "%}");
  next();
}

// Up to a block that begins with one of `ends`, whose name is the next token then.
NodePtr Parser::parseBody(std::initializer_list<std::string_view> ends) {
  Nesting nesting(*this);
  NodePtr body = make(Node::Kind::Body, peek().line);
  while (true) {
    const Token token = next();
    if (token.kind == Kind::Data) {
      give(*body, make(Node::Kind::Data, token.line, token.text));
    } else if (token.kind == Kind::VariableBegin) {
      NodePtr output = make(Node::Kind::Output, token.line);
      give(*output, parseTuple());
      if (peek().kind != Kind::VariableEnd) throw fail(peek(), "}}");
      next();
      give(*body, std::move(output));
    } else if (token.kind == Kind::BlockBegin) {
      if (std::ranges::find(ends, peek().text) != ends.end()) return body;
      give(*body, parseStatement());
    } else if (ends.size() == 0) {
      return body;
    } else {
      throw fail(token, fmt::format("{{% {} %}}", *(ends.end() - 1)));
    }
  }
}

NodePtr Parser::parseStatement() {
  const int line = peek().line;
  const std::string name = expectName();
  if (name == "if") return parseIf(line);
  if (name == "for") return parseFor(line);
  if (name == "set") return parseSet(line);
  if (name == "macro") return parseMacro(line);
  if (name == "generation") return parseGeneration();
  if (name == "break" || name == "continue") {
    if (loops_ == 0)
      throw errorAt(file_, line, "expected " + name + " inside of a loop", ErrorCode::InvalidFile);
    endBlock();
    return make(name == "break" ? Node::Kind::Break : Node::Kind::Continue, line);
  }
  if (name.starts_with("end") || name == "else" || name == "elif")
    throw errorAt(file_, line, "unexpected {% " + name + " %}", ErrorCode::InvalidFile);
  throw unsupported(line, "{% " + name + " %}");
}

NodePtr Parser::parseIf(int line) {
  NodePtr node = make(Node::Kind::If, line);
  while (true) {
    give(*node, parseTuple());
    endBlock();
    give(*node, parseBody({"elif", "else", "endif"}));
    const std::string name = next().text;
    if (name == "elif") continue;
    endBlock();
    if (name == "endif") return node;
    give(*node, parseBody({"endif"}));
    next();
    endBlock();
    return node;
  }
}

NodePtr Parser::parseFor(int line) {
  NodePtr node = make(Node::Kind::For, line);
  const bool inBrackets = takeOperator("(");
  do node->names.push_back(expectName());
  while (takeOperator(","));
  if (inBrackets) expectOperator(")");
  if (!takeName("in")) throw fail(peek(), "in");
  give(*node, parseTuple(false));
  give(*node, takeName("if") ? parseExpression() : nullptr);
  if (isName("recursive")) throw unsupported(peek().line, "a recursive loop");
  endBlock();
  ++loops_;
  give(*node, parseBody({"else", "endfor"}));
  --loops_;
  const bool hasElse = next().text == "else";
  endBlock();
  give(*node, hasElse ? parseBody({"endfor"}) : nullptr);
  if (hasElse) {
    next();
    endBlock();
  }
  return node;
}

NodePtr Parser::parseSet(int line) {
  NodePtr node = make(Node::Kind::Set, line);
  do node->names.push_back(expectName());
  while (takeOperator(","));
  if (node->names.size() == 1 && takeOperator(".")) node->text = expectName();
  if (takeOperator("=")) {
    give(*node, parseTuple());
    endBlock();
    return node;
  }
  if (node->names.size() > 1 || !node->text.empty()) throw fail(peek(), "=");
  if (isOperator("|")) throw unsupported(line, "{% set %} with a filter and a body");
  endBlock();
  node->kind = Node::Kind::SetBlock;
  give(*node, parseBody({"endset"}));
  next();
  endBlock();
  return node;
}

NodePtr Parser::parseMacro(int line) {
  if (loops_ > 0 || macros_ > 0) throw unsupported(line, "a macro inside of a loop or a macro");
  NodePtr node = make(Node::Kind::Macro, line, expectName());
  expectOperator("(");
  std::vector<NodePtr> defaults;
  while (!isOperator(")")) {
    if (!node->names.empty()) expectOperator(",");
    if (isOperator(")")) break;
    node->names.push_back(expectName());
    if (takeOperator("="))
      defaults.push_back(parseExpression());
    else if (!defaults.empty())
      throw fail(peek(), "= behind a parameter that follows one with a default");
  }
  expectOperator(")");
  endBlock();
  ++macros_;
  give(*node, parseBody({"endmacro"}));
  --macros_;
  next();
  endBlock();
  for (NodePtr& value : defaults) give(*node, std::move(value));
  return node;
}

// Marks what the model wrote, for training: its body counts as any other text.
NodePtr Parser::parseGeneration() {
  endBlock();
  NodePtr body = parseBody({"endgeneration"});
  next();
  endBlock();
  return body;
}

}  // namespace lathe::jinja
