// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a template: no files, no network, no code but its own, and within limits.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/lexer.h"
#include "runtime/jinja/syntax.h"

namespace lathe::jinja {

struct Limits {
  uint64_t steps = 5'000'000;        ///< operations
  size_t output = size_t(16) << 20;  ///< bytes
  size_t made = size_t(64) << 20;    ///< bytes of values made on the way
  int calls = 40;                    ///< macros within each other
  uint32_t depth = 64;               ///< lists and dicts within each other
};

/// Arguments of a call, a filter or a test.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter {
 public:
  /// `date` is what strftime_now formats: seconds since 1970 as the local clock shows them.
  Interpreter(const std::string& file, const Limits& limits, int64_t date)
      : file_(file), limits_(limits), date_(date) {}

  /// Throws Error(InvalidFile) for what the template does wrong, Error(Unsupported), by name, for
  /// what is not done here, and Error(InvalidArgument) where the template refuses its input.
  std::string render(const Node& root, Dict variables);

 private:
  struct Scope {
    Scope* parent;
    std::map<std::string, Value, std::less<>> names = {};
  };
  enum class Flow { Next, Break, Continue };

  // Statements.
  Flow execute(const Node& node);
  Flow executeFor(const Node& node);
  Flow loopOver(const Node& node, const List& items);
  void executeSet(const Node& node);
  void bind(const Node& node, const Value& value);
  std::string capture(const Node& body);
  Value callMacro(const Node& call, const Node& macro, const Arguments& arguments);
  void print(const Node& node, const std::string& text);

  // Expressions.
  Value evaluate(const Node& node);
  Value evaluateCompare(const Node& node);
  Value evaluateDict(const Node& node);
  Value evaluateSubscript(const Node& node);
  Value evaluateSlice(const Node& node);
  Value evaluateCall(const Node& node);
  Arguments argumentsOf(const Node& node);
  Value lookUp(const std::string& name) const;
  Value attribute(const Node& node, const Value& value, const std::string& name) const;
  Value unary(const Node& node, const Value& value) const;
  Value binary(const Node& node, const Value& left, const Value& right);
  Value arithmetic(const Node& node, const Value& left, const Value& right) const;
  bool compare(const Node& node, const std::string& op, const Value& a, const Value& b) const;
  bool contains(const Node& node, const Value& item, const Value& whole) const;
  Value callGlobal(const Node& node, const std::string& name, const Arguments& arguments);
  Value range(const Node& node, const Arguments& arguments);
  Value callMethod(const Node& node, const Value& self, const std::string& name,
                   const Arguments& arguments);
  Value textMethod(const Node& node, const std::string& text, const std::string& name,
                   const Arguments& arguments);
  Value split(const Node& node, const std::string& text, const Arguments& arguments, bool last);
  Value filter(const Node& node, const std::string& name, const Value& value,
               const Arguments& arguments);
  Value textFilter(const Node& node, const std::string& name, const Value& value,
                   const Arguments& arguments, bool& found);
  Value listFilter(const Node& node, const std::string& name, const Value& value,
                   const Arguments& arguments, bool& found);
  Value select(const Node& node, const std::string& name, const Value& value,
               const Arguments& arguments);
  Value map(const Node& node, const Value& value, const Arguments& arguments);
  Value json(const Node& node, const Value& value, const Arguments& arguments);
  bool test(const Node& node, const std::string& name, const Value& value,
            const Arguments& arguments);

  // What values are made of, and what they may cost.
  List itemsOf(const Node& node, const Value& value) const;
  Value made(const Node& node, Value value);
  void spend(const Node& node, uint64_t steps);
  void spendBytes(const Node& node, size_t bytes);
  const Value* argument(const Node& node, const Arguments& arguments, size_t position,
                        std::string_view name) const;
  void expectCount(const Node& node, const Arguments& arguments, size_t most) const;
  const std::string& expectText(const Node& node, const Value& value) const;
  int64_t expectInt(const Node& node, const Value& value) const;

  Error fail(const Node& node, const std::string& message) const;
  Error unsupported(const Node& node, const std::string& what) const;

  const std::string& file_;
  const Limits limits_;
  const int64_t date_;
  uint64_t steps_ = 0;
  size_t made_ = 0;
  int calls_ = 0;
  Scope* scope_ = nullptr;
  Scope* root_ = nullptr;
  std::string output_;
};

}  // namespace lathe::jinja
