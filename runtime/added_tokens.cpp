// SPDX-License-Identifier: Apache-2.0
#include "runtime/added_tokens.h"

#include <algorithm>

#include <fmt/format.h>
#include <utf8proc.h>

#include "lathe/runtime/error.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

// A search costs up to this per byte of text, so it is far below the limit for vocabulary tokens.
constexpr size_t kMaxContentBytes = 1024;
constexpr size_t kMaxTokens = 1'000'000;

// The White_Space property of Unicode.
bool isSpace(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// \w of Unicode regular expressions (UTS 18, annex C): letters, marks, digits, connectors, joiners,
// and the circled letters, which are alphabetic though their category is "symbol".
bool isWordCharacter(char32_t c) {
  switch (utf8proc_category(utf8proc_int32_t(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
             (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
             (c >= 0x1f170 && c <= 0x1f189);
  }
}

}  // namespace

std::vector<AddedToken> parseAddedTokens(const JsonValue& json) {
  std::vector<AddedToken> tokens;
  if (!json.isArray()) throw json.error("expected an array, got " + json.show());
  if (json.size() > kMaxTokens)
    throw json.error(
        fmt::format("expected at most {} added tokens, got {}", kMaxTokens, json.size()));
  for (size_t i = 0; i < json.size(); ++i) {
    JsonValue item = json.at(i);
    refuseUnknownKeys(
        item, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    auto flag = [&](std::string_view key, bool otherwise) {
      auto value = item.find(key);
      return value ? value->asBool() : otherwise;
    };
    AddedToken token;
    token.id = int(item.at("id").asInt(0, kMaxTokenId));
    token.content = item.at("content").asString();
    if (token.content.empty()) throw item.at("content").error("expected a token, got empty text");
    if (token.content.size() > kMaxContentBytes)
      throw item.at("content").error(fmt::format("an added token of {} bytes, expected at most {}",
                                                 token.content.size(), kMaxContentBytes));
    token.special = flag("special", false);
    token.singleWord = flag("single_word", false);
    token.lstrip = flag("lstrip", false);
    token.rstrip = flag("rstrip", false);
    token.normalized = flag("normalized", !token.special);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& tokens, bool normalized,
                                   const TextNormalizer& normalizer, TextBudget& budget) {
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    const std::string content =
        normalized ? normalizer.apply(token.content, budget) : token.content;
    if (content.empty()) continue;  // normalization left nothing to look for
    uint32_t node = 0;
    for (char byte : content) {
      auto [edge, isNew] =
          edges_.emplace(uint64_t(node) << 8 | uint8_t(byte), uint32_t(tokenOfNode_.size()));
      if (isNew) tokenOfNode_.push_back(-1);
      node = edge->second;
    }
    tokenOfNode_[node] = int(tokens_.size());
    tokens_.push_back(token);
  }
}

const AddedToken* AddedTokenFinder::longestAt(std::string_view text, size_t position,
                                              size_t& end) const {
  const AddedToken* found = nullptr;
  uint32_t node = 0;
  for (size_t i = position; i < text.size(); ++i) {
    auto edge = edges_.find(uint64_t(node) << 8 | uint8_t(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (tokenOfNode_[node] < 0) continue;
    found = &tokens_[size_t(tokenOfNode_[node])];
    end = i + 1;
  }
  return found;
}

std::vector<TextOrToken> AddedTokenFinder::split(std::string_view text, bool allowSpecial) const {
  std::vector<TextOrToken> pieces;
  size_t done = 0;
  size_t spaceBegin = 0, spaceEnd = 0;  // the last run of space that was walked through
  for (size_t at = 0; !tokens_.empty() && at < text.size();) {
    size_t begin = at, end = 0;
    const AddedToken* token = longestAt(text, at, end);
    if (!token) {
      ++at;
      continue;
    }
    at = end;
    if (token->special && !allowSpecial) continue;
    if (token->singleWord) {
      size_t next = end;
      if (begin > 0 && isWordCharacter(codePointBefore(text, begin))) continue;
      if (end < text.size() && isWordCharacter(nextCodePoint(text, next))) continue;
    }
    if (token->lstrip) {
      while (begin > done && isSpace(codePointBefore(text, begin))) do
          --begin;
        while ((uint8_t(text[begin]) & 0xc0) == 0x80);
    }
    if (token->rstrip) {
      // Tokens that are space themselves end in the same run again and again.
      if (end < spaceBegin || end > spaceEnd) {
        spaceBegin = spaceEnd = end;
        for (size_t next = end; next < text.size() && isSpace(nextCodePoint(text, next));)
          spaceEnd = next;
      }
      end = spaceEnd;
    }
    if (begin > done) pieces.push_back({text.substr(done, begin - done), -1});
    pieces.push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), -1});
  return pieces;
}

}  // namespace lathe
