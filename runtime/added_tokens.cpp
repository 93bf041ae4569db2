// SPDX-License-Identifier: Apache-2.0
#include "runtime/added_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/unicode_classes.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

// A search costs up to this per byte of text, so it is far below the limit for vocabulary tokens.
constexpr size_t kMaxContentBytes = 1024;
constexpr size_t kMaxTokens = 1'000'000;

}  // namespace

std::vector<AddedToken> parseAddedTokens(const JsonValue& json) {
  std::vector<AddedToken> tokens;
  const std::vector<JsonValue> all = json.elements();
  if (all.size() > kMaxTokens)
    throw json.error(
        fmt::format("expected at most {} added tokens, got {}", kMaxTokens, all.size()));
  for (const JsonValue& item : all) {
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
    trie_.add(content, int(tokens_.size()));
    tokens_.push_back(token);
  }
}

const AddedToken* AddedTokenFinder::longestAt(std::string_view text, size_t position,
                                              size_t& end) const {
  const AddedToken* found = nullptr;
  trie_.match(text, position, [&](size_t tokenEnd, int token) {
    found = &tokens_[size_t(token)];
    end = tokenEnd;
  });
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
      if (begin > 0 && unicode::isWord(codePointBefore(text, begin))) continue;
      if (end < text.size() && unicode::isWord(nextCodePoint(text, next))) continue;
    }
    if (token->lstrip) {
      while (begin > done && unicode::isWhiteSpace(codePointBefore(text, begin))) do
          --begin;
        while ((uint8_t(text[begin]) & 0xc0) == 0x80);
    }
    if (token->rstrip) {
      // Tokens that are space themselves end in the same run again and again.
      if (end < spaceBegin || end > spaceEnd) {
        spaceBegin = spaceEnd = end;
        for (size_t next = end;
             next < text.size() && unicode::isWhiteSpace(nextCodePoint(text, next));)
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
