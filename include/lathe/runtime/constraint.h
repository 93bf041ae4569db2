// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts that must match a regular expression or a JSON schema: which tokens may come next.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lathe/runtime/tokenizer.h"

namespace lathe {

/// What a text must be, compiled for the tokens of one tokenizer. Masks are computed when a text
/// first needs them and kept within a bound. One thread at a time; texts of one thread share it.
///
/// From every place that a text can reach, there is a way to its end: bytes that no token spells
/// alone are not written, and a nesting that could not be closed within maxNesting is not begun.
class Constraint {
 public:
  static constexpr int64_t kMaxNodes = 100'000;        ///< of the automaton
  static constexpr int64_t kMaxNesting = 32;           ///< of recursive schemas and of any JSON
  static constexpr int64_t kMaxAlternatives = 20'000;  ///< places where a text may be at once
  static constexpr int64_t kMaxCacheBytes = int64_t(64) << 20;  ///< of places and masks

  ~Constraint();

  /// The whole text matches `pattern`: characters, escapes, classes, groups, |, quantifiers, of
  /// Unicode characters (\d, \w and \s are ASCII). Anchors are allowed at its ends. Throws
  /// Error(InvalidArgument) for a mistake in it, Error(Unsupported) by name for back references,
  /// looking around and what else no automaton does, and for one beyond the limits.
  static std::shared_ptr<Constraint> regex(std::string_view pattern, const Tokenizer& tokenizer);
  /// The text is a JSON document that `schema` (JSON Schema 2020-12) allows: types, properties in
  /// their order, required, additionalProperties, enum, const, items, minItems, maxItems, lengths,
  /// pattern and format of texts, bounds of integers, anyOf, oneOf of alternatives that exclude
  /// each other, $ref to places in the schema. Throws Error naming the place and the keyword for
  /// all else.
  static std::shared_ptr<Constraint> jsonSchema(std::string_view schema, const std::string& file,
                                                const Tokenizer& tokenizer);
  /// The text is a JSON object.
  static std::shared_ptr<Constraint> jsonObject(const Tokenizer& tokenizer);

 private:
  friend class ConstraintState;
  struct Impl;
  explicit Constraint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Where one text is.
class ConstraintState {
 public:
  explicit ConstraintState(std::shared_ptr<Constraint> constraint);

  /// A bit for each token of the tokenizer, 64 to a word: those that may come next. Without end
  /// tokens. Valid until the next call of any text's.
  std::span<const uint64_t> allowed();
  bool isAllowed(int id) {
    const std::span<const uint64_t> bits = allowed();
    return id >= 0 && size_t(id) / 64 < bits.size() && (bits[size_t(id) / 64] >> (id % 64) & 1);
  }
  /// Whether the text may end here.
  bool isComplete();
  /// Whether anything may follow. One of the two always holds.
  bool canGoOn();
  /// Throws Error(InvalidArgument) for a token that is not allowed here.
  void accept(int id);

 private:
  std::shared_ptr<Constraint> constraint_;
  std::string text_;   // so far, for when the places are forgotten
  bool first_ = true;  // no token has come
  uint64_t generation_ = 0;
  uint32_t place_ = 0;
};

}  // namespace lathe
