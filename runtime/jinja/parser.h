// SPDX-License-Identifier: Apache-2.0
#pragma once
// A template's tokens as a tree.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/lexer.h"
#include "runtime/jinja/syntax.h"

namespace lathe::jinja {

/// Throws Error(InvalidFile) for what is no template and Error(Unsupported), by name, for what
/// these templates have and this reader does not do.
class Parser {
 public:
  static NodePtr parse(std::string_view source, const std::string& file);

 private:
  explicit Parser(std::string_view source, const std::string& file)
      : file_(file), tokens_(tokenize(source, file)) {}

  // Statements.
  NodePtr parseBody(std::initializer_list<std::string_view> ends);
  NodePtr parseStatement();
  NodePtr parseIf(int line);
  NodePtr parseFor(int line);
  NodePtr parseSet(int line);
  NodePtr parseMacro(int line);
  NodePtr parseGeneration();
  void endBlock();

  // Expressions, in the order in which they bind.
  NodePtr parseTuple(bool conditional = true);
  NodePtr parseExpression(bool conditional = true);
  NodePtr parseOr();
  NodePtr parseAnd();
  NodePtr parseNot();
  NodePtr parseCompare();
  NodePtr parseChain(int level);
  NodePtr parseUnary(bool withFilters = true);
  NodePtr parsePrimary();
  NodePtr parseDict();
  NodePtr parsePostfix(NodePtr node);
  NodePtr parseSubscript(NodePtr node);
  NodePtr parseFilters(NodePtr node);
  NodePtr parseTest(NodePtr node);
  void parseArguments(Node& call);

  const Token& peek(size_t ahead = 0) const;
  Token next();
  bool takeOperator(std::string_view text);
  bool takeName(std::string_view text);
  void expectOperator(std::string_view text);
  std::string expectName();
  bool isOperator(std::string_view text) const;
  bool isName(std::string_view text) const;
  NodePtr make(Node::Kind kind, int line, std::string text = {}) const;
  void give(Node& node, NodePtr part) const;
  Error fail(const Token& token, const std::string& expected) const;
  Error unsupported(int line, const std::string& what) const;

  struct Nesting;
  const std::string& file_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0, loops_ = 0, macros_ = 0;
};

}  // namespace lathe::jinja
