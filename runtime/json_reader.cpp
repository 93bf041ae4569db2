// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/json_reader.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/mapped_file.h"

namespace lathe {

struct JsonObject;

struct JsonNode {
  using Array = std::vector<JsonNode>;
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::unique_ptr<std::string>,
               std::unique_ptr<Array>, std::unique_ptr<JsonObject>>
      value;
};

struct JsonObject {
  std::vector<std::pair<std::string, JsonNode>> members;
  std::vector<uint32_t> byKey;  // indices of members, sorted by key
};

struct JsonValue::Document {
  std::string file;
  JsonNode root;
};

namespace {

using NodeArray = std::unique_ptr<JsonNode::Array>;
using NodeObject = std::unique_ptr<JsonObject>;

std::string kindOf(const JsonNode& node) {
  static constexpr const char* names[] = {"null",     "a boolean", "an integer", "an integer",
                                          "a number", "a string",  "an array",   "an object"};
  return names[node.value.index()];
}

// Builds the tree from nlohmann's events, because its own tree keeps the last of duplicate keys.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const std::string& file, const JsonLimits& limits, JsonNode& root)
      : file_(file), limits_(limits), root_(root) {}

  bool null() override { return add({}); }
  bool boolean(bool v) override { return add({v}); }
  bool number_integer(number_integer_t v) override { return add({int64_t(v)}); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v <= uint64_t(std::numeric_limits<int64_t>::max())) return add({int64_t(v)});
    return add({uint64_t(v)});
  }
  bool number_float(number_float_t v, const string_t&) override { return add({double(v)}); }
  bool string(string_t& v) override { return add({std::make_unique<std::string>(std::move(v))}); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return open({std::make_unique<JsonObject>()}); }
  bool key(string_t& v) override {
    std::get<NodeObject>(stack_.back()->value)->members.emplace_back(std::move(v), JsonNode{});
    return true;
  }
  bool end_object() override {
    JsonObject& object = *std::get<NodeObject>(stack_.back()->value);
    object.byKey.resize(object.members.size());
    for (uint32_t i = 0; i < object.byKey.size(); ++i) object.byKey[i] = i;
    auto keyOf = [&](uint32_t i) -> const std::string& { return object.members[i].first; };
    std::ranges::sort(object.byKey, {}, keyOf);
    auto twice = std::ranges::adjacent_find(object.byKey, {}, keyOf);
    if (twice != object.byKey.end())
      fail(fmt::format("the key {} appears twice in one object", inQuotes(keyOf(*twice))));
    stack_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return open({std::make_unique<JsonNode::Array>()}); }
  bool end_array() override {
    stack_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    std::string_view what = e.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    if (size_t bracket = what.find("] "); bracket != what.npos) what.remove_prefix(bracket + 2);
    fail(fmt::format("not valid JSON at byte {}: {}", position, inQuotes(what, 200)));
    return false;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::InvalidFile, file_ + ": " + message);
  }
  JsonNode& place(JsonNode&& node) {
    if (++nodes_ > limits_.maxNodes)
      fail(fmt::format("more than {} JSON values", limits_.maxNodes));
    if (stack_.empty()) return root_ = std::move(node);
    if (auto* array = std::get_if<NodeArray>(&stack_.back()->value))
      return (*array)->emplace_back(std::move(node));
    return std::get<NodeObject>(stack_.back()->value)->members.back().second = std::move(node);
  }
  bool add(JsonNode node) {
    place(std::move(node));
    return true;
  }
  bool open(JsonNode node) {
    if (stack_.size() >= limits_.maxDepth)
      fail(fmt::format("JSON nested deeper than {} levels", limits_.maxDepth));
    // The pointer stays good: a container's siblings are added only after it is closed.
    stack_.push_back(&place(std::move(node)));
    return true;
  }

  const std::string& file_;
  const JsonLimits& limits_;
  JsonNode& root_;
  std::vector<JsonNode*> stack_;
  size_t nodes_ = 0;
};

// Paths are needed where something may go wrong, and so they are found by searching for the node.
// Its steps are written on the way back, the last one first.
bool findPath(const JsonNode& from, const JsonNode* target, std::vector<std::string>& steps) {
  if (&from == target) return true;
  if (auto* array = std::get_if<NodeArray>(&from.value)) {
    for (size_t i = 0; i < (*array)->size(); ++i) {
      if (!findPath((**array)[i], target, steps)) continue;
      steps.push_back(fmt::format("[{}]", i));
      return true;
    }
  } else if (auto* object = std::get_if<NodeObject>(&from.value)) {
    for (auto& [key, value] : (*object)->members) {
      if (!findPath(value, target, steps)) continue;
      const std::string shown = inQuotes(key);
      steps.push_back("." + shown.substr(1, shown.size() - 2));
      return true;
    }
  }
  return false;
}

}  // namespace

std::string inQuotes(std::string_view text, size_t limit) {
  std::string s = "\"";
  size_t n = std::min(text.size(), limit);
  // Do not cut a UTF-8 sequence in two.
  while (n < text.size() && n > 0 && (uint8_t(text[n]) & 0xc0) == 0x80) --n;
  for (char c : text.substr(0, n)) {
    if (uint8_t(c) < 0x20 || c == 0x7f)
      s += fmt::format("\\x{:02x}", uint8_t(c));
    else
      s += c;
  }
  return s + (n < text.size() ? "...\"" : "\"");
}

std::string jsonString(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error(ErrorCode::InvalidArgument,
                "expected valid UTF-8 for JSON, got " + inQuotes(text) + " with invalid bytes");
  }
}

JsonValue JsonValue::parse(std::string_view text, const std::string& file,
                           const JsonLimits& limits) {
  auto document = std::make_shared<Document>();
  document->file = file;
  TreeBuilder builder(document->file, limits, document->root);
  // The parser takes NUL for the end of the text and would not look at what follows.
  if (size_t nul = text.find('\0'); nul != text.npos)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("{}: not valid JSON at byte {}: a NUL character", file, nul + 1));
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  const JsonNode* root = &document->root;
  return JsonValue(std::move(document), root);
}

JsonValue JsonValue::load(const std::string& path, const FileKind& kind) {
  return parse(readWholeFile(path, kind), path);
}

bool JsonValue::isNull() const { return std::holds_alternative<std::monostate>(node_->value); }
bool JsonValue::isBool() const { return std::holds_alternative<bool>(node_->value); }
bool JsonValue::isString() const {
  return std::holds_alternative<std::unique_ptr<std::string>>(node_->value);
}
bool JsonValue::isNumber() const {
  return isInteger() || std::holds_alternative<double>(node_->value);
}
bool JsonValue::isInteger() const {
  return std::holds_alternative<int64_t>(node_->value) ||
         std::holds_alternative<uint64_t>(node_->value);
}
bool JsonValue::isArray() const { return std::holds_alternative<NodeArray>(node_->value); }
bool JsonValue::isObject() const { return std::holds_alternative<NodeObject>(node_->value); }

bool JsonValue::asBool() const {
  if (auto* v = std::get_if<bool>(&node_->value)) return *v;
  throw wrongKind("true or false");
}

const std::string& JsonValue::asString() const {
  if (auto* v = std::get_if<std::unique_ptr<std::string>>(&node_->value)) return **v;
  throw wrongKind("a string");
}

int64_t JsonValue::asInt(int64_t low, int64_t high) const {
  if (!isInteger()) throw wrongKind("an integer");
  auto* v = std::get_if<int64_t>(&node_->value);
  if (!v || *v < low || *v > high)
    throw error(fmt::format("expected an integer from {} to {}, got {}", low, high, show()));
  return *v;
}

uint64_t JsonValue::asUint(uint64_t high) const {
  if (!isInteger()) throw wrongKind("an integer");
  uint64_t result = 0;
  auto* v = std::get_if<int64_t>(&node_->value);
  if (v && *v < 0) throw error(fmt::format("expected an integer from 0 to {}, got {}", high, *v));
  result = v ? uint64_t(*v) : std::get<uint64_t>(node_->value);
  if (result > high)
    throw error(fmt::format("expected an integer from 0 to {}, got {}", high, result));
  return result;
}

double JsonValue::asDouble() const {
  if (auto* v = std::get_if<double>(&node_->value)) return *v;
  if (auto* v = std::get_if<int64_t>(&node_->value)) return double(*v);
  if (auto* v = std::get_if<uint64_t>(&node_->value)) return double(*v);
  throw wrongKind("a number");
}

size_t JsonValue::size() const {
  if (auto* array = std::get_if<NodeArray>(&node_->value)) return (*array)->size();
  if (auto* object = std::get_if<NodeObject>(&node_->value)) return (*object)->members.size();
  throw wrongKind("an array or an object");
}

std::vector<JsonValue> JsonValue::elements() const {
  auto* array = std::get_if<NodeArray>(&node_->value);
  if (!array) throw wrongKind("an array");
  std::vector<JsonValue> all;
  all.reserve((*array)->size());
  for (const JsonNode& node : **array) all.push_back({document_, &node});
  return all;
}

JsonValue JsonValue::at(size_t i) const {
  auto* array = std::get_if<NodeArray>(&node_->value);
  if (!array) throw wrongKind("an array");
  if (i >= (*array)->size())
    throw error(fmt::format("expected at least {} elements, got {}", i + 1, (*array)->size()));
  return {document_, &(**array)[i]};
}

const JsonNode* JsonValue::lookUp(std::string_view key) const {
  auto* pointer = std::get_if<NodeObject>(&node_->value);
  if (!pointer) throw wrongKind("an object");
  const JsonObject& object = **pointer;
  auto keyOf = [&](uint32_t i) -> std::string_view { return object.members[i].first; };
  auto it = std::ranges::lower_bound(object.byKey, key, {}, keyOf);
  return it != object.byKey.end() && keyOf(*it) == key ? &object.members[*it].second : nullptr;
}

JsonValue JsonValue::at(std::string_view key) const {
  if (const JsonNode* node = lookUp(key)) return {document_, node};
  throw error(fmt::format("the key {} is missing", inQuotes(key)));
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  const JsonNode* node = lookUp(key);
  if (!node || std::holds_alternative<std::monostate>(node->value)) return std::nullopt;
  return JsonValue(document_, node);
}

bool JsonValue::has(std::string_view key) const { return lookUp(key) != nullptr; }

std::pair<const std::string&, JsonValue> JsonValue::member(size_t i) const {
  auto* object = std::get_if<NodeObject>(&node_->value);
  if (!object) throw wrongKind("an object");
  auto& [key, value] = (*object)->members.at(i);
  return {key, JsonValue(document_, &value)};
}

std::string JsonValue::show() const {
  if (auto* v = std::get_if<bool>(&node_->value)) return *v ? "true" : "false";
  if (auto* v = std::get_if<int64_t>(&node_->value)) return std::to_string(*v);
  if (auto* v = std::get_if<uint64_t>(&node_->value)) return std::to_string(*v);
  if (auto* v = std::get_if<double>(&node_->value)) {
    const std::string text = fmt::format("{}", *v);
    return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;  // no integer
  }
  if (isString()) return inQuotes(asString());
  return kindOf(*node_);
}

std::string JsonValue::path() const {
  std::vector<std::string> steps;
  findPath(document_->root, node_, steps);
  std::string path;
  for (size_t i = steps.size(); i-- > 0;) path += steps[i];
  return path.starts_with('.') ? path.substr(1) : path;
}

const std::string& JsonValue::file() const { return document_->file; }

std::string JsonValue::where() const {
  const std::string at = path();
  return document_->file + (at.empty() ? "" : ": " + at);
}

Error JsonValue::error(const std::string& message, ErrorCode code) const {
  return Error(code, where() + ": " + message);
}

Error JsonValue::wrongKind(std::string_view expected) const {
  return error(fmt::format("expected {}, got {}", expected, show()));
}

}  // namespace lathe
