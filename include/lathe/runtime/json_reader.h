// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strict JSON for files that nobody vouches for: duplicate keys, deep nesting, invalid UTF-8, NaN
// and numbers of the wrong kind are errors that name the file, the key path and what was found.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe {

struct FileKind;

struct JsonLimits {
  size_t maxDepth = 64;          ///< nested arrays and objects
  size_t maxNodes = 16'000'000;  ///< values in the document, at 16 bytes each
};

struct JsonNode;

/// A place in a parsed document; copies share the document. Every accessor throws
/// Error(InvalidFile) "FILE: KEY.PATH: expected ..., got ..." when the value is another kind.
class JsonValue {
 public:
  /// Parses `text` whole; `file` is what errors call it.
  static JsonValue parse(std::string_view text, const std::string& file,
                         const JsonLimits& limits = {});
  /// Reads and parses a file (readWholeFile).
  static JsonValue load(const std::string& path, const FileKind& kind);

  bool isNull() const;
  bool isBool() const;
  bool isString() const;
  bool isNumber() const;
  /// Written without a fraction or an exponent, and in the range of int64 or uint64.
  bool isInteger() const;
  bool isArray() const;
  bool isObject() const;

  bool asBool() const;
  const std::string& asString() const;
  /// An integer literal within [low, high]; 1.0 and 1e3 are refused.
  int64_t asInt(int64_t low = std::numeric_limits<int64_t>::min(),
                int64_t high = std::numeric_limits<int64_t>::max()) const;
  uint64_t asUint(uint64_t high = std::numeric_limits<uint64_t>::max()) const;
  /// Any finite number, an integer literal included.
  double asDouble() const;

  /// "FILE: KEY.PATH", as errors about this value begin.
  std::string where() const;

  /// Elements of an array or members of an object.
  size_t size() const;
  /// The elements of an array; an object, even an empty one, is an error.
  std::vector<JsonValue> elements() const;
  /// Element `i` of an array.
  JsonValue at(size_t i) const;
  /// Member `key` of an object; a missing key is an error.
  JsonValue at(std::string_view key) const;
  /// Member `key`, or nothing where it is missing or null.
  std::optional<JsonValue> find(std::string_view key) const;
  /// Whether the object has `key`, null included.
  bool has(std::string_view key) const;
  /// Key and value of member `i` of an object, in the order of the file.
  std::pair<const std::string&, JsonValue> member(size_t i) const;

  /// The value as an error message shows it: short, and never the whole of a long one.
  std::string show() const;
  /// "a.b[3]", empty for the document itself.
  std::string path() const;
  const std::string& file() const;
  /// The error for this place: "FILE: KEY.PATH: MESSAGE".
  Error error(const std::string& message, ErrorCode code = ErrorCode::InvalidFile) const;

 private:
  struct Document;
  JsonValue(std::shared_ptr<const Document> document, const JsonNode* node)
      : document_(std::move(document)), node_(node) {}
  Error wrongKind(std::string_view expected) const;
  const JsonNode* lookUp(std::string_view key) const;

  std::shared_ptr<const Document> document_;
  const JsonNode* node_;
};

/// What `read` makes of each element of an array.
template <class Read>
auto listFrom(const JsonValue& array, Read read) {
  std::vector<decltype(read(array))> items;
  for (const JsonValue& element : array.elements()) items.push_back(read(element));
  return items;
}

/// `text` between quotes with control characters escaped, cut after `limit` bytes: for messages
/// that quote a hostile file.
std::string inQuotes(std::string_view text, size_t limit = 60);

/// `text` as a JSON string literal, quotes included; Error(InvalidArgument) unless valid UTF-8.
std::string jsonString(std::string_view text);

}  // namespace lathe
