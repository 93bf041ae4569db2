// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regular expressions as automata: the part of the common syntax that describes sets of texts.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/constraint/grammar.h"

namespace lathe::constraint {

class Pattern {
 public:
  /// Throws Error(InvalidArgument) for a mistake, with its place; Error(Unsupported) by name for
  /// what is not a set of texts.
  static Pattern parse(std::string_view text);

  /// Appends to a node what matches. `whole`: the text is what the pattern describes; otherwise it
  /// contains it, except where the pattern is anchored.
  Grammar::Node append(Grammar& grammar, Grammar::Node from, Spelling spelling, bool whole) const;

 private:
  friend class PatternParser;
  struct Item {
    enum class Kind { Set, Sequence, Choice, Repeat } kind = Kind::Sequence;
    CodeSet set = {};
    std::vector<Item> parts = {};  // of Repeat: one
    int64_t least = 0, most = 0;   // -1: without end
  };
  // One alternative of the outermost level.
  struct Branch {
    bool fromStart = false, toEnd = false;
    Item item;
  };
  static Grammar::Node append(Grammar& grammar, Grammar::Node from, Spelling spelling,
                              const Item& item);
  std::vector<Branch> branches_;
};

}  // namespace lathe::constraint
