// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a chat template computes with: Python's values as far as templates use them.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lathe/runtime/json_reader.h"

namespace lathe::jinja {

class Value;
struct Node;
using List = std::vector<Value>;

/// Members in the order in which they were put in. Keys are text.
struct Dict {
  std::vector<std::pair<std::string, Value>> members;
  const Value* find(std::string_view key) const;
  void set(std::string_view key, Value value);
};

/// A name that is not defined: empty text, false, no elements; what it is asked for is an error.
struct Undefined {
  std::string name;
};
struct None {};
/// `namespace(...)`: the one value that templates may change.
struct Namespace {
  std::shared_ptr<Dict> members;
};
/// A function of the environment, or a macro.
struct Function {
  std::string name;
  const Node* macro = nullptr;  ///< null for one of the environment
};

class Value {
 public:
  Value() : data_(Undefined{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None none) : data_(none) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(List list);
  Value(Dict dict);
  Value(Namespace space) : data_(std::move(space)) {}
  Value(Function function) : data_(std::move(function)) {}
  static Value fromJson(const JsonValue& json);

  bool isUndefined() const { return std::holds_alternative<Undefined>(data_); }
  bool isNone() const { return std::holds_alternative<None>(data_); }
  const bool* asBool() const { return std::get_if<bool>(&data_); }
  const double* asFloat() const { return std::get_if<double>(&data_); }
  const std::string* asText() const;
  const List* asList() const;
  const Dict* asDict() const;
  const Namespace* asNamespace() const { return std::get_if<Namespace>(&data_); }
  const Function* asFunction() const { return std::get_if<Function>(&data_); }
  const Undefined* asUndefined() const { return std::get_if<Undefined>(&data_); }
  /// A whole number; true and false are 1 and 0.
  std::optional<int64_t> asInt() const;
  /// Any number.
  std::optional<double> asNumber() const;

  /// How deep lists and dicts are in each other: 0 for what is neither.
  uint32_t depth() const { return depth_; }
  /// At least how long its text is: what lists share counts each time.
  uint64_t textSize() const;

  bool isTrue() const;
  bool operator==(const Value& other) const;
  /// As Python's str() and repr().
  std::string text() const;
  std::string repr() const;
  /// As Python names the type: "str", "list".
  std::string typeName() const;

 private:
  using Text = std::shared_ptr<const std::string>;
  std::variant<Undefined, None, bool, int64_t, double, Text, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, Namespace, Function>
      data_;
  uint32_t depth_ = 0;
  uint64_t textSize_ = 0;  // of a list or dict
};

struct JsonStyle {
  std::optional<int64_t> indent;
  std::string item = ", ", key = ": ";
  bool ascii = false, sorted = false;
};
/// As Python's json.dumps; nothing for what JSON has no form for.
std::optional<std::string> toJson(const Value& value, const JsonStyle& style);

/// What Python's str.isspace says of a code point.
bool isSpace(char32_t c);
/// Without white space, or without the characters of `characters`, at the beginning and the end.
std::string strip(std::string_view text, bool left, bool right,
                  const std::string* characters = nullptr);
enum class Case { Upper, Lower, Capitalized, Title };
/// Character by character: a character that becomes two in capitals stays as it is.
std::string changeCase(std::string_view text, Case kind);
std::u32string codePoints(std::string_view text);
std::string fromCodePoints(std::u32string_view points);

}  // namespace lathe::jinja
