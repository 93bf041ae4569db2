// SPDX-License-Identifier: Apache-2.0
#include "runtime/constraint/schema.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "lathe/runtime/constraint.h"
#include "runtime/constraint/json_values.h"
#include "runtime/constraint/pattern.h"

namespace lathe::constraint {
namespace {

using Node = Grammar::Node;

constexpr int64_t kMaxLength = 10'000;  // of texts and lists that a schema bounds
constexpr size_t kMaxSchemaDepth = 64;  // of schemas within each other

constexpr std::string_view kTypes[] = {"object",  "array",   "string", "number",
                                       "integer", "boolean", "null"};
// Keywords that say nothing about what is valid.
constexpr std::string_view kNotes[] = {"title",       "description", "default",  "examples",
                                       "$schema",     "$id",         "$comment", "$defs",
                                       "definitions", "deprecated",  "readOnly", "writeOnly"};
// Of which type each keyword speaks.
const std::map<std::string_view, std::string_view> kTypeOf{{"properties", "object"},
                                                           {"required", "object"},
                                                           {"additionalProperties", "object"},
                                                           {"items", "array"},
                                                           {"minItems", "array"},
                                                           {"maxItems", "array"},
                                                           {"minLength", "string"},
                                                           {"maxLength", "string"},
                                                           {"pattern", "string"},
                                                           {"format", "string"},
                                                           {"minimum", "integer"},
                                                           {"maximum", "integer"},
                                                           {"exclusiveMinimum", "integer"},
                                                           {"exclusiveMaximum", "integer"}};
// RFC 3339: days that the month has, the 29th of February in leap years.
const std::string kDate =
    R"((\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|)"
    R"((\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29))";
const std::string kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
const std::map<std::string_view, std::string> kFormats{
    {"date", "^" + kDate + "$"},
    {"time", "^" + kTime + "$"},
    {"date-time", "^" + kDate + "T" + kTime + "$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"ipv4", "^((25[0-5]|2[0-4]\\d|1?\\d?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1?\\d?\\d)$"}};

bool contains(auto& list, std::string_view word) {
  return std::ranges::find(list, word) != std::end(list);
}

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const JsonValue& root) : root_(root) {}

  Grammar compile() {
    const Grammar::RuleId text = grammar_.addRule();
    const Node end = schema(grammar_.rule(text).start, root_, 0);
    grammar_.jump(end, grammar_.rule(text).end);
    return std::move(grammar_);
  }

 private:
  using Append = std::function<Node(Node)>;

  Error unsupported(const JsonValue& at, const std::string& what) const {
    return at.error(what, ErrorCode::Unsupported);
  }

  // A part that many places call, made when it is first needed. It may call itself.
  Node shared(Node from, const std::string& name, const Append& append) {
    auto [it, added] = rules_.try_emplace(name, 0);
    if (added) {
      const Grammar::RuleId rule = it->second = grammar_.addRule();
      grammar_.jump(append(grammar_.rule(rule).start), grammar_.rule(rule).end);
    }
    return grammar_.call(from, rules_.at(name));
  }

  Node pattern(Node from, std::string_view text, Spelling spelling, bool whole) {
    return Pattern::parse(text).append(grammar_, from, spelling, whole);
  }
  // Between tokens: nothing, a space, or the beginning of a line.
  Node space(Node from) {
    return shared(from, " space",
                  [&](Node at) { return pattern(at, " ?|\\n {0,16}", Spelling::Plain, true); });
  }

  Node alternatives(Node from, const std::vector<Append>& all) {
    const Node to = grammar_.add();
    for (const Append& append : all) {
      const Node begin = grammar_.add();
      grammar_.jump(from, begin);
      grammar_.jump(append(begin), to);
    }
    return to;
  }

  // "[a, b]" with from `least` to `most` items, -1: without end.
  Node list(Node from, char open, char close, int64_t least, int64_t most, const Append& item) {
    const Node to = grammar_.add();
    auto end = [&](Node at) {
      const Node begin = grammar_.add();
      grammar_.jump(at, begin);
      grammar_.jump(grammar_.literal(space(begin), std::string(1, close)), to);
    };
    Node at = grammar_.literal(from, std::string(1, open));
    if (least == 0) end(at);
    if (most == 0) return to;
    at = item(space(at));
    for (int64_t count = 1; count < std::max(least, most); ++count) {
      if (count >= least) end(at);
      at = item(space(grammar_.literal(at, ",")));
    }
    if (most < 0) {
      const Node again = grammar_.add();
      grammar_.jump(at, again);
      end(again);
      grammar_.jump(item(space(grammar_.literal(again, ","))), again);
    } else {
      end(at);
    }
    return to;
  }

  Node text(Node from, int64_t least, int64_t most) {
    Node at = grammar_.literal(from, "\"");
    const Node to = grammar_.add();
    auto character = [&](Node begin) {
      return shared(begin, " character", [&](Node c) {
        return grammar_.character(c, complement({}), Spelling::JsonString);
      });
    };
    for (int64_t i = 0; i < std::max(least, most); ++i) {
      if (i >= least) grammar_.jump(at, to);
      at = character(at);
    }
    if (most < 0) {
      const Node again = grammar_.add();
      grammar_.jump(at, again);
      grammar_.jump(character(again), again);
      at = again;
    }
    grammar_.jump(at, to);
    return grammar_.literal(to, "\"");
  }
  Node anyText(Node from) {
    return shared(from, " text", [&](Node at) { return text(at, 0, -1); });
  }

  // Of digits that a double holds.
  Node number(Node from) {
    return shared(from, " number", [&](Node at) {
      return pattern(at, "-?(0|[1-9]\\d{0,14})(\\.\\d{1,15})?([eE][+-]?\\d{1,2})?", Spelling::Plain,
                     true);
    });
  }

  Node map(Node from, const Append& value) {
    return list(from, '{', '}', 0, -1,
                [&](Node at) { return value(space(grammar_.literal(anyText(at), ":"))); });
  }

  Node anyOfType(Node from, std::string_view type) {
    if (type == "object")
      return shared(from, " object",
                    [&](Node at) { return map(at, [&](Node v) { return any(v); }); });
    if (type == "array")
      return shared(from, " array", [&](Node at) {
        return list(at, '[', ']', 0, -1, [&](Node item) { return any(item); });
      });
    if (type == "string") return anyText(from);
    if (type == "number") return number(from);
    if (type == "integer") return pattern(from, "-?(0|[1-9]\\d{0,14})", Spelling::Plain, true);
    if (type == "boolean") return pattern(from, "true|false", Spelling::Plain, true);
    return grammar_.literal(from, "null");
  }

  Node any(Node from) {
    return shared(from, " any", [&](Node at) {
      std::vector<Append> all;
      for (std::string_view type : kTypes)
        if (type != "integer") all.push_back([this, type](Node n) { return anyOfType(n, type); });
      return alternatives(at, all);
    });
  }

  // "#/$defs/item" and "#".
  JsonValue resolve(const JsonValue& ref) const {
    std::string_view path = ref.asString();
    if (!path.starts_with('#'))
      throw unsupported(ref, "a $ref out of the schema is not supported; got " + ref.show());
    path.remove_prefix(1);
    JsonValue at = root_;
    while (!path.empty()) {
      if (path[0] != '/') throw ref.error("expected a path like #/$defs/name, got " + ref.show());
      const size_t end = std::min(path.find('/', 1), path.size());
      std::string key;
      for (size_t i = 1; i < end; ++i) {
        const bool escaped = path[i] == '~' && i + 1 < end;
        key += escaped ? (path[++i] == '0' ? '~' : '/') : path[i];
      }
      const bool isIndex = at.isArray() && !key.empty() && key.size() < 9 &&
                           std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      if (at.isArray() ? !isIndex || size_t(std::stoul(key)) >= at.size()
                       : !at.isObject() || !at.has(key))
        throw ref.error("there is no " + ref.show() + " in the schema");
      at = at.isArray() ? at.at(size_t(std::stoul(key))) : at.at(key);
      path.remove_prefix(end);
    }
    return at;
  }

  Node schema(Node from, const JsonValue& s, size_t depth) {
    if (depth > kMaxSchemaDepth)
      throw unsupported(s, fmt::format("more than {} schemas within each other", kMaxSchemaDepth));
    if (s.isBool()) {
      if (s.asBool()) return any(from);
      throw unsupported(s, "the schema false allows nothing");
    }
    if (!s.isObject()) throw s.error("expected a schema, an object or true, got " + s.show());
    std::vector<std::string_view> used;
    std::vector<std::string_view> speaksOf;
    for (size_t i = 0; i < s.size(); ++i) {
      const auto [key, value] = s.member(i);
      if (contains(kNotes, key)) continue;
      used.push_back(key);
      if (auto type = kTypeOf.find(key); type != kTypeOf.end()) {
        if (!contains(speaksOf, type->second)) speaksOf.push_back(type->second);
      } else if (!contains(kWhole, key) && key != "type") {
        throw unsupported(value, "the keyword '" + std::string(key) + "' is not supported");
      }
    }
    for (std::string_view whole : kWhole) {
      if (!s.has(whole)) continue;
      for (std::string_view other : used)
        if (other != whole && other != "type")
          throw unsupported(s, fmt::format("'{}' beside '{}' is not supported", whole, other));
      if (s.has("type") && whole != "enum" && whole != "const")
        throw unsupported(s, fmt::format("'{}' beside 'type' is not supported", whole));
      return combined(from, s, whole, depth);
    }
    std::vector<std::string> types = typesOf(s);
    if (types.empty()) {
      if (speaksOf.empty()) return any(from);
      // What speaks of one type allows all others: those that are of it are some of them.
      if (speaksOf.size() > 1)
        throw unsupported(s, "expected a 'type' beside keywords for several types");
      types = {std::string(speaksOf[0])};
    }
    for (std::string_view spoken : speaksOf)
      if (!contains(types, spoken) && !(spoken == "integer" && contains(types, "number")))
        throw unsupported(
            s, fmt::format("keywords for {} do not apply to type '{}'", spoken, types[0]));
    std::vector<Append> all;
    for (const std::string& type : types)
      all.push_back([this, &s, type, depth](Node at) { return ofType(at, s, type, depth); });
    return all.size() == 1 ? all[0](from) : alternatives(from, all);
  }

  static std::vector<std::string> typesOf(const JsonValue& s) {
    std::vector<std::string> types;
    const auto type = s.find("type");
    if (!type) return types;
    auto add = [&](const JsonValue& word) {
      if (!contains(kTypes, word.asString())) throw word.error("there is no type " + word.show());
      if (!contains(types, word.asString())) types.push_back(word.asString());
    };
    if (type->isString())
      add(*type);
    else
      for (size_t i = 0; i < type->size(); ++i) add(type->at(i));
    if (types.empty()) throw type->error("expected at least one type");
    return types;
  }

  // Keywords that say all there is to say.
  static constexpr std::string_view kWhole[] = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};

  Node combined(Node from, const JsonValue& s, std::string_view keyword, size_t depth) {
    const JsonValue value = s.at(keyword);
    if (keyword == "$ref") {
      const JsonValue target = resolve(value);
      return shared(from, "#" + target.path(),
                    [&](Node at) { return schema(at, target, depth + 1); });
    }
    if (keyword == "const" || keyword == "enum") {
      std::vector<JsonValue> values;
      if (keyword == "const")
        values.push_back(value);
      else
        values = value.elements();
      const std::vector<std::string> types = typesOf(s);
      std::erase_if(values,
                    [&](const JsonValue& v) { return !types.empty() && !isOfTypes(v, types); });
      if (values.empty()) throw value.error("expected at least one value of the schema's type");
      std::vector<Append> all;
      for (const JsonValue& v : values)
        all.push_back([this, v](Node at) { return grammar_.literal(at, compactJson(v)); });
      return alternatives(from, all);
    }
    const std::vector<JsonValue> schemas = value.elements();
    if (schemas.empty()) throw value.error("expected at least one schema");
    if (keyword == "allOf" && schemas.size() > 1)
      throw unsupported(value, "'allOf' of several schemas is not supported; write one schema");
    if (keyword == "oneOf")
      for (size_t i = 0; i < schemas.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (!excludeEachOther(schemas[j], schemas[i]))
            throw unsupported(value,
                              fmt::format("'oneOf': schemas {} and {} may allow the same value; "
                                          "use anyOf",
                                          j, i));
    std::vector<Append> all;
    for (const JsonValue& one : schemas)
      all.push_back([this, one, depth](Node at) { return schema(at, one, depth + 1); });
    return alternatives(from, all);
  }

  // Where it can be seen: by their types, by constants, by a property that both require. References
  // may lead in a circle.
  bool excludeEachOther(const JsonValue& a, const JsonValue& b, size_t depth = 0) const {
    if (!a.isObject() || !b.isObject() || depth > kMaxSchemaDepth) return false;
    if (a.has("$ref")) return excludeEachOther(resolve(a.at("$ref")), b, depth + 1);
    if (b.has("$ref")) return excludeEachOther(a, resolve(b.at("$ref")), depth + 1);
    const auto first = constantsOf(a), second = constantsOf(b);
    if (first && second)
      return std::ranges::none_of(*first,
                                  [&](const std::string& v) { return second->contains(v); });
    std::vector<std::string> types = typesOf(a), others = typesOf(b);
    auto share = [&](const std::string& type) {
      return contains(others, type) || (type == "number" && contains(others, "integer")) ||
             (type == "integer" && contains(others, "number"));
    };
    if (!types.empty() && !others.empty() && std::ranges::none_of(types, share)) return true;
    const auto properties = a.find("properties"), otherProperties = b.find("properties");
    if (!properties || !otherProperties || types != std::vector<std::string>{"object"} ||
        types != others)
      return false;
    for (size_t i = 0; i < properties->size(); ++i) {
      const auto [name, property] = properties->member(i);
      if (otherProperties->has(name) && isRequired(a, name) && isRequired(b, name) &&
          constantsOf(property) && constantsOf(otherProperties->at(name)) &&
          excludeEachOther(property, otherProperties->at(name), depth + 1))
        return true;
    }
    return false;
  }
  static std::optional<std::set<std::string>> constantsOf(const JsonValue& s) {
    if (!s.isObject()) return std::nullopt;
    std::set<std::string> values;
    if (s.has("const")) values.insert(compactJson(s.at("const")));
    if (auto list = s.find("enum"))
      for (const JsonValue& value : list->elements()) values.insert(compactJson(value));
    if (values.empty()) return std::nullopt;
    return values;
  }
  static bool isRequired(const JsonValue& s, std::string_view name) {
    const auto required = s.find("required");
    for (size_t i = 0; required && i < required->size(); ++i)
      if (required->at(i).asString() == name) return true;
    return false;
  }

  static int64_t countOf(const JsonValue& s, std::string_view key, int64_t otherwise) {
    const auto value = s.find(key);
    return value ? value->asInt(0, kMaxLength) : otherwise;
  }
  // From least to most, which a schema may have in the wrong order.
  static std::pair<int64_t, int64_t> boundsOf(const JsonValue& s, std::string_view least,
                                              std::string_view most) {
    const std::pair bounds(countOf(s, least, 0), countOf(s, most, -1));
    if (bounds.second >= 0 && bounds.first > bounds.second)
      throw s.error(fmt::format("'{}' is above '{}': nothing is allowed", least, most));
    return bounds;
  }

  Node ofType(Node from, const JsonValue& s, const std::string& type, size_t depth) {
    if (type == "object") return object(from, s, depth);
    if (type == "array") {
      const auto [least, most] = boundsOf(s, "minItems", "maxItems");
      const auto items = s.find("items");
      if (!items && most < 0 && least == 0) return anyOfType(from, type);
      // A list of many items calls for each what one rule says.
      return list(from, '[', ']', least, most, [&](Node at) {
        return !items ? any(at) : shared(at, "#" + items->path(), [&](Node item) {
          return schema(item, *items, depth + 1);
        });
      });
    }
    if (type == "string") return string(from, s);
    if (type == "integer" || type == "number") return bounded(from, s, type);
    return anyOfType(from, type);
  }

  Node string(Node from, const JsonValue& s) {
    const auto wanted = s.find("pattern"), format = s.find("format");
    const bool hasLength = s.has("minLength") || s.has("maxLength");
    if (int(wanted.has_value()) + int(format.has_value()) + int(hasLength) > 1)
      throw unsupported(s, "several of pattern, format and lengths together are not supported");
    if (!wanted && !format) {
      const auto [least, most] = boundsOf(s, "minLength", "maxLength");
      return least == 0 && most < 0 ? anyText(from) : text(from, least, most);
    }
    std::string_view expression;
    if (wanted) {
      expression = wanted->asString();
    } else {
      const auto known = kFormats.find(format->asString());
      if (known == kFormats.end())
        throw unsupported(*format, "the format " + format->show() + " is not supported");
      expression = known->second;
    }
    const Node begin = grammar_.literal(from, "\"");
    return grammar_.literal(pattern(begin, expression, Spelling::JsonString, /*whole=*/false),
                            "\"");
  }

  Node bounded(Node from, const JsonValue& s, const std::string& type) {
    constexpr int64_t kMost = 999'999'999'999'999;
    std::optional<int64_t> low, high;
    for (const char* key : {"minimum", "exclusiveMinimum"})
      if (auto v = s.find(key)) {
        const int64_t least = v->asInt(-kMost, kMost) + (key[0] == 'e');
        low = std::max(low.value_or(least), least);
      }
    for (const char* key : {"maximum", "exclusiveMaximum"})
      if (auto v = s.find(key)) {
        const int64_t most = v->asInt(-kMost, kMost) - (key[0] == 'e');
        high = std::min(high.value_or(most), most);
      }
    if (!low && !high) return anyOfType(from, type);
    if (type == "number")
      throw unsupported(s, "bounds of the type number are not supported; those of integer are");
    const int64_t least = low.value_or(-kMost), most = high.value_or(kMost);
    if (least > most) throw s.error("the bounds leave no integer");
    return pattern(from, integerPattern(least, most), Spelling::Plain, true);
  }

  Node object(Node from, const JsonValue& s, size_t depth) {
    const auto properties = s.find("properties"), more = s.find("additionalProperties"),
               required = s.find("required");
    for (size_t i = 0; required && i < required->size(); ++i)
      if (!properties || !properties->has(required->at(i).asString()))
        throw unsupported(required->at(i), "'required' names " + required->at(i).show() +
                                               ", which 'properties' does not have");
    if (more && !more->isBool() && !more->isObject()) throw more->error("expected a schema");
    const bool closed = more && more->isBool() && !more->asBool();
    if (!properties || properties->size() == 0) {
      if (closed) return list(from, '{', '}', 0, 0, {});
      if (!more || more->isBool()) return anyOfType(from, "object");
      return map(from, [&](Node at) {
        return shared(at, "#" + more->path(), [&](Node v) { return schema(v, *more, depth + 1); });
      });
    }
    // Two ways through the properties: while none has come, and behind one, where a comma comes.
    const Node to = grammar_.add();
    Node none = grammar_.literal(from, "{"), some = grammar_.add();
    for (size_t i = 0; i < properties->size(); ++i) {
      const auto [name, value] = properties->member(i);
      const bool mayMiss = !isRequired(s, name);
      const Node begin = grammar_.add(), nextNone = grammar_.add(), nextSome = grammar_.add();
      grammar_.jump(none, begin);
      grammar_.jump(grammar_.literal(some, ","), begin);
      const Node key = grammar_.literal(space(begin), compactText(name) + ":");
      grammar_.jump(schema(space(key), value, depth + 1), nextSome);
      if (mayMiss) {
        grammar_.jump(none, nextNone);
        grammar_.jump(some, nextSome);
      }
      none = nextNone;
      some = nextSome;
    }
    for (Node at : {none, some}) grammar_.jump(grammar_.literal(space(at), "}"), to);
    return to;
  }

  JsonValue root_;
  Grammar grammar_;
  std::map<std::string, Grammar::RuleId> rules_;
};

}  // namespace

Grammar schemaGrammar(const JsonValue& schema) { return SchemaCompiler(schema).compile(); }

}  // namespace lathe::constraint
