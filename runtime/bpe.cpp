// SPDX-License-Identifier: Apache-2.0
#include "runtime/bpe.h"

#include <algorithm>
#include <iterator>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/text_normalizer.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr size_t kMaxTokenBytes = 65536;

uint64_t pairKey(int left, int right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }

struct Symbol {
  int id;
  int previous, next;  // neighbours by index, -1 at the ends
  bool merged = false;
};

// Compared as a whole: the lowest rank first, then the leftmost.
using Candidate = std::tuple<uint32_t, int, int>;  // rank, position, id of the merged pair

}  // namespace

Bpe::Bpe(const JsonValue& json) {
  // First of all: models of other kinds have other keys.
  if (auto type = json.find("type"); type && type->asString() != "BPE")
    throw type->error("model " + inQuotes(type->asString()) + " is not supported, expected BPE",
                      ErrorCode::Unsupported);
  refuseUnknownKeys(
      json, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
             "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  auto refuse = [&](const JsonValue& value) {
    throw value.error("not supported, got " + value.show(), ErrorCode::Unsupported);
  };
  if (auto dropout = json.find("dropout"); dropout && dropout->asDouble() != 0) refuse(*dropout);
  for (std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (auto affix = json.find(key); affix && !affix->asString().empty()) refuse(*affix);
  if (auto flag = json.find("fuse_unk")) fuseUnknown_ = flag->asBool();
  if (auto flag = json.find("ignore_merges")) ignoreMerges_ = flag->asBool();
  readVocabulary(json.at("vocab"));
  readMerges(json.at("merges"));
  if (auto flag = json.find("byte_fallback"); flag && flag->asBool()) {
    bytes_.emplace();
    for (size_t byte = 0; byte < 256; ++byte) {
      auto it = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
      (*bytes_)[byte] = it == vocabulary_.end() ? -1 : it->second;
    }
  }
  if (auto token = json.find("unk_token")) {
    auto it = vocabulary_.find(token->asString());
    if (it == vocabulary_.end())
      throw token->error(inQuotes(token->asString()) + " is not in the vocabulary");
    unknown_ = it->second;
  }
}

void Bpe::readVocabulary(const JsonValue& vocab) {
  if (!vocab.isObject()) throw vocab.error("expected an object of tokens, got " + vocab.show());
  vocabulary_.reserve(vocab.size());
  std::unordered_map<int, std::string_view> tokenOf;
  tokenOf.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    auto [token, value] = vocab.member(i);
    if (token.empty()) throw vocab.error("the vocabulary has an empty token");
    if (token.size() > kMaxTokenBytes)
      throw vocab.error(
          fmt::format("a token of {} bytes, expected at most {}", token.size(), kMaxTokenBytes));
    int id = int(value.asInt(0, kMaxTokenId));
    auto [it, isNew] = tokenOf.emplace(id, token);
    if (!isNew)
      throw vocab.error(fmt::format("tokens {} and {} have the same id {}", inQuotes(it->second),
                                    inQuotes(token), id));
    vocabulary_.emplace(token, id);
  }
}

void Bpe::readMerges(const JsonValue& merges) {
  if (!merges.isArray()) throw merges.error("expected an array, got " + merges.show());
  merges_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    JsonValue merge = merges.at(i);
    std::string_view left, right;
    if (merge.isString()) {
      std::string_view text = merge.asString();
      size_t space = text.find(' ');
      if (space == text.npos || text.find(' ', space + 1) != text.npos)
        throw merge.error("expected two pieces with one space between, got " + merge.show());
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else {
      if (!merge.isArray() || merge.size() != 2)
        throw merge.error("expected two pieces, got " + merge.show());
      left = merge.at(0).asString();
      right = merge.at(1).asString();
    }
    auto idOf = [&](std::string_view piece) {
      auto it = vocabulary_.find(piece);
      if (it == vocabulary_.end())
        throw merge.error(fmt::format("the merge {} + {} needs {}, which is not in the vocabulary",
                                      inQuotes(left), inQuotes(right), inQuotes(piece)));
      return it->second;
    };
    int leftId = idOf(left), rightId = idOf(right);
    int id = idOf(std::string(left) += right);
    // As in the library that writes these files, the last of equal merges counts.
    merges_.insert_or_assign(pairKey(leftId, rightId), Merge{uint32_t(i), id});
  }
}

const Bpe::Merge* Bpe::findMerge(int left, int right) const {
  auto it = merges_.find(pairKey(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

bool Bpe::appendBytes(std::string_view character, std::vector<int>& ids) const {
  auto idOf = [&](char byte) { return (*bytes_)[uint8_t(byte)]; };
  if (!bytes_ || std::ranges::any_of(character, [&](char byte) { return idOf(byte) < 0; }))
    return false;
  std::ranges::transform(character, std::back_inserter(ids), idOf);
  return true;
}

std::vector<int> Bpe::characters(std::string_view word) const {
  std::vector<int> ids;
  ids.reserve(word.size());
  // As in the library that writes these files, an unknown token waits for the next character that
  // is known: the bytes of one between them stand in front of it.
  bool waiting = false;
  for (size_t i = 0; i < word.size();) {
    const size_t begin = i;
    nextCodePoint(word, i);
    const std::string_view character = word.substr(begin, i - begin);
    if (auto it = vocabulary_.find(character); it != vocabulary_.end()) {
      if (waiting) ids.push_back(*unknown_);
      waiting = false;
      ids.push_back(it->second);
      continue;
    }
    if (appendBytes(character, ids)) continue;
    if (!unknown_)
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("the tokenizer has no token for the character {} and no unknown token",
                      inQuotes(character)));
    if (waiting && !fuseUnknown_) ids.push_back(*unknown_);
    waiting = true;
  }
  if (waiting) ids.push_back(*unknown_);
  return ids;
}

void Bpe::encode(std::string_view word, std::vector<int>& ids) const {
  if (ignoreMerges_) {
    if (auto it = vocabulary_.find(word); it != vocabulary_.end()) return ids.push_back(it->second);
  }
  std::vector<Symbol> symbols;
  for (int id : characters(word)) {
    const int n = int(symbols.size());
    symbols.push_back({id, n - 1, n + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto propose = [&](int at) {
    if (at < 0 || symbols[at].next < 0) return;
    if (const Merge* m = findMerge(symbols[at].id, symbols[symbols[at].next].id))
      queue.emplace(m->rank, at, m->id);
  };
  for (int i = 0; i + 1 < int(symbols.size()); ++i) propose(i);
  while (!queue.empty()) {
    auto [rank, at, id] = queue.top();
    queue.pop();
    Symbol& left = symbols[at];
    if (left.merged || left.next < 0) continue;
    // An entry is stale if a neighbour has changed since it was proposed.
    const Merge* merge = findMerge(left.id, symbols[left.next].id);
    if (!merge || merge->id != id) continue;
    Symbol& right = symbols[left.next];
    right.merged = true;
    left.id = id;
    left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = at;
    propose(left.previous);
    propose(at);
  }
  for (int i = 0; i >= 0; i = symbols[i].next) ids.push_back(symbols[i].id);
}

}  // namespace lathe
