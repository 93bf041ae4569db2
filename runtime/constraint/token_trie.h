// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each token of a tokenizer adds to a text, arranged by their bytes.
#include <cstdint>
#include <string>
#include <vector>

#include "lathe/runtime/tokenizer.h"

namespace lathe::constraint {

/// Texts of tokens as a tree, its nodes in the order of a walk.
class TokenTrie {
 public:
  struct Node {
    uint8_t byte = 0;
    uint32_t depth = 0;                      ///< bytes up to here
    uint32_t end = 0;                        ///< the node behind all that begin with these bytes
    uint32_t firstToken = 0, lastToken = 0;  ///< in tokens(), those that end here
  };
  /// Empty texts are left out.
  explicit TokenTrie(const std::vector<std::string>& texts);
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int>& tokens() const { return tokens_; }

 private:
  std::vector<Node> nodes_;
  std::vector<int> tokens_;
};

/// The bytes that each token adds: as a text's first token, and behind others. Control tokens add
/// nothing. Throws Error(Unsupported) for a tokenizer whose tokens change what stands around them.
struct TokenTexts {
  explicit TokenTexts(const Tokenizer& tokenizer);
  std::vector<std::string> first, later;  ///< by id
};

}  // namespace lathe::constraint
