// SPDX-License-Identifier: Apache-2.0
#include "runtime/token_bytes.h"

#include <vector>

#include "runtime/byte_level.h"

namespace lathe {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

// "<0x0A>" as byte fallback spells it; -1 for others.
int fallbackByte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

std::string ownBytes(const std::string& token, std::string text) {
  if (text.find(kReplacement) == text.npos || token.find(kReplacement) != token.npos) return text;
  if (const int byte = fallbackByte(token); byte >= 0) return std::string(1, char(byte));
  return unspellBytes(token);
}

std::optional<int> findLetterToken(const Tokenizer& tokenizer) {
  for (int id = 0; id < tokenizer.vocabSize(); ++id) {
    if (tokenizer.isSpecial(id) || fallbackByte(tokenizer.idToToken(id)) >= 0) continue;
    const std::string text = tokenizer.decode(std::vector<int>{id});
    if (text.size() == 1 && text[0] >= 'a' && text[0] <= 'z') return id;
  }
  return std::nullopt;
}

}  // namespace lathe
