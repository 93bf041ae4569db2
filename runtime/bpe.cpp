// SPDX-License-Identifier: Apache-2.0
#include "runtime/bpe.h"

#include <algorithm>
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
  refuseUnknownKeys(
      json, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
             "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (auto dropout = json.find("dropout"); dropout && dropout->asDouble() != 0)
    throw dropout->error("not supported, got " + dropout->show(), ErrorCode::Unsupported);
  if (auto prefix = json.find("continuing_subword_prefix")) continuingPrefix_ = prefix->asString();
  if (auto suffix = json.find("end_of_word_suffix")) endSuffix_ = suffix->asString();
  if (auto flag = json.find("fuse_unk")) fuseUnknown_ = flag->asBool();
  if (auto flag = json.find("ignore_merges")) ignoreMerges_ = flag->asBool();
  readVocabulary(json.at("vocab"), kMaxTokenBytes);
  readMerges(json.at("merges"));
  if (auto flag = json.find("byte_fallback"); flag && flag->asBool()) bytes_ = byteTokens();
  if (auto token = json.find("unk_token")) unknown_ = idOfToken(*token);
}

void Bpe::readMerges(const JsonValue& merges) {
  const std::vector<JsonValue> all = merges.elements();
  merges_.reserve(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const JsonValue& merge = all[i];
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
    int id =
        idOf(std::string(left) += right.substr(std::min(right.size(), continuingPrefix_.size())));
    // As in the library that writes these files, the last of equal merges counts.
    merges_.insert_or_assign(pairKey(leftId, rightId), Merge{uint32_t(i), id});
  }
}

const Bpe::Merge* Bpe::findMerge(int left, int right) const {
  auto it = merges_.find(pairKey(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

std::string_view Bpe::spellingOf(std::string_view character, bool isFirst, bool isLast,
                                 std::string& buffer) const {
  if ((isFirst || continuingPrefix_.empty()) && (!isLast || endSuffix_.empty())) return character;
  buffer = isFirst ? "" : continuingPrefix_;
  buffer += character;
  if (isLast) buffer += endSuffix_;
  return buffer;
}

std::vector<int> Bpe::characters(std::string_view word) const {
  std::vector<int> ids;
  ids.reserve(word.size());
  // As in the library that writes these files, an unknown token waits for the next character that
  // is known: the bytes of one between them stand in front of it.
  bool waiting = false;
  std::string buffer;
  for (size_t i = 0; i < word.size();) {
    const size_t begin = i;
    nextCodePoint(word, i);
    const std::string_view character = word.substr(begin, i - begin);
    const std::string_view spelling = spellingOf(character, begin == 0, i == word.size(), buffer);
    if (auto id = find(spelling)) {
      if (waiting) ids.push_back(*unknown_);
      waiting = false;
      ids.push_back(*id);
      continue;
    }
    if (bytes_ && appendByteTokens(*bytes_, spelling, ids)) continue;
    if (!unknown_) failWithoutToken("character", character);
    if (waiting && !fuseUnknown_) ids.push_back(*unknown_);
    waiting = true;
  }
  if (waiting) ids.push_back(*unknown_);
  return ids;
}

void Bpe::encode(std::string_view word, std::vector<int>& ids) const {
  if (ignoreMerges_) {
    if (auto id = find(word)) return ids.push_back(*id);
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
